package kinds

import (
	"fmt"
	"strings"

	"holdfast/api"
	"holdfast/api/holdfast"
)

// Any is a kind without the type of its objects.
type Any struct {
	Noun   string
	Number holdfast.Kind
	// Unwrap takes an object of this kind out of one of any; nil if there is none in it.
	Unwrap func(*holdfast.Object) Object
	Name   func(*holdfast.Object) string
	State  func(*holdfast.Object) string // "" where objects do nothing
}

// All returns all kinds, in the order of their numbers.
func All() []Any {
	return []Any{
		Nodes().any(), Services().any(), Tasks().any(), Networks().any(), Clusters().any(),
		Secrets().any(), Configs().any(),
	}
}

// Of returns the kind with a number. A manager of a later version may have kinds that this one
// does not know: their objects have no name here, and nothing in them.
func Of(number holdfast.Kind) Any {
	for _, k := range All() {
		if k.Number == number {
			return k
		}
	}
	none := func(*holdfast.Object) string { return "" }
	return Any{
		Noun: fmt.Sprintf("kind-%d", number), Number: number, Name: none, State: none,
		Unwrap: func(*holdfast.Object) Object { return nil },
	}
}

// Named returns the kind that a noun names, in the singular or in the plural.
func Named(noun string) (Any, error) {
	var nouns []string
	for _, k := range All() {
		if noun == k.Noun || noun == k.Noun+"s" {
			return k, nil
		}
		nouns = append(nouns, k.Noun)
	}
	return Any{}, fmt.Errorf("%q is none of %s", noun, strings.Join(nouns, ", "))
}

func (k Kind[T]) any() Any {
	a := Any{
		Noun: k.Noun, Number: k.Number,
		Unwrap: func(o *holdfast.Object) Object { return k.Unwrap(o) },
		Name:   func(o *holdfast.Object) string { return k.View.Name(k.Unwrap(o)) },
		State:  func(*holdfast.Object) string { return "" },
	}
	if k.State != nil {
		a.State = func(o *holdfast.Object) string { return k.State(k.Unwrap(o)) }
	}
	return a
}

// ID returns the ID of an object of this kind, or "".
func (a Any) ID(o *holdfast.Object) string {
	if inner := a.Unwrap(o); inner != nil {
		return inner.GetID()
	}
	return ""
}

// Meta returns the meta of an object of this kind.
func (a Any) Meta(o *holdfast.Object) api.Meta {
	if inner := a.Unwrap(o); inner != nil {
		return inner.GetMeta()
	}
	return api.Meta{}
}
