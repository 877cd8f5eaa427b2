package stackapi

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// difference is a field that two messages of one type differ in.
type difference struct {
	path       string // ".driver_config.name"
	have, want string
}

func (d difference) String() string {
	return fmt.Sprintf("%s is %s, wanted %s", strings.TrimPrefix(d.path, "."), d.have, d.want)
}

// maxDifferences is how many differences are told.
const maxDifferences = 8

// differences returns the first fields in which two messages of one type differ, as their
// Equal sees it: what is empty does not differ from what is not there, messages aside.
func differences(have, want reflect.Value) []difference {
	var found comparison
	found.compare("", have, want)
	return found
}

type comparison []difference

func (c *comparison) add(path string, have, want reflect.Value) {
	if len(*c) < maxDifferences {
		*c = append(*c, difference{path, show(have), show(want)})
	}
}

func (c *comparison) compare(path string, have, want reflect.Value) {
	switch have.Kind() {
	case reflect.Pointer, reflect.Interface:
		switch {
		case have.IsNil() && want.IsNil():
		case have.IsNil() || want.IsNil() || have.Elem().Type() != want.Elem().Type():
			c.add(path, have, want)
		default:
			c.compare(path, have.Elem(), want.Elem())
		}
	case reflect.Struct:
		for i := range have.NumField() {
			f := have.Type().Field(i)
			c.compareField(path, f, have.Field(i), want.Field(i))
		}
	case reflect.Map:
		c.compareMaps(path, have, want)
	case reflect.Slice:
		c.compareSlices(path, have, want)
	default:
		if !have.Equal(want) {
			c.add(path, have, want)
		}
	}
}

// compareField compares a field of a message. The wrapper of a oneof's value names it; where
// there are not two of one type, it is the oneof that differs.
func (c *comparison) compareField(path string, f reflect.StructField, have, want reflect.Value) {
	oneof := f.Tag.Get("protobuf_oneof")
	if oneof == "" {
		c.compare(path+"."+fieldName(f), have, want)
		return
	}
	if !have.IsNil() && !want.IsNil() && have.Elem().Type() == want.Elem().Type() {
		c.compare(path, have, want)
		return
	}
	if !have.IsNil() || !want.IsNil() {
		c.add(path+"."+oneof, have, want)
	}
}

// fieldName gives the name of a field as the API has it.
func fieldName(f reflect.StructField) string {
	for part := range strings.SplitSeq(f.Tag.Get("protobuf"), ",") {
		if name, ok := strings.CutPrefix(part, "name="); ok {
			return name
		}
	}
	return f.Name // of the fields that are not known here
}

func (c *comparison) compareMaps(path string, have, want reflect.Value) {
	var keys []string // all maps of specs have strings for keys
	for _, m := range []reflect.Value{have, want} {
		for _, key := range m.MapKeys() {
			keys = append(keys, key.String())
		}
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		at := fmt.Sprintf("%s[%q]", path, key)
		k := reflect.ValueOf(key)
		a, b := have.MapIndex(k), want.MapIndex(k)
		if a.IsValid() && b.IsValid() {
			c.compare(at, a, b)
			continue
		}
		c.add(at, a, b)
	}
}

func (c *comparison) compareSlices(path string, have, want reflect.Value) {
	if have.Type().Elem().Kind() == reflect.Uint8 {
		if !bytes.Equal(have.Bytes(), want.Bytes()) {
			c.add(path, have, want)
		}
		return
	}
	for i := range max(have.Len(), want.Len()) {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= have.Len():
			c.add(at, reflect.Value{}, want.Index(i))
		case i >= want.Len():
			c.add(at, have.Index(i), reflect.Value{})
		default:
			c.compare(at, have.Index(i), want.Index(i))
		}
	}
}

// show gives a value for people, on one line.
func show(v reflect.Value) string {
	const most = 80
	if !v.IsValid() {
		return "not there"
	}
	var s string
	switch v.Kind() {
	case reflect.String:
		s = fmt.Sprintf("%q", v.String())
	case reflect.Slice:
		s = fmt.Sprintf("%d bytes", v.Len()) // other slices are compared by their elements
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "not there"
		}
		s = fmt.Sprintf("{%s}", strings.TrimSpace(fmt.Sprint(v.Interface())))
	default:
		s = fmt.Sprint(v.Interface())
	}
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
