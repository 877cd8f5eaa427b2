package driver

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/internal/errkind"
)

// Limits of a key, in bytes.
const (
	MaxNamespace = 253
	MaxName      = 1024
)

// Key names a record: one revision of what has a name in a namespace. All that tells records
// apart is in their keys; case counts.
type Key struct {
	Namespace string
	Name      string
	Revision  int64 // from 1; 0 is allowed, as Helm has it
}

// String gives the key as one text, which ParseKey reads: "NAMESPACE/NAME.vREVISION".
func (k Key) String() string {
	return k.Namespace + "/" + k.Name + revisionMark + strconv.FormatInt(k.Revision, 10)
}

// revisionMark stands before a revision. It may be part of a name, too: the last one counts.
const revisionMark = ".v"

// ParseKey reads what String gives. It fails with errkind.Invalid.
func ParseKey(text string) (Key, error) {
	namespace, rest, ok := strings.Cut(text, "/")
	if !ok {
		return Key{}, badKey("key", text, "has no / after the namespace")
	}
	name, revision, err := ParseName(rest)
	if err != nil {
		return Key{}, err
	}
	k := Key{Namespace: namespace, Name: name, Revision: revision}
	return k, k.Check()
}

// ParseName reads the part of a key that stands after the namespace: "NAME.vREVISION". It
// fails with errkind.Invalid.
func ParseName(text string) (name string, revision int64, err error) {
	at := strings.LastIndex(text, revisionMark)
	if at < 0 {
		return "", 0, badKey("key", text, "does not end with .v and a revision")
	}
	name, digits := text[:at], text[at+len(revisionMark):]
	revision, err = strconv.ParseInt(digits, 10, 64)
	if err != nil || strconv.FormatInt(revision, 10) != digits {
		return "", 0, badKey("key.revision", text, "is not a number as it is written")
	}
	if err := checkName("key.name", name, MaxName, ""); err != nil {
		return "", 0, err
	}
	return name, revision, checkRevision(text, revision)
}

// Check tells what is wrong with a key: errkind.Invalid or errkind.Limit.
func (k Key) Check() error {
	if err := checkName("key.namespace", k.Namespace, MaxNamespace, "/"); err != nil {
		return err
	}
	if err := checkName("key.name", k.Name, MaxName, ""); err != nil {
		return err
	}
	return checkRevision(k.String(), k.Revision)
}

// Compare orders keys: by namespace and name, byte by byte, and revision.
func (k Key) Compare(o Key) int {
	return cmp.Or(
		strings.Compare(k.Namespace, o.Namespace), strings.Compare(k.Name, o.Name),
		cmp.Compare(k.Revision, o.Revision),
	)
}

func checkRevision(text string, revision int64) error {
	if revision < 0 {
		return badKey("key.revision", text, "has a revision below 0")
	}
	return nil
}

// checkName refuses what is empty, too long, or holds what some backend could not keep.
func checkName(field, value string, limit int, without string) error {
	switch {
	case value == "":
		return errkind.Field(field, "is empty").On(noun, "")
	case len(value) > limit:
		return (&errkind.Error{
			Kind: errkind.Limit, Field: field, Max: fmt.Sprintf("%d bytes", limit),
			Msg: fmt.Sprintf("has %d bytes, at most %d are allowed", len(value), limit),
		}).On(noun, "")
	case !utf8.ValidString(value):
		return badKey(field, value, "is not valid UTF-8")
	case strings.ContainsFunc(value, unicode.IsControl):
		return badKey(field, value, "has a control character")
	case without != "" && strings.Contains(value, without):
		return badKey(field, value, "has a "+without)
	}
	return nil
}

func badKey(field, value, what string) error {
	const most = 80
	if len(value) > most {
		value = value[:most] + "..."
	}
	return errkind.Field(field, "%q %s", value, what).On(noun, "").
		WithHint("a key is NAMESPACE/NAME.vREVISION")
}
