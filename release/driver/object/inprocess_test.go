package object_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/releasestore"
	"holdfast/manager/state/store/storetest"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
	"holdfast/release/drivertest"
)

// inProcess is the real store of a manager, for secrets or configs: the rules of the store are
// those that the driver must keep to. It can be away.
type inProcess struct {
	object.Store
	away error
}

func (s *inProcess) Get(ctx context.Context, name string) (object.Object, error) {
	if s.away != nil {
		return object.Object{}, s.away
	}
	return s.Store.Get(ctx, name)
}

func (s *inProcess) List(ctx context.Context, labels map[string]string) iter.Seq2[object.Object, error] {
	if s.away != nil {
		return func(yield func(object.Object, error) bool) { yield(object.Object{}, s.away) }
	}
	return s.Store.List(ctx, labels)
}

func (s *inProcess) Write(ctx context.Context, ops []object.Op) ([]object.Object, error) {
	if s.away != nil {
		return nil, s.away
	}
	return s.Store.Write(ctx, ops)
}

func newInProcess(t testing.TB, kind holdfast.Kind) *inProcess {
	s := storetest.New(t)
	if kind == holdfast.Kind_KIND_SECRET {
		return &inProcess{Store: releasestore.Secrets(s)}
	}
	return &inProcess{Store: releasestore.Configs(s)}
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
