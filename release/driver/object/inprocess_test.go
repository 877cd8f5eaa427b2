package object_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
	"holdfast/release/drivertest"
)

// inProcess is the real store of a manager as a Store, for secrets or configs: the rules of
// the store are those that the driver must keep to.
type inProcess struct {
	store *store.MemoryStore
	kind  holdfast.Kind
	table finder
	away  error
}

// finder is a table without its type.
type finder interface {
	byName(tx store.ReadTx, name string) (state.Object, error)
	all(tx store.ReadTx) ([]state.Object, error)
}

type table[T objects.Object[T]] struct{ *store.Table[T] }

func (t table[T]) byName(tx store.ReadTx, name string) (state.Object, error) {
	return objects.FindByName(tx, t.Table, name)
}

func (t table[T]) all(tx store.ReadTx) ([]state.Object, error) {
	found, err := t.FindAll(tx, store.All())
	var all []state.Object
	for _, o := range found {
		all = append(all, o)
	}
	return all, err
}

func (s *inProcess) Get(_ context.Context, name string) (object.Object, error) {
	if s.away != nil {
		return object.Object{}, s.away
	}
	o, err := s.table.byName(s.store.Root(), name)
	if err != nil {
		return object.Object{}, err
	}
	return s.plain(o), nil
}

func (s *inProcess) plain(o state.Object) object.Object {
	meta := o.GetMeta()
	out := object.Object{ID: o.GetID(), Version: meta.Version.Index, Created: time.Unix(meta.CreatedAt.Seconds, 0)}
	switch o := o.(type) {
	case *api.Secret:
		out.Name, out.Labels, out.Data = o.Spec.Annotations.Name, o.Spec.Annotations.Labels, o.Spec.Data
	case *api.Config:
		out.Name, out.Labels, out.Data = o.Spec.Annotations.Name, o.Spec.Annotations.Labels, o.Spec.Data
	}
	return out
}

func (s *inProcess) List(_ context.Context, labels map[string]string) iter.Seq2[object.Object, error] {
	return func(yield func(object.Object, error) bool) {
		found, err := s.table.all(s.store.Root())
		if s.away != nil {
			err = s.away
		}
		if err != nil {
			yield(object.Object{}, err)
			return
		}
		for _, f := range found {
			o := s.plain(f)
			o.Data = nil
			match := true
			for key, value := range labels {
				match = match && o.Labels[key] == value
			}
			if match && !yield(o, nil) {
				return
			}
		}
	}
}

func (s *inProcess) Write(ctx context.Context, ops []object.Op) ([]object.Object, error) {
	if s.away != nil {
		return nil, s.away
	}
	left := make([]object.Object, len(ops))
	_, err := s.store.Update(ctx, func(tx *store.Tx) error {
		for i, op := range ops {
			o, err := s.do(tx, op)
			if err != nil {
				return err
			}
			if op.Do != object.Remove {
				left[i] = s.plain(objects.Unwrap(o))
			}
		}
		return nil
	})
	return left, err
}

func (s *inProcess) do(tx *store.Tx, op object.Op) (*holdfast.Object, error) {
	annotations := api.Annotations{Name: op.Name, Labels: op.Labels}
	meta := api.Meta{Version: api.Version{Index: op.Version}}
	o := objects.Wrap(&api.Config{ID: op.ID, Meta: meta, Spec: api.ConfigSpec{Annotations: annotations, Data: op.Data}})
	if s.kind == holdfast.Kind_KIND_SECRET {
		o = objects.Wrap(&api.Secret{ID: op.ID, Meta: meta, Spec: api.SecretSpec{Annotations: annotations, Data: op.Data}})
	}
	switch op.Do {
	case object.Create:
		return objects.Create(tx, o)
	case object.SetLabels:
		return objects.Update(tx, &holdfast.Update{Object: o})
	default:
		return objects.Remove(tx, &holdfast.Remove{Kind: s.kind, ID: op.ID, Version: op.Version})
	}
}

func newInProcess(t testing.TB, kind holdfast.Kind) *inProcess {
	s := &inProcess{store: storetest.New(t), kind: kind, table: table[*api.Config]{store.Configs}}
	if kind == holdfast.Kind_KIND_SECRET {
		s.table = table[*api.Secret]{store.Secrets}
	}
	return s
}

// spoil replaces the first chunk of a record by another one.
func spoil(t testing.TB, s object.Store, key driver.Key) {
	t.Helper()
	head, err := s.Get(t.Context(), object.HeadName(key))
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Get(t.Context(), object.ChunkName(head.Labels[object.LabelUpload], 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), []object.Op{{Do: object.Remove, Object: object.Object{ID: o.ID, Name: o.Name}}}); err != nil {
		t.Fatal(err)
	}
	o.Data = append([]byte(nil), o.Data...)
	o.Data[0] ^= 1
	o.Version = 0
	if _, err := s.Write(t.Context(), []object.Op{{Do: object.Create, Object: o}}); err != nil {
		t.Fatal(err)
	}
}

func TestDriverOnSecrets(t *testing.T) { testInProcess(t, holdfast.Kind_KIND_SECRET) }

func TestDriverOnConfigs(t *testing.T) { testInProcess(t, holdfast.Kind_KIND_CONFIG) }

func testInProcess(t *testing.T, kind holdfast.Kind) {
	drivertest.Run(t, func(t testing.TB, clock func() time.Time) drivertest.Backend {
		s := newInProcess(t, kind)
		return drivertest.Backend{
			Open:    func(testing.TB) driver.Driver { return newDriver(s, clock) },
			Corrupt: func(t testing.TB, key driver.Key) { spoil(t, s, key) },
			Stop:    func(testing.TB) { s.away = errkind.New(errkind.NoLeader, "away") },
		}
	})
}

func BenchmarkListSecrets(b *testing.B) {
	drivertest.BenchmarkList(b, newDriver(newInProcess(b, holdfast.Kind_KIND_SECRET), time.Now))
}
