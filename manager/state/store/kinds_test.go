package store_test

import (
	"github.com/gogo/protobuf/types"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// kindOps is a table without its type, for tests that do the same to every kind.
type kindOps struct {
	kind   holdfast.Kind
	unique bool // names are unique
	// fresh makes an object with a name, without an ID.
	fresh func(name string) state.Object
	// spec and status return a changed copy; status is nil if the kind has nothing but a spec.
	spec, status func(o state.Object, v string) state.Object
	rename       func(o state.Object, name string) state.Object
	renameIsSpec bool
	name         func(o state.Object) string
	version      func(o state.Object, index uint64) state.Object // a copy that claims a version
	meta         func(o state.Object) *api.Meta                  // of an object that may be changed
	withID       func(o state.Object, id string) state.Object

	create, update func(tx *store.Tx, o state.Object) (state.Object, error)
	remove         func(tx *store.Tx, id string) error
	get            func(tx store.ReadTx, id string) state.Object
	find           func(tx store.ReadTx, by store.By) ([]state.Object, error)
	found          func(o state.Object) string // the name that it is found by
}

// object is what the store asks of a kind's type.
type object[T any] interface {
	comparable
	state.Object
	Copy() T
	Equal(any) bool
}

// fields are what differs between kinds.
type fields[T any] struct {
	meta         func(T) *api.Meta
	id           func(T) *string
	annotations  func(T) *api.Annotations // that hold the name
	spec, status func(T, string)
	notSpec      bool // the name is not in the spec
}

func ops[T object[T]](t *store.Table[T], unique bool, blank func() T, f fields[T]) kindOps {
	edit := func(change func(T, string)) func(state.Object, string) state.Object {
		if change == nil {
			return nil
		}
		return func(o state.Object, v string) state.Object {
			c := o.(T).Copy()
			change(c, v)
			return c
		}
	}
	typed := func(do func(*store.Tx, T) (T, error)) func(*store.Tx, state.Object) (state.Object, error) {
		return func(tx *store.Tx, o state.Object) (state.Object, error) {
			made, err := do(tx, o.(T))
			if err != nil {
				return nil, err
			}
			return made, nil
		}
	}
	rename := func(o T, name string) { f.annotations(o).Name = name }
	return kindOps{
		kind: t.Kind(), unique: unique, renameIsSpec: !f.notSpec,
		fresh:  func(name string) state.Object { o := blank(); rename(o, name); return o },
		spec:   edit(f.spec),
		status: edit(f.status),
		rename: edit(rename),
		name:   func(o state.Object) string { return f.annotations(o.(T)).Name },
		version: func(o state.Object, index uint64) state.Object {
			c := o.(T).Copy()
			f.meta(c).Version.Index = index
			return c
		},
		meta:   func(o state.Object) *api.Meta { return f.meta(o.(T)) },
		withID: edit(func(o T, id string) { *f.id(o) = id }),
		create: typed(t.Create), update: typed(t.Update),
		remove: func(tx *store.Tx, id string) error { _, err := t.Delete(tx, id); return err },
		get: func(tx store.ReadTx, id string) state.Object {
			var zero T
			if o := t.Get(tx, id); o != zero {
				return o
			}
			return nil
		},
		find: func(tx store.ReadTx, by store.By) (all []state.Object, err error) {
			seq, err := t.Find(tx, by)
			if err != nil {
				return nil, err
			}
			for o := range seq {
				all = append(all, o)
			}
			return all, nil
		},
		found: func(o state.Object) string { return t.Name(o.(T)) },
	}
}

func relabel(a *api.Annotations, v string) {
	a.Labels = map[string]string{"l": v, "k": "same", "n": v + v}
}

// allKinds are the seven tables.
func allKinds() []kindOps {
	return []kindOps{
		ops(store.Clusters, true, func() *api.Cluster { return &api.Cluster{} }, fields[*api.Cluster]{
			meta:        func(o *api.Cluster) *api.Meta { return &o.Meta },
			id:          func(o *api.Cluster) *string { return &o.ID },
			annotations: func(o *api.Cluster) *api.Annotations { return &o.Spec.Annotations },
			spec:        func(o *api.Cluster, v string) { relabel(&o.Spec.Annotations, v) },
			status:      func(o *api.Cluster, v string) { o.DefaultAddressPool = []string{v} },
		}),
		ops(store.Nodes, false, func() *api.Node { return &api.Node{} }, fields[*api.Node]{
			meta:        func(o *api.Node) *api.Meta { return &o.Meta },
			id:          func(o *api.Node) *string { return &o.ID },
			annotations: func(o *api.Node) *api.Annotations { return &o.Spec.Annotations },
			spec:        func(o *api.Node, v string) { relabel(&o.Spec.Annotations, v) },
			status:      func(o *api.Node, v string) { o.Status.Message = v },
		}),
		ops(store.Networks, true, func() *api.Network { return &api.Network{} }, fields[*api.Network]{
			meta:        func(o *api.Network) *api.Meta { return &o.Meta },
			id:          func(o *api.Network) *string { return &o.ID },
			annotations: func(o *api.Network) *api.Annotations { return &o.Spec.Annotations },
			spec:        func(o *api.Network, v string) { relabel(&o.Spec.Annotations, v) },
			status:      func(o *api.Network, v string) { o.DriverState = &api.Driver{Name: v} },
		}),
		ops(store.Secrets, true, func() *api.Secret { return &api.Secret{} }, fields[*api.Secret]{
			meta:        func(o *api.Secret) *api.Meta { return &o.Meta },
			id:          func(o *api.Secret) *string { return &o.ID },
			annotations: func(o *api.Secret) *api.Annotations { return &o.Spec.Annotations },
			spec:        func(o *api.Secret, v string) { relabel(&o.Spec.Annotations, v) },
			status:      func(o *api.Secret, _ string) { o.Internal = !o.Internal },
		}),
		ops(store.Configs, true, func() *api.Config { return &api.Config{} }, fields[*api.Config]{
			meta:        func(o *api.Config) *api.Meta { return &o.Meta },
			id:          func(o *api.Config) *string { return &o.ID },
			annotations: func(o *api.Config) *api.Annotations { return &o.Spec.Annotations },
			spec:        func(o *api.Config, v string) { relabel(&o.Spec.Annotations, v) },
		}),
		ops(store.Services, true, func() *api.Service { return &api.Service{} }, fields[*api.Service]{
			meta:        func(o *api.Service) *api.Meta { return &o.Meta },
			id:          func(o *api.Service) *string { return &o.ID },
			annotations: func(o *api.Service) *api.Annotations { return &o.Spec.Annotations },
			spec:        func(o *api.Service, v string) { relabel(&o.Spec.Annotations, v) },
			status:      func(o *api.Service, v string) { o.UpdateStatus = &api.UpdateStatus{Message: v} },
		}),
		ops(store.Tasks, false, func() *api.Task { return &api.Task{} }, fields[*api.Task]{
			meta:        func(o *api.Task) *api.Meta { return &o.Meta },
			id:          func(o *api.Task) *string { return &o.ID },
			annotations: func(o *api.Task) *api.Annotations { return &o.Annotations },
			spec:        func(o *api.Task, v string) { o.Spec.LogDriver = &api.Driver{Name: v} },
			status:      func(o *api.Task, v string) { o.Status.Message = v },
			notSpec:     true,
		}),
	}
}

// stamp is the time that a transaction puts on what it changes.
func stamp(tx *store.Tx) *types.Timestamp {
	return &types.Timestamp{Seconds: tx.Now().Unix(), Nanos: int32(tx.Now().Nanosecond())}
}

type fataler interface{ Fatalf(string, ...any) }

func encoded(t fataler, o state.Object) string {
	data, err := o.Marshal()
	if err != nil {
		t.Fatalf("encode %s: %v", o.GetID(), err)
	}
	return string(data)
}
