package objects

import (
	"errors"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// Object is what the type of a kind has. It is what store.Table asks of it.
type Object[T any] interface {
	comparable
	state.Object
	Copy() T
	Equal(any) bool
}

// Wrap gives an object the form that it has in replies and operations of any kind. It keeps
// everything; what is sent to a client goes through Redact first. It is nil for nil.
func Wrap(o state.Object) *holdfast.Object {
	switch o := o.(type) {
	case *api.Node:
		return &holdfast.Object{Target: &holdfast.Object_Node{Node: o}}
	case *api.Service:
		return &holdfast.Object{Target: &holdfast.Object_Service{Service: o}}
	case *api.Task:
		return &holdfast.Object{Target: &holdfast.Object_Task{Task: o}}
	case *api.Network:
		return &holdfast.Object{Target: &holdfast.Object_Network{Network: o}}
	case *api.Cluster:
		return &holdfast.Object{Target: &holdfast.Object_Cluster{Cluster: o}}
	case *api.Secret:
		return &holdfast.Object{Target: &holdfast.Object_Secret{Secret: o}}
	case *api.Config:
		return &holdfast.Object{Target: &holdfast.Object_Config{Config: o}}
	}
	return nil
}

// Unwrap returns the object in o, or nil if there is none.
func Unwrap(o *holdfast.Object) state.Object {
	switch t := o.GetTarget().(type) {
	case *holdfast.Object_Node:
		return orNil(t.Node)
	case *holdfast.Object_Service:
		return orNil(t.Service)
	case *holdfast.Object_Task:
		return orNil(t.Task)
	case *holdfast.Object_Network:
		return orNil(t.Network)
	case *holdfast.Object_Cluster:
		return orNil(t.Cluster)
	case *holdfast.Object_Secret:
		return orNil(t.Secret)
	case *holdfast.Object_Config:
		return orNil(t.Config)
	}
	return nil
}

// orNil turns a nil pointer into a nil interface.
func orNil[T Object[T]](o T) state.Object {
	var zero T
	if o == zero {
		return nil
	}
	return o
}

// Redact returns an object as a client may see it: without the data of a secret and without
// the cluster's keys. The object itself is not changed.
func Redact(o state.Object) state.Object {
	switch o := o.(type) {
	case *api.Secret:
		return orNil(RedactSecret(o))
	case *api.Cluster:
		return orNil(RedactCluster(o))
	}
	return o
}

// RedactSecret returns a secret without its data. It shares the rest with s.
func RedactSecret(s *api.Secret) *api.Secret {
	if s == nil {
		return nil
	}
	c := *s
	c.Spec.Data = nil
	return &c
}

// RedactCluster returns a cluster without its private keys. The join tokens stay: whoever may
// read the cluster may add nodes to it. The signing certificate goes with its key, or a client
// that writes back what it read would ask for a certificate without a key.
func RedactCluster(o *api.Cluster) *api.Cluster {
	if o == nil {
		return nil
	}
	c := *o
	c.Spec.CAConfig.SigningCAKey = nil
	c.Spec.CAConfig.SigningCACert = nil
	c.RootCA.CAKey = nil
	if r := c.RootCA.RootRotation; r != nil {
		rotation := *r
		rotation.CAKey = nil
		c.RootCA.RootRotation = &rotation
	}
	c.NetworkBootstrapKeys = nil
	c.UnlockKeys = nil
	return &c
}

// Get returns the object with an ID. It fails with errkind.Invalid if the ID is empty and
// with errkind.NotFound.
func Get[T Object[T]](tx store.ReadTx, t *store.Table[T], id string) (T, error) {
	var zero T
	if id == "" {
		return zero, errkind.Field(t.Noun()+"_id", "is empty")
	}
	o := t.Get(tx, id)
	if o == zero {
		return zero, notFound(t.Noun(), id)
	}
	return o, nil
}

func notFound(noun, id string) error {
	return errkind.New(errkind.NotFound, "not found").On(noun, id)
}

// maxNamed is how many objects an error names.
const maxNamed = 5

// FindByName returns the object with a name, without regard to case. It fails with
// errkind.NotFound, and with errkind.Invalid if several objects have the name.
func FindByName[T Object[T]](tx store.ReadTx, t *store.Table[T], name string) (T, error) {
	var zero T
	if name == "" {
		return zero, errkind.Field("name", "is empty")
	}
	found, err := t.FindAll(tx, store.ByName(name))
	switch {
	case err != nil:
		return zero, err
	case len(found) == 0:
		return zero, notFound(t.Noun(), name)
	case len(found) == 1:
		return found[0], nil
	}
	var ids shortList
	for _, o := range found {
		ids.add(o.GetID())
	}
	return zero, errkind.Field("name", "is ambiguous: %d %ss have it: %s", len(found), t.Noun(), ids.String()).
		On(t.Noun(), name).WithHint("use one of the IDs")
}

// forUpdate returns the object whose spec is to be replaced by one made from version.
func forUpdate[T Object[T]](tx *store.Tx, t *store.Table[T], id string, version *api.Version) (T, error) {
	var zero T
	o, err := Get(tx, t, id)
	if err != nil {
		return zero, err
	}
	if version == nil {
		return zero, errkind.Field(t.Noun()+"_version", "is empty").On(t.Noun(), id).
			WithHint("give the version of the %s that the change is made from", t.Noun())
	}
	return o, t.CheckSpecVersion(o, version.Index)
}

// on names the object in an error that names none.
func on(err error, noun, id string) error {
	if e, ok := errors.AsType[*errkind.Error](err); ok && e.Object == "" {
		e.Object, e.ID = noun, id
	}
	return err
}

// next returns the version that a change in the transaction gets.
func next(tx *store.Tx) api.Version { return api.Version{Index: tx.Revision() + 1} }
