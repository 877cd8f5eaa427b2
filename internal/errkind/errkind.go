// Package errkind holds the kinds of error that cross an interface of Holdfast: what happened,
// to which object, in which field, against which limit, and what to do. An Error keeps its
// parts on the wire as details of a gRPC status, so a client sees the same Error.
package errkind

import (
	"errors"
	"fmt"
)

// Kind says what a caller can do about an error. The zero value is Internal.
type Kind int

// The kinds. The comment names what they are used for; their codes stand in grpc.go.
const (
	Internal        Kind = iota // a fault of our own
	Invalid                     // a field is wrong, or names something unknown
	NotFound                    // the object is not there
	Exists                      // the ID or the name is taken
	OutOfSequence               // the object changed since the version that was given
	Refused                     // in use, port taken, not a member, quorum would break
	OutOfRange                  // compacted, future or lost revision
	Limit                       // too large, or a limit was reached
	NoLeader                    // nothing was done: safe to retry
	UnknownOutcome              // done or not, nobody can tell: retry with the same request ID
	NotAllowed                  // this caller may not do this
	Unauthenticated             // who the caller is, is not known
	Canceled                    // the caller went away
	DeadlineReached             // the caller's time ran out before anything was done
)

// Error is an error with what a person or a program needs to act on it. All fields but Kind
// and Msg are optional.
type Error struct {
	Kind   Kind
	Object string // kind of object: "service"
	ID     string // its name or ID
	Field  string // path of the field: "spec.annotations.name"
	Max    string // the limit that Field went over: "512 KiB"
	Seen   uint64 // revision that the caller had seen
	Now    uint64 // revision that holds now, or the floor for OutOfRange
	Msg    string // what happened
	Hint   string // what to do
	Err    error  // cause; its text is part of Msg if it matters
}

// Error gives the object, the field and what happened, on one line.
func (e *Error) Error() string {
	s := e.Msg
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	switch {
	case e.Object != "" && e.ID != "":
		s = fmt.Sprintf("%s %s: %s", e.Object, e.ID, s)
	case e.Object != "":
		s = e.Object + ": " + s
	}
	return s
}

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// Of returns the kind of err: that of the outermost Error in its chain, else Internal. The
// kind of nil is not defined.
func Of(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Is tells whether err is of the kind k.
func Is(err error, k Kind) bool { return err != nil && Of(err) == k }

// New makes an error of kind k.
func New(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Msg: fmt.Sprintf(format, args...)}
}

// Field makes an Invalid error for the field at path.
func Field(path, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Field: path, Msg: fmt.Sprintf(format, args...)}
}

// WithHint sets what to do and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// On sets the object and returns e.
func (e *Error) On(object, id string) *Error {
	e.Object, e.ID = object, id
	return e
}

// Hint returns what to do about err, or "".
func Hint(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}
