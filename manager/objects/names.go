package objects

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"holdfast/api"
	"holdfast/internal/errkind"
)

// nameRule is what the names of a kind look like.
type nameRule struct {
	max   int
	inner string // what may stand between letters and digits
	text  string // the rule, for people
}

// dnsName is the rule for services and networks.
func dnsName() nameRule {
	return nameRule{63, "-_", "letters, digits, and between them - and _"}
}

// dataName is the rule for secrets and configs.
func dataName() nameRule {
	return nameRule{64, "-_.", "letters, digits, and between them - _ and ."}
}

func (r nameRule) check(path, name string) error {
	switch {
	case name == "":
		return errkind.Field(path, "is empty")
	case len(name) > r.max:
		e := errkind.Field(path, "has %d characters, at most %d are allowed", len(name), r.max)
		e.Max = fmt.Sprintf("%d characters", r.max)
		return e
	}
	for i := range len(name) {
		if isAlphanumeric(name[i]) || strings.IndexByte(r.inner, name[i]) >= 0 && i > 0 && i < len(name)-1 {
			continue
		}
		return errkind.Field(path, "%q is not a valid name", name).WithHint("use %s", r.text)
	}
	return nil
}

func isLetter(c byte) bool       { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool        { return c >= '0' && c <= '9' }
func isAlphanumeric(c byte) bool { return isLetter(c) || isDigit(c) }

// checkAnnotations checks a name and labels.
func checkAnnotations(path string, a *api.Annotations, r nameRule) error {
	if err := r.check(path+".name", a.Name); err != nil {
		return err
	}
	return checkLabels(path, a)
}

func checkLabels(path string, a *api.Annotations) error {
	if _, ok := a.Labels[""]; ok {
		return errkind.Field(path+".labels", "has an empty key")
	}
	for i, x := range a.Indices {
		if x.GetKey() == "" {
			return errkind.Field(fmt.Sprintf("%s.indices[%d].key", path, i), "is empty")
		}
	}
	return nil
}

// checkText refuses text that is not UTF-8: most clients could not read the object, nor any
// list that holds it. The path may be empty.
func checkText(path string, message any) error {
	if at, bad := badText(reflect.ValueOf(message)); bad {
		return errkind.Field(strings.TrimPrefix(path+at, "."), "is not valid UTF-8")
	}
	return nil
}

// badText finds the first string in v that is not UTF-8, and its path from v.
func badText(v reflect.Value) (path string, bad bool) {
	switch v.Kind() {
	case reflect.String:
		return "", !utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return badText(v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return "", false
		}
		for i := range v.Len() {
			if at, bad := badText(v.Index(i)); bad {
				return fmt.Sprintf("[%d]%s", i, at), true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if _, bad := badText(it.Key()); bad {
				return fmt.Sprintf("[%q]", it.Key().String()), true
			}
			if at, bad := badText(it.Value()); bad {
				return fmt.Sprintf("[%q]%s", it.Key().String(), at), true
			}
		}
	case reflect.Struct:
		return badField(v)
	}
	return "", false
}

func badField(v reflect.Value) (path string, bad bool) {
	for i := range v.NumField() {
		at, bad := badText(v.Field(i))
		if !bad {
			continue
		}
		// To ask for the field itself is slow, and done only now.
		for part := range strings.SplitSeq(v.Type().Field(i).Tag.Get("protobuf"), ",") {
			if name, ok := strings.CutPrefix(part, "name="); ok {
				return "." + name + at, true
			}
		}
		return at, true // the interface of a oneof
	}
	return "", false
}

// shortList names some of many things.
type shortList struct {
	names []string
	more  int
}

func (l *shortList) add(name string) {
	if len(l.names) == maxNamed {
		l.more++
		return
	}
	l.names = append(l.names, name)
}

func (l *shortList) empty() bool { return len(l.names) == 0 }

// String gives "a, b, c and 4 more".
func (l *shortList) String() string {
	s := strings.Join(l.names, ", ")
	if l.more > 0 {
		s += fmt.Sprintf(" and %d more", l.more)
	}
	return s
}
