package object

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/errkind"
	"holdfast/internal/id"
	"holdfast/release/driver"
)

// LabelPart is the label of each object that is a part of a record.
const LabelPart = prefix + "part"

// Labels of a head. Those of the user have a prefix of their own.
const (
	prefix     = "holdfast.release."
	userPrefix = prefix + "label."

	labelForm      = prefix + "form"
	labelNamespace = prefix + "namespace"
	labelName      = prefix + "name"
	labelRevision  = prefix + "revision"
	labelKind      = prefix + "kind"
	labelStatus    = prefix + "status"
	labelOverlap   = prefix + "overlap"
	labelCreated   = prefix + "created"
	labelModified  = prefix + "modified"
	labelDigest    = prefix + "digest"
	labelSize      = prefix + "size"
	labelUpload    = prefix + "upload" // of chunks and stages, too
	labelChunks    = prefix + "chunks"
	labelMark      = prefix + "mark"
	labelChange    = prefix + "change"
)

// form is the version of the form of a head.
const form = "1"

// timeForm keeps microseconds, as the driver does.
const timeForm = "2006-01-02T15:04:05.000000Z"

// head is a head as it is stored.
type head struct {
	driver.Head
	id     string // of its object
	upload string // of its body
	chunks int    // of its body
	mark   string // ID of its mark; empty if it has none
	change uint64 // counts the changes, so that each changes the labels
}

// labels gives the labels that tell all of a head but its version.
func (h head) labels() map[string]string {
	l := map[string]string{
		LabelPart: string(partHead), labelForm: form,
		labelNamespace: h.Key.Namespace, labelName: h.Key.Name, labelRevision: strconv.FormatInt(h.Key.Revision, 10),
		labelKind: h.Kind, labelStatus: string(h.Status), labelOverlap: strconv.FormatBool(h.Overlap),
		labelCreated: h.Created.Format(timeForm), labelModified: h.Modified.Format(timeForm),
		labelDigest: h.Digest, labelSize: strconv.FormatInt(h.Size, 10),
		labelUpload: h.upload, labelChunks: strconv.Itoa(h.chunks), labelMark: h.mark,
		labelChange: strconv.FormatUint(h.change, 10),
	}
	for key, value := range h.Labels {
		l[userPrefix+key] = value
	}
	return l
}

// decodeHead reads the head that an object's labels tell. One that this package did not make
// is an error that is driver.ErrCorrupt; one of a later form is errkind.Invalid.
func decodeHead(o Object) (head, error) {
	f := fields{object: o}
	if got := o.Labels[labelForm]; got != form {
		return head{}, errkind.Field(labelForm, "is %q, which is not known here", got).On("release head", o.Name).
			WithHint("read it with the version of Holdfast that wrote it, or a later one")
	}
	h := head{
		Head: driver.Head{
			Key:  driver.Key{Namespace: f.text(labelNamespace), Name: f.text(labelName), Revision: f.number(labelRevision)},
			Kind: f.text(labelKind), Status: driver.Status(f.text(labelStatus)), Overlap: f.boolean(labelOverlap),
			Created: f.time(labelCreated), Modified: f.time(labelModified),
			Digest: f.text(labelDigest), Size: f.number(labelSize), Version: o.Version,
		},
		id: o.ID, upload: f.text(labelUpload), chunks: int(f.number(labelChunks)), mark: f.text(labelMark),
		change: uint64(f.number(labelChange)), //nolint:gosec // number gives none below 0
	}
	for key, value := range o.Labels {
		if user, ok := strings.CutPrefix(key, userPrefix); ok {
			if h.Labels == nil {
				h.Labels = map[string]string{}
			}
			h.Labels[user] = value
		}
	}
	if f.err != nil {
		return head{}, f.err
	}
	return h, f.consistent(h)
}

// consistent checks what no label alone tells.
func (f *fields) consistent(h head) error {
	switch {
	case h.Key.Check() != nil:
		f.fail(labelName, "the key "+h.Key.String()+" is not valid")
	case headName(h.Key) != f.object.Name:
		f.fail(labelName, "the object has not the name that belongs to the key "+h.Key.String())
	case !h.Status.Valid():
		f.fail(labelStatus, "it is no status: "+string(h.Status))
	case h.Size < 1 || h.Size > driver.MaxBody || int64(h.chunks) != (h.Size+maxChunk-1)/maxChunk:
		f.fail(labelChunks, "the number of chunks does not go with the size")
	case !id.Valid(h.upload):
		f.fail(labelUpload, "it is no ID")
	case h.Exclusive() != (h.mark != "") || h.mark != "" && !id.Valid(h.mark):
		f.fail(labelMark, "it does not go with the status")
	case !maps.Equal(h.labels(), f.object.Labels):
		f.fail("labels", "they are not as a head's are written")
	}
	return f.err
}

// fields reads labels, and keeps the first error.
type fields struct {
	object Object
	err    error
}

func (f *fields) fail(label, what string) {
	if f.err == nil {
		f.err = (&errkind.Error{
			Field: label, Msg: "is corrupt: " + what, Err: driver.ErrCorrupt,
			Hint: "remove the object, or give it its labels back",
		}).On("release head", f.object.Name)
	}
}

func (f *fields) text(label string) string {
	value, ok := f.object.Labels[label]
	if !ok {
		f.fail(label, "it is not there")
	}
	return value
}

// number reads a number that is not below 0.
func (f *fields) number(label string) int64 {
	n, err := strconv.ParseInt(f.text(label), 10, 64)
	if err != nil || n < 0 {
		f.fail(label, "it is no number")
		return 0
	}
	return n
}

func (f *fields) boolean(label string) bool {
	b, err := strconv.ParseBool(f.text(label))
	if err != nil {
		f.fail(label, "it is neither true nor false")
	}
	return b
}

func (f *fields) time(label string) time.Time {
	t, err := time.Parse(timeForm, f.text(label))
	if err != nil {
		f.fail(label, "it is no time")
	}
	return t.UTC()
}
