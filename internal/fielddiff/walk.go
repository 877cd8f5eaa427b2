package fielddiff

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// walk goes through two messages and collects what differs. A value that is not valid stands
// for none.
type walk struct {
	fields []Field
	max    int
	full   bool
}

// add notes a difference.
func (w *walk) add(path, before, after string) {
	if len(w.fields) == w.max {
		w.full = true
		return
	}
	w.fields = append(w.fields, Field{Path: path, Old: before, New: after})
}

// message compares all fields of a message, of which one side may be nil. depth is how many
// steps a path may still go down.
func (w *walk) message(path string, depth int, before, after protoreflect.Message) {
	there := before
	if there == nil {
		there = after
	}
	fields := there.Descriptor().Fields()
	for i := range fields.Len() {
		w.field(path+".", depth-1, fields.Get(i), before, after)
	}
}

// field compares one field of a message.
func (w *walk) field(prefix string, depth int, fd protoreflect.FieldDescriptor, before, after protoreflect.Message) {
	if w.full {
		return
	}
	path := prefix + fd.JSONName()
	both := before != nil && after != nil
	a, b := valueOf(before, fd, both), valueOf(after, fd, both)
	switch {
	case a.IsValid() && b.IsValid() && a.Equal(b), !a.IsValid() && !b.IsValid():
	case depth == 0:
		w.add(path, encodeField(fd, a), encodeField(fd, b))
	case fd.IsMap():
		w.entries(path, depth, fd, mapOf(a), mapOf(b))
	case fd.IsList():
		w.elements(path, depth, fd, listOf(a), listOf(b))
	default:
		w.value(path, depth, fd, a, b)
	}
}

// valueOf returns the value of a field, or an invalid one if there is none. A number that is not
// set is 0, if the message is there on both sides.
func valueOf(m protoreflect.Message, fd protoreflect.FieldDescriptor, both bool) protoreflect.Value {
	text := fd.Kind() == protoreflect.StringKind || fd.Kind() == protoreflect.BytesKind
	switch {
	case m == nil:
		return protoreflect.Value{}
	case m.Has(fd):
		return m.Get(fd)
	case !both, text, fd.HasPresence(), fd.IsList(), fd.IsMap():
		return protoreflect.Value{}
	}
	return m.Get(fd)
}

// value compares two values that differ: of a field, of a key or of an element.
func (w *walk) value(path string, depth int, fd protoreflect.FieldDescriptor, a, b protoreflect.Value) {
	if fd.Message() == nil || single(fd.Message()) || depth == 0 {
		w.add(path, encodeValue(fd, a), encodeValue(fd, b))
		return
	}
	var before, after protoreflect.Message
	if a.IsValid() {
		before = a.Message()
	}
	if b.IsValid() {
		after = b.Message()
	}
	told := len(w.fields)
	w.message(path, depth, before, after)
	if len(w.fields) == told && !w.full && (before == nil || after == nil) {
		w.add(path, encodeValue(fd, a), encodeValue(fd, b)) // it has no fields
	}
}

// single tells whether a message is told as one value.
func single(md protoreflect.MessageDescriptor) bool {
	switch md.FullName() {
	case "google.protobuf.Timestamp", "google.protobuf.Duration",
		"google.protobuf.DoubleValue", "google.protobuf.FloatValue",
		"google.protobuf.Int64Value", "google.protobuf.UInt64Value",
		"google.protobuf.Int32Value", "google.protobuf.UInt32Value",
		"google.protobuf.BoolValue", "google.protobuf.StringValue", "google.protobuf.BytesValue":
		return true
	}
	return false
}

func mapOf(v protoreflect.Value) protoreflect.Map {
	if !v.IsValid() {
		return nil
	}
	return v.Map()
}

// entries compares two maps.
func (w *walk) entries(path string, depth int, fd protoreflect.FieldDescriptor, before, after protoreflect.Map) {
	get := func(m protoreflect.Map, key protoreflect.MapKey) protoreflect.Value {
		if m == nil || !m.Has(key) {
			return protoreflect.Value{}
		}
		return m.Get(key)
	}
	for _, key := range sortedKeys(before, after) {
		if w.full {
			return
		}
		a, b := get(before, key), get(after, key)
		if a.IsValid() && b.IsValid() && a.Equal(b) {
			continue
		}
		w.value(path+"["+keyText(key)+"]", depth-1, fd.MapValue(), a, b)
	}
}

// sortedKeys returns the keys of both maps.
func sortedKeys(maps ...protoreflect.Map) []protoreflect.MapKey {
	var keys []protoreflect.MapKey
	for _, m := range maps {
		if m == nil {
			continue
		}
		m.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
			keys = append(keys, key)
			return true
		})
	}
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int {
		switch x := a.Interface().(type) {
		case int32, int64:
			return cmp.Compare(a.Int(), b.Int())
		case uint32, uint64:
			return cmp.Compare(a.Uint(), b.Uint())
		case string:
			return cmp.Compare(x, b.String())
		}
		return cmp.Compare(a.String(), b.String()) // false, true
	})
	return slices.CompactFunc(keys, func(a, b protoreflect.MapKey) bool { return a.Interface() == b.Interface() })
}

func keyText(key protoreflect.MapKey) string {
	s := key.String()
	if quoted := strconv.Quote(s); s == "" || strings.ContainsAny(s, "[]") || quoted[1:len(quoted)-1] != s {
		return quoted
	}
	return s
}

func listOf(v protoreflect.Value) []protoreflect.Value {
	if !v.IsValid() {
		return nil
	}
	list := v.List()
	values := make([]protoreflect.Value, list.Len())
	for i := range values {
		values[i] = list.Get(i)
	}
	return values
}

// elements compares two lists.
func (w *walk) elements(path string, depth int, fd protoreflect.FieldDescriptor, before, after []protoreflect.Value) {
	first := 0
	for len(before) > 0 && len(after) > 0 && before[0].Equal(after[0]) {
		before, after = before[1:], after[1:]
		first++
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1].Equal(after[len(after)-1]) {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	element := func(i int, a, b protoreflect.Value) {
		if !w.full {
			w.value(path+"["+strconv.Itoa(first+i)+"]", depth-1, fd, a, b)
		}
	}
	if len(before) == len(after) {
		for i := range before {
			if !before[i].Equal(after[i]) {
				element(i, before[i], after[i])
			}
		}
		return
	}
	for i := range before {
		element(i, before[i], protoreflect.Value{})
	}
	for i := range after {
		element(i, protoreflect.Value{}, after[i])
	}
}
