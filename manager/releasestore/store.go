// Package releasestore keeps records of releases in the store of this process, as its secrets or
// as its configs: for what runs in a manager, where release/driver/object has no client to ask.
package releasestore

import (
	"context"
	"iter"
	"time"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
	"holdfast/release/driver/object"
)

// MemoryStore is what is needed of a member's store.
type MemoryStore interface {
	Root() store.ReadTx
	Update(ctx context.Context, fn func(*store.Tx) error) (store.Result, error)
}

// Store is the objects of one kind as an object.Store. Make it with Secrets or Configs.
//
// It reads what this member has applied, and writes if this member leads. What it returns is the
// member's own, and must not be changed. Each write is a transaction of its own, so a request ID
// must not come with it.
type Store[T objects.Object[T]] struct {
	memory MemoryStore
	table  *store.Table[T]
	build  func(id string, m api.Meta, a api.Annotations, data []byte) T
	parts  func(T) (*api.Annotations, []byte)
}

// Secrets gives the secrets of a member's store.
func Secrets(s MemoryStore) *Store[*api.Secret] {
	return &Store[*api.Secret]{
		memory: s, table: store.Secrets,
		build: func(id string, m api.Meta, a api.Annotations, data []byte) *api.Secret {
			return &api.Secret{ID: id, Meta: m, Spec: api.SecretSpec{Annotations: a, Data: data}}
		},
		parts: func(o *api.Secret) (*api.Annotations, []byte) { return &o.Spec.Annotations, o.Spec.Data },
	}
}

// Configs gives the configs of a member's store.
func Configs(s MemoryStore) *Store[*api.Config] {
	return &Store[*api.Config]{
		memory: s, table: store.Configs,
		build: func(id string, m api.Meta, a api.Annotations, data []byte) *api.Config {
			return &api.Config{ID: id, Meta: m, Spec: api.ConfigSpec{Annotations: a, Data: data}}
		},
		parts: func(o *api.Config) (*api.Annotations, []byte) { return &o.Spec.Annotations, o.Spec.Data },
	}
}

// Get implements object.Store.
func (s *Store[T]) Get(_ context.Context, name string) (object.Object, error) {
	o, err := objects.FindByName(s.memory.Root(), s.table, name)
	if err != nil {
		return object.Object{}, err
	}
	return s.plain(o), nil
}

// List implements object.Store. It is of one revision. What has another name than such a part
// costs it nothing.
func (s *Store[T]) List(_ context.Context, labels map[string]string) iter.Seq2[object.Object, error] {
	return func(yield func(object.Object, error) bool) {
		found, err := s.table.Find(s.memory.Root(), store.ByNamePrefix(object.NamesOf(labels)))
		if err != nil {
			yield(object.Object{}, err)
			return
		}
		for o := range found {
			a, _ := s.parts(o)
			if hasLabels(a, labels) && !yield(s.plain(o), nil) {
				return
			}
		}
	}
}

func hasLabels(a *api.Annotations, want map[string]string) bool {
	for key, value := range want {
		if a.Labels[key] != value {
			return false
		}
	}
	return true
}

// plain gives an object as the driver sees it.
func (s *Store[T]) plain(o T) object.Object {
	m := o.GetMeta()
	a, data := s.parts(o)
	return object.Object{
		ID: o.GetID(), Name: a.Name, Version: m.Version.Index, Labels: a.Labels, Data: data,
		Created: time.Unix(m.CreatedAt.GetSeconds(), int64(m.CreatedAt.GetNanos())),
	}
}

// Write implements object.Store.
func (s *Store[T]) Write(ctx context.Context, ops []object.Op) ([]object.Object, error) {
	left := make([]object.Object, len(ops))
	_, err := s.memory.Update(ctx, func(tx *store.Tx) error {
		for i, op := range ops {
			o, err := s.do(tx, op)
			if err != nil {
				return err
			}
			if op.Do != object.Remove {
				left[i] = s.plain(s.table.Get(tx, objects.Unwrap(o).GetID()))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return left, nil
}

// do carries out one operation.
func (s *Store[T]) do(tx *store.Tx, op object.Op) (*holdfast.Object, error) {
	o := objects.Wrap(s.build(op.ID, api.Meta{Version: api.Version{Index: op.Version}},
		api.Annotations{Name: op.Name, Labels: op.Labels}, op.Data))
	switch op.Do {
	case object.Create:
		return objects.Create(tx, o)
	case object.SetLabels:
		return objects.Update(tx, &holdfast.Update{Object: o})
	case object.Remove:
		return objects.Remove(tx, &holdfast.Remove{Kind: s.table.Kind(), ID: op.ID, Version: op.Version})
	}
	return nil, errkind.New(errkind.Internal, "the action %d is unknown", op.Do).On(s.table.Noun(), op.Name)
}
