// Package wire names the metadata that calls and replies of Holdfast carry beside their
// messages, and reads and writes it.
package wire

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/metadata"

	"holdfast/internal/errkind"
)

// Keys of the metadata.
const (
	// Read says how fresh a read must be: "linearizable" (the default), "local", "min=REV",
	// or "at=REV".
	Read = "holdfast-read"
	// RequestID names a request, so that a retry gets the first outcome: "REV.RANDOM", where
	// REV is the newest revision that the client had seen when it made the ID.
	RequestID = "holdfast-request-id"
	// Message says why, for the history: text as EscapeText gives it.
	Message = "holdfast-message"
	// Forwarded is set by a manager that passes a request on: the raft ID of the manager. A
	// request is passed on once.
	Forwarded = "holdfast-forwarded"
	// Revision is a trailer of every reply: "INCARNATION/REV", where REV is at least the
	// revision that the reply tells of.
	Revision = "holdfast-revision"
)

// Mode is how fresh a read must be.
type Mode int

// The modes. The zero value is Linearizable.
const (
	Linearizable Mode = iota // shows every write that was acknowledged before the call
	Local                    // what this manager has, at once
	Min                      // at least a revision: waits for it
	At                       // exactly a revision
)

// Freshness is a mode and its revision.
type Freshness struct {
	Mode     Mode
	Revision uint64 // of Min and At
}

// String gives the value of the Read header.
func (f Freshness) String() string {
	switch f.Mode {
	case Local:
		return "local"
	case Min:
		return "min=" + strconv.FormatUint(f.Revision, 10)
	case At:
		return "at=" + strconv.FormatUint(f.Revision, 10)
	default:
		return "linearizable"
	}
}

// ParseFreshness reads the value of a Read header; empty is Linearizable.
func ParseFreshness(s string) (Freshness, error) {
	name, number, hasNumber := strings.Cut(s, "=")
	var f Freshness
	switch name {
	case "", "linearizable":
	case "local":
		f.Mode = Local
	case "min":
		f.Mode = Min
	case "at":
		f.Mode = At
	default:
		return f, errkind.Field(Read, "%q is none of linearizable, local, min=REV, at=REV", s)
	}
	if hasNumber != (f.Mode == Min || f.Mode == At) {
		return f, errkind.Field(Read, "%q is none of linearizable, local, min=REV, at=REV", s)
	}
	if hasNumber {
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return f, errkind.Field(Read, "%q: the revision is not a number", s)
		}
		f.Revision = n
	}
	return f, nil
}

// Incoming returns the one value of a key in a call's metadata, or "".
func Incoming(ctx context.Context, key string) string {
	if values := metadata.ValueFromIncomingContext(ctx, key); len(values) > 0 {
		return values[len(values)-1]
	}
	return ""
}

// EscapeText makes a header of any text: what a header cannot hold, and %, stands as % and two
// hexadecimal digits for each byte, as in the status messages of gRPC.
func EscapeText(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c <= ' ' && (c != ' ' || i == 0 || i == len(text)-1) || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// UnescapeText gives the text again. What does not look escaped stays as it is.
func UnescapeText(header string) string {
	var b strings.Builder
	for i := 0; i < len(header); i++ {
		if header[i] == '%' && i+2 < len(header) {
			if c, err := strconv.ParseUint(header[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(header[i])
	}
	return b.String()
}

// FormatRevision gives the value of the Revision trailer.
func FormatRevision(incarnation, revision uint64) string {
	return fmt.Sprintf("%d/%d", incarnation, revision)
}

// ParseRevision reads the value of a Revision trailer.
func ParseRevision(s string) (incarnation, revision uint64, err error) {
	a, b, _ := strings.Cut(s, "/")
	if incarnation, err = strconv.ParseUint(a, 10, 64); err != nil {
		return 0, 0, errkind.Field(Revision, "%q is not INCARNATION/REVISION", s)
	}
	if revision, err = strconv.ParseUint(b, 10, 64); err != nil {
		return 0, 0, errkind.Field(Revision, "%q is not INCARNATION/REVISION", s)
	}
	return incarnation, revision, nil
}

// maxRequestID is the length that a request ID may have.
const maxRequestID = 128

// FormatRequestID makes a request ID of the newest revision that the client has seen and a
// random part.
func FormatRequestID(seen uint64, random string) string {
	return strconv.FormatUint(seen, 10) + "." + random
}

// ParseRequestID returns the revision in a request ID.
func ParseRequestID(id string) (seen uint64, err error) {
	number, random, ok := strings.Cut(id, ".")
	if !ok || len(random) < 16 || len(id) > maxRequestID {
		return 0, errkind.Field(RequestID,
			"must be REVISION.RANDOM with at least 16 random characters, %d characters at most", maxRequestID)
	}
	for _, r := range random {
		if r < '!' || r > '~' {
			return 0, errkind.Field(RequestID, "holds a character that is not printable ASCII")
		}
	}
	if seen, err = strconv.ParseUint(number, 10, 64); err != nil {
		return 0, errkind.Field(RequestID, "its revision %q is not a number", number)
	}
	return seen, nil
}
