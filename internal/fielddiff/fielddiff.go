// Package fielddiff tells in which fields two messages of one type differ: the path of each, in
// the names of protobuf's JSON, and its value before and after, as protobuf's JSON.
//
// A path goes from the message down: "spec.task.container.image", "spec.annotations.labels[tier]"
// for a key of a map, "spec.task.container.env[2]" for an element of a list. A key that a path
// could be misread by is quoted as in Go. Of the message itself the fields are left out that follow
// from its history: meta, spec_version, previous_spec and previous_spec_version.
//
// A value is empty where there is none: in a message or an element that is not there, and where
// a text, bytes or an optional field are. Numbers, booleans and enums always have a value, 0 and
// false too. Times, durations and the wrappers of values are single values. A message that is
// only on one side is told as its fields, or as {} if it has none.
//
// Lists are compared without the elements that they begin and end with alike. What is left is
// compared one by one if it is of the same length; else it is told as removed, then as added.
//
// The order is that of the fields in the .proto files, and of sorted keys.
package fielddiff

import (
	"fmt"

	gogo "github.com/gogo/protobuf/proto"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"holdfast/internal/descriptors"
)

// MaxFields is how many fields are told at most. Where more differ, parts of the message are told
// as a whole, from the deepest ones up.
const MaxFields = 1000

// Field is a field that differs.
type Field struct {
	Path     string
	Old, New string // protobuf's JSON; empty where there is no value
	// Secret tells that the field differs only in what is not told: there are no values.
	Secret bool
}

// Message is one of our messages.
type Message interface {
	Marshal() ([]byte, error)
}

// Differ compares messages. It does not change once made, and any goroutine may use it.
type Differ struct {
	files *descriptors.Files
}

// New returns a Differ for the messages that files describes.
func New(files *descriptors.Files) Differ { return Differ{files: files} }

// Diff returns the fields in which two messages of one type differ. shownBefore and shownAfter are
// the messages as they may be shown: values come from these only, and a field that differs in the
// messages and not there is told as secret.
func (d Differ) Diff(before, after, shownBefore, shownAfter Message) ([]Field, error) {
	whole, err := d.pair(before, after)
	if err != nil {
		return nil, err
	}
	redacted := shownBefore != before || shownAfter != after
	shown := whole
	if redacted {
		if shown, err = d.pair(shownBefore, shownAfter); err != nil {
			return nil, err
		}
	}
	for depth := deepest; ; depth = min(depth, maxDepth) - 1 {
		fields, ok := whole.diff(depth)
		switch {
		case !ok && depth > 1: // one step down there are few
			continue
		case !redacted:
			return fields, nil
		}
		public, _ := shown.diff(depth)
		return hide(fields, public), nil
	}
}

// deepest is more than any of our messages has, and maxDepth is where it begins to tell parts as
// a whole.
const (
	deepest  = 64
	maxDepth = 7
)

// place is what tells apart the fields of one diff: a list that has another length can have an
// element removed and another one added at the same path.
type place struct {
	path     string
	old, new bool
}

func (f Field) place() place { return place{f.Path, f.Old != "", f.New != ""} }

// hide returns the fields that differ with the values that may be shown.
func hide(fields, public []Field) []Field {
	shown := make(map[place]Field, len(public))
	paths := make(map[string]bool, len(public))
	for _, f := range public {
		shown[f.place()] = f
		paths[f.Path] = true
	}
	var out []Field
	for _, f := range fields {
		if p, ok := shown[f.place()]; ok {
			out = append(out, p)
			delete(shown, f.place())
			continue
		}
		if !paths[f.Path] {
			out = append(out, Field{Path: f.Path, Secret: true})
			paths[f.Path] = true
		}
	}
	for _, f := range public { // what looks otherwise without its secret parts
		if _, ok := shown[f.place()]; ok {
			out = append(out, f)
		}
	}
	return out
}

// pair is two messages of one type.
type pair struct{ old, new protoreflect.Message }

func (d Differ) pair(before, after Message) (pair, error) {
	a, err := d.dynamic(before)
	if err != nil {
		return pair{}, err
	}
	b, err := d.dynamic(after)
	if err != nil {
		return pair{}, err
	}
	if a.Descriptor() != b.Descriptor() {
		return pair{}, fmt.Errorf("fielddiff: %T and %T are of two types", before, after)
	}
	return pair{a, b}, nil
}

// dynamic returns a message as one of the standard library.
func (d Differ) dynamic(m Message) (protoreflect.Message, error) {
	msg, ok := m.(gogo.Message)
	if !ok {
		return nil, fmt.Errorf("fielddiff: %T is not a message", m)
	}
	typ, err := d.files.FindMessageByName(protoreflect.FullName(gogo.MessageName(msg)))
	if err != nil {
		return nil, fmt.Errorf("fielddiff: %T: %w", m, err)
	}
	data, err := m.Marshal()
	if err != nil {
		return nil, fmt.Errorf("fielddiff: encode %T: %w", m, err)
	}
	dynamic := typ.New()
	if err := proto.Unmarshal(data, dynamic.Interface()); err != nil {
		return nil, fmt.Errorf("fielddiff: decode %T: %w", m, err)
	}
	return dynamic, nil
}

// diff compares the two down to a depth, where it tells what differs as a whole. ok is false, and
// it stops, if more than MaxFields differ.
func (p pair) diff(depth int) (fields []Field, ok bool) {
	w := &walk{max: MaxFields}
	own := p.old.Descriptor().Fields()
	for i := range own.Len() {
		switch fd := own.Get(i); fd.Name() {
		case "meta", "spec_version", "previous_spec", "previous_spec_version":
		default:
			w.field("", depth-1, fd, p.old, p.new)
		}
	}
	return w.fields, !w.full
}
