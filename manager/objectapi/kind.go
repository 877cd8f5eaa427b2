package objectapi

import (
	"maps"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// kind is a table of the store without the type of its objects.
type kind interface {
	Noun() string
	// get returns the object with an ID, or if that is empty with a name.
	get(tx store.ReadTx, id, name string) (state.Object, error)
	// find returns the object with an ID, or nil.
	find(tx store.ReadTx, id string) state.Object
	// list returns a page of the objects that a selector selects, in the order of their IDs.
	list(tx store.ReadTx, s *holdfast.Selector, after string, limit int) (page, error)
	// blank returns an object that has nothing but an ID.
	blank(id string) state.Object
}

// page is a part of a list.
type page struct {
	objects   []state.Object
	remaining uint64 // objects after it
}

// kindOf returns the table of a kind. path is where the request names it.
func kindOf(path string, k holdfast.Kind) (kind, error) {
	switch k {
	case holdfast.Kind_KIND_NODE:
		return table[*api.Node]{store.Nodes, func(id string) *api.Node { return &api.Node{ID: id} }}, nil
	case holdfast.Kind_KIND_SERVICE:
		return table[*api.Service]{store.Services, func(id string) *api.Service { return &api.Service{ID: id} }}, nil
	case holdfast.Kind_KIND_TASK:
		return table[*api.Task]{store.Tasks, func(id string) *api.Task { return &api.Task{ID: id} }}, nil
	case holdfast.Kind_KIND_NETWORK:
		return table[*api.Network]{store.Networks, func(id string) *api.Network { return &api.Network{ID: id} }}, nil
	case holdfast.Kind_KIND_CLUSTER:
		return table[*api.Cluster]{store.Clusters, func(id string) *api.Cluster { return &api.Cluster{ID: id} }}, nil
	case holdfast.Kind_KIND_SECRET:
		return table[*api.Secret]{store.Secrets, func(id string) *api.Secret { return &api.Secret{ID: id} }}, nil
	case holdfast.Kind_KIND_CONFIG:
		return table[*api.Config]{store.Configs, func(id string) *api.Config { return &api.Config{ID: id} }}, nil
	case holdfast.Kind_KIND_UNSPECIFIED:
		return nil, errkind.Field(path, "is empty")
	}
	return nil, errkind.Field(path, "%d is not a kind of object", int32(k))
}

// kindOfObject returns the table of an object's kind.
func kindOfObject(o state.Object) (kind, error) {
	k := holdfast.Kind_KIND_UNSPECIFIED
	switch o.(type) {
	case *api.Node:
		k = holdfast.Kind_KIND_NODE
	case *api.Service:
		k = holdfast.Kind_KIND_SERVICE
	case *api.Task:
		k = holdfast.Kind_KIND_TASK
	case *api.Network:
		k = holdfast.Kind_KIND_NETWORK
	case *api.Cluster:
		k = holdfast.Kind_KIND_CLUSTER
	case *api.Secret:
		k = holdfast.Kind_KIND_SECRET
	case *api.Config:
		k = holdfast.Kind_KIND_CONFIG
	}
	return kindOf("object", k)
}

// annotationsOf returns what holds an object's labels, what counts first before the rest.
func annotationsOf(o state.Object) []*api.Annotations {
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
	for i, a := range annotationsOf(o) {
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

// table makes a kind of a store's table.
type table[T objects.Object[T]] struct {
	*store.Table[T]
	withID func(id string) T
}

func (t table[T]) blank(id string) state.Object { return t.withID(id) }

func (t table[T]) get(tx store.ReadTx, id, name string) (state.Object, error) {
	if id != "" {
		return objects.Get(tx, t.Table, id)
	}
	return objects.FindByName(tx, t.Table, name)
}

func (t table[T]) find(tx store.ReadTx, id string) state.Object {
	var zero T
	if o := t.Get(tx, id); o != zero {
		return o
	}
	return nil
}

func (t table[T]) list(tx store.ReadTx, s *holdfast.Selector, after string, limit int) (page, error) {
	by, err := t.by(tx, s)
	if err != nil {
		return page{}, err
	}
	keep, err := t.where(s.Where)
	if err != nil {
		return page{}, err
	}
	if picks := keep; len(s.Labels) > 0 {
		keep = func(o T) bool { return hasLabels(o, s.Labels) && (picks == nil || picks(o)) }
	}
	found, _, remaining, err := objects.List(tx, t.Table, by, keep, after, limit)
	if err != nil {
		return page{}, err
	}
	p := page{objects: make([]state.Object, len(found)), remaining: remaining}
	for i, o := range found {
		p.objects[i] = o
	}
	return p, nil
}
