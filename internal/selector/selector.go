// Package selector picks objects by their labels and fields, in the words of Kubernetes' label
// selectors. A selector is a text of requirements, and picks the objects that meet all of them:
//
//	selector    = [ requirement { "," requirement } ]
//	requirement = key                        it is there
//	            | "!" key                    it is not there
//	            | key ( "=" | "==" ) value   it is there, with this value
//	            | key "!=" value             it does not have this value, or is not there
//	            | key "in" set               it is there, with one of these values
//	            | key "notin" set            it has none of these values, or is not there
//	set         = "(" value { "," value } ")"
//	key         = field | word | quoted
//	field       = "." word
//	value       = word | quoted
//	word        = characters other than whitespace and , ( ) = ! "
//	quoted      = any characters between double quotes, with \" for " and \\ for \
//
// Whitespace may stand between any of these, and must between a word and another. The words
// "in" and "notin" have their meaning only unquoted and after a key. An empty value is written
// "", so that a value that was forgotten is found.
//
// A key that begins with a dot is a field of the object, any other is a label; a label whose
// own key begins with a dot cannot be asked for. Every kind of object has the fields .id, .name,
// .version and .generation; which others a kind has is known to the caller, who tells Check. A
// field may have any number of values: it is there if it has one, and has each of them.
//
// A text is of 4 KiB and 32 requirements at most, and a set of 64 values.
package selector

import (
	"cmp"
	"slices"
	"strings"

	"holdfast/internal/errkind"
)

// Fields that every kind has.
const (
	FieldID         = ".id"
	FieldName       = ".name"
	FieldVersion    = ".version"
	FieldGeneration = ".generation"
)

// Selector is what an object must meet to be picked. The zero value picks every object. A
// Selector does not change once it is made, and may be used by many goroutines.
type Selector struct {
	requirements []requirement // sorted, each but once
}

// requirement is one of the things that must hold.
type requirement struct {
	key    string
	op     operator
	values []string // of in and notIn: sorted, each but once
	column int      // in the text it was parsed from: only for messages
}

// operator says how a key is compared. A single value is a set of one.
type operator int

const (
	exists operator = iota
	absent
	in
	notIn
)

// Empty tells whether s picks every object because it asks for nothing.
func (s Selector) Empty() bool { return len(s.requirements) == 0 }

// Equal tells whether s and o have the same requirements, in whatever order and notation.
func (s Selector) Equal(o Selector) bool {
	return slices.EqualFunc(s.requirements, o.requirements, func(a, b requirement) bool {
		return a.compare(b) == 0
	})
}

// Check makes sure that a kind has all fields that s asks for. It asks known, which may be nil,
// for those that not every kind has; fields are named with their dot.
func (s Selector) Check(known func(field string) bool) error {
	for _, r := range s.requirements {
		if !isField(r.key) || isCommon(r.key) || known != nil && known(r.key) {
			continue
		}
		return errkind.Field(path, "column %d: no such field: %s", r.column, shown(r.key)).
			WithHint("every kind has %s, %s, %s and %s; a key without a dot is a label",
				FieldID, FieldName, FieldVersion, FieldGeneration)
	}
	return nil
}

// Matches tells whether s picks the object that has these labels, and of which fields gives the
// values of a field, named with its dot. Fields may be nil if s asks for none.
func (s Selector) Matches(labels map[string]string, fields func(key string) []string) bool {
	for _, r := range s.requirements {
		if !r.matches(labels, fields) {
			return false
		}
	}
	return true
}

func (r requirement) matches(labels map[string]string, fields func(key string) []string) bool {
	var there, found bool
	if isField(r.key) {
		values := fields(r.key)
		there, found = len(values) > 0, slices.ContainsFunc(values, r.has)
	} else {
		var value string
		value, there = labels[r.key]
		found = there && r.has(value)
	}
	switch r.op {
	case exists:
		return there
	case absent:
		return !there
	case in:
		return found
	default:
		return !found
	}
}

func (r requirement) has(value string) bool {
	_, ok := slices.BinarySearch(r.values, value)
	return ok
}

// String gives the canonical text of s: Parse makes an equal selector of it, and selectors are
// equal exactly if their texts are.
func (s Selector) String() string {
	var b strings.Builder
	for i, r := range s.requirements {
		if i > 0 {
			b.WriteByte(',')
		}
		r.write(&b)
	}
	return b.String()
}

func (r requirement) write(b *strings.Builder) {
	if r.op == absent {
		b.WriteByte('!')
	}
	writeWord(b, r.key)
	if r.op == exists || r.op == absent {
		return
	}
	if len(r.values) == 1 {
		if r.op == notIn {
			b.WriteByte('!')
		}
		b.WriteByte('=')
		writeWord(b, r.values[0])
		return
	}
	if r.op == notIn {
		b.WriteString(" notin (")
	} else {
		b.WriteString(" in (")
	}
	for i, v := range r.values {
		if i > 0 {
			b.WriteByte(',')
		}
		writeWord(b, v)
	}
	b.WriteByte(')')
}

// writeWord puts quotes around s only if it needs them.
func writeWord(b *strings.Builder, s string) {
	if s != "" && !strings.ContainsFunc(s, endsWord) {
		b.WriteString(s)
		return
	}
	b.WriteByte('"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	b.WriteByte('"')
}

// normal makes a selector of requirements, which it may change.
func normal(requirements []requirement) Selector {
	for i := range requirements {
		r := &requirements[i]
		slices.Sort(r.values)
		r.values = slices.Compact(r.values)
	}
	// Stable, so that of those that are the same the first is kept, with its column.
	slices.SortStableFunc(requirements, requirement.compare)
	return Selector{slices.CompactFunc(requirements, func(a, b requirement) bool {
		return a.compare(b) == 0
	})}
}

func (r requirement) compare(o requirement) int {
	return cmp.Or(cmp.Compare(r.key, o.key), cmp.Compare(r.op, o.op), slices.Compare(r.values, o.values))
}

func isField(key string) bool { return strings.HasPrefix(key, ".") }

func isCommon(field string) bool {
	switch field {
	case FieldID, FieldName, FieldVersion, FieldGeneration:
		return true
	default:
		return false
	}
}
