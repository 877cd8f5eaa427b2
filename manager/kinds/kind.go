// Package kinds gives the store's tables without the types of their objects, and picks objects
// of any kind by one form of selector. It keeps no state; what it makes may be used by many
// goroutines.
package kinds

import (
	"iter"
	"maps"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// Kind is a table of the store without the type of its objects. A method that takes an object
// of another kind returns the zero value.
type Kind interface {
	Kind() holdfast.Kind
	Noun() string
	// NameOf returns the name that an object is found by.
	NameOf(o state.Object) string
	// Get returns the object with an ID, or if that is empty with a name. It fails with
	// errkind.NotFound, and with errkind.Invalid if several objects have the name.
	Get(tx store.ReadTx, id, name string) (state.Object, error)
	// Find returns the object with an ID, or nil.
	Find(tx store.ReadTx, id string) state.Object
	// List returns a page of the objects that a selector selects, in the order of their IDs.
	List(tx store.ReadTx, s *holdfast.Selector, after string, limit int) (Page, error)
	// ListIn is List in another order.
	ListIn(tx store.ReadTx, s *holdfast.Selector, o objects.Order, after string, limit int) (Page, error)
	// Count returns how many objects List would return without a limit.
	Count(tx store.ReadTx, s *holdfast.Selector, o objects.Order, after string) (uint64, error)
	// Scan returns all that ListIn would return without a limit, and how many that are.
	Scan(tx store.ReadTx, s *holdfast.Selector, o objects.Order, after string) (iter.Seq[state.Object], uint64, error)
	// Matcher compiles a selector. It fails with errkind.Invalid if the kind lacks a field that
	// the selector asks for.
	Matcher(s *holdfast.Selector) (Matcher, error)
	// Picks returns what tells whether a selector of the store selects an object. It fails with
	// errkind.Invalid if the table lacks one of its indexes.
	Picks(by store.By) (func(state.Object) bool, error)
	// After goes through the objects that are selected, in the order of their IDs, after one.
	After(tx store.ReadTx, m Matcher, id string) iter.Seq[state.Object]
	// Values returns the values that an object has in an index, as a Matcher names it.
	Values(index string, o state.Object) []string
	// Blank returns an object that has nothing but an ID.
	Blank(id string) state.Object
	// Keys returns an object that has only the ID, the Meta and the name of o.
	Keys(o state.Object) state.Object
	// Same tells whether two objects are equal but for their Meta.
	Same(a, b state.Object) bool
}

// Page is a part of a list.
type Page struct {
	Objects   []state.Object
	Remaining uint64 // objects after it
}

// All returns all kinds, in the order of their numbers.
func All() []Kind {
	return []Kind{
		table[*api.Node]{store.Nodes, func(id string) *api.Node { return &api.Node{ID: id} }},
		table[*api.Service]{store.Services, func(id string) *api.Service { return &api.Service{ID: id} }},
		table[*api.Task]{store.Tasks, func(id string) *api.Task { return &api.Task{ID: id} }},
		table[*api.Network]{store.Networks, func(id string) *api.Network { return &api.Network{ID: id} }},
		table[*api.Cluster]{store.Clusters, func(id string) *api.Cluster { return &api.Cluster{ID: id} }},
		table[*api.Secret]{store.Secrets, func(id string) *api.Secret { return &api.Secret{ID: id} }},
		table[*api.Config]{store.Configs, func(id string) *api.Config { return &api.Config{ID: id} }},
	}
}

// Of returns a kind. It fails with errkind.Invalid; path is where the request names it.
func Of(path string, number holdfast.Kind) (Kind, error) {
	for _, k := range All() {
		if k.Kind() == number {
			return k, nil
		}
	}
	if number == holdfast.Kind_KIND_UNSPECIFIED {
		return nil, errkind.Field(path, "is empty")
	}
	return nil, errkind.Field(path, "%d is not a kind of object", int32(number))
}

// OfObject returns an object's kind.
func OfObject(o state.Object) (Kind, error) {
	number, _ := objects.KindOf(o)
	return Of("object", number)
}

// Annotations returns what holds an object's labels, what counts first before the rest.
func Annotations(o state.Object) []*api.Annotations {
	switch o := o.(type) {
	case *api.Node:
		return []*api.Annotations{&o.Spec.Annotations}
	case *api.Service:
		return []*api.Annotations{&o.Spec.Annotations}
	case *api.Task:
		return []*api.Annotations{&o.Annotations, &o.ServiceAnnotations}
	case *api.Network:
		return []*api.Annotations{&o.Spec.Annotations}
	case *api.Cluster:
		return []*api.Annotations{&o.Spec.Annotations}
	case *api.Secret:
		return []*api.Annotations{&o.Spec.Annotations}
	case *api.Config:
		return []*api.Annotations{&o.Spec.Annotations}
	}
	return nil
}

// hasLabels tells whether an object has all of the labels; an empty value asks only for the
// key.
func hasLabels(o state.Object, want map[string]string) bool {
	labels := labelsOf(o)
	for key, value := range want {
		if have, ok := labels[key]; !ok || value != "" && have != value {
			return false
		}
	}
	return true
}

// labelsOf returns the labels of an object. A task has those of its service too.
func labelsOf(o state.Object) map[string]string {
	var labels map[string]string
	for i, a := range Annotations(o) {
		switch {
		case i == 0 || len(labels) == 0:
			labels = a.Labels
		case len(a.Labels) > 0: // what comes first counts
			both := maps.Clone(a.Labels)
			maps.Copy(both, labels)
			labels = both
		}
	}
	return labels
}

// keysOf returns an object that has only the ID, the Meta and the name of o. A name stands where
// NameOf looks for it first.
func keysOf(o state.Object, name string) state.Object {
	named := api.Annotations{Name: name}
	switch o := o.(type) {
	case *api.Node:
		if o.Description != nil && o.Description.Hostname != "" {
			return &api.Node{ID: o.ID, Meta: o.Meta, Description: &api.NodeDescription{Hostname: name}}
		}
		return &api.Node{ID: o.ID, Meta: o.Meta, Spec: api.NodeSpec{Annotations: named}}
	case *api.Service:
		return &api.Service{ID: o.ID, Meta: o.Meta, Spec: api.ServiceSpec{Annotations: named}}
	case *api.Task:
		return &api.Task{ID: o.ID, Meta: o.Meta, Annotations: named}
	case *api.Network:
		return &api.Network{ID: o.ID, Meta: o.Meta, Spec: api.NetworkSpec{Annotations: named}}
	case *api.Cluster:
		return &api.Cluster{ID: o.ID, Meta: o.Meta, Spec: api.ClusterSpec{Annotations: named}}
	case *api.Secret:
		return &api.Secret{ID: o.ID, Meta: o.Meta, Spec: api.SecretSpec{Annotations: named}}
	case *api.Config:
		return &api.Config{ID: o.ID, Meta: o.Meta, Spec: api.ConfigSpec{Annotations: named}}
	}
	return nil
}

// table makes a kind of a store's table.
type table[T objects.Object[T]] struct {
	*store.Table[T]
	withID func(id string) T
}

// Blank implements Kind.
func (t table[T]) Blank(id string) state.Object { return t.withID(id) }

// NameOf implements Kind.
func (t table[T]) NameOf(o state.Object) string {
	if typed, ok := o.(T); ok {
		return t.Name(typed)
	}
	return ""
}

// Keys implements Kind.
func (t table[T]) Keys(o state.Object) state.Object { return keysOf(o, t.NameOf(o)) }

// Same implements Kind.
func (t table[T]) Same(a, b state.Object) bool {
	x, ok := a.(T)
	y, also := b.(T)
	return ok && also && t.Table.Same(x, y)
}

// Get implements Kind.
func (t table[T]) Get(tx store.ReadTx, id, name string) (state.Object, error) {
	if id != "" {
		return objects.Get(tx, t.Table, id)
	}
	return objects.FindByName(tx, t.Table, name)
}

// Find implements Kind.
func (t table[T]) Find(tx store.ReadTx, id string) state.Object {
	var zero T
	if o := t.Table.Get(tx, id); o != zero {
		return o
	}
	return nil
}
