package store_test

import (
	"fmt"
	"testing"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

func service(name string) *api.Service {
	return &api.Service{Spec: api.ServiceSpec{Annotations: api.Annotations{Name: name}}}
}

func create(t testing.TB, s *store.MemoryStore, name string) *api.Service {
	t.Helper()
	var made *api.Service
	_, err := s.Update(t.Context(), func(tx *store.Tx) (err error) {
		made, err = store.Services.Create(tx, service(name))
		return err
	})
	if err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	return made
}

func TestCreateGetUpdateDelete(t *testing.T) {
	s := storetest.New(t)
	made := create(t, s, "Web")
	if made.Meta.Version.Index != 1 || made.Meta.Generation != 1 || made.Meta.Changes != 1 {
		t.Errorf("meta after create: %v", made.Meta)
	}
	tx := s.Root()
	if got := store.Services.Get(tx, made.ID); got != made {
		t.Errorf("got %v, want the created object", got)
	}
	if all, err := store.Services.FindAll(tx, store.ByName("wEB")); err != nil || len(all) != 1 {
		t.Errorf("by name: %v, %v", all, err)
	}
	_, err := s.Update(t.Context(), func(tx *store.Tx) error {
		_, err := store.Services.Create(tx, service("wEb"))
		return err
	})
	if !errkind.Is(err, errkind.Exists) {
		t.Errorf("second of the name: %v", err)
	}
	next := made.Copy()
	next.Spec.Annotations.Labels = map[string]string{"a": "b"}
	res, err := s.Update(t.Context(), func(tx *store.Tx) error {
		_, err := store.Services.Update(tx, next)
		return err
	})
	if err != nil || res.Revision != 2 {
		t.Fatalf("update: %v, %v", res, err)
	}
	if _, err = s.Update(t.Context(), func(tx *store.Tx) error {
		_, err := store.Services.Update(tx, next)
		return err
	}); !errkind.Is(err, errkind.OutOfSequence) {
		t.Errorf("stale update: %v", err)
	}
	if old, err := s.At(1); err != nil || store.Services.Get(old, made.ID).Meta.Version.Index != 1 {
		t.Errorf("at revision 1: %v", err)
	}
	if _, err = s.Update(t.Context(), func(tx *store.Tx) error {
		_, err := store.Services.Delete(tx, made.ID)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := store.Services.Get(s.Root(), made.ID); got != nil {
		t.Errorf("after delete: %v", got)
	}
	if old, err := s.At(2); err != nil || store.Services.Get(old, made.ID).Meta.Generation != 2 {
		t.Errorf("at revision 2: %v", err)
	}
}

func TestUnknownSelectorIsRefused(t *testing.T) {
	s := storetest.New(t)
	for _, by := range []store.By{
		store.ByServiceID("x"), store.Or(store.All(), store.ByServiceID("x")), store.And(store.ByNodeID("x")),
	} {
		if _, err := store.Networks.Find(s.Root(), by); !errkind.Is(err, errkind.Invalid) {
			t.Errorf("%v: %v", by, err)
		}
	}
}

func TestSameRequestGetsTheFirstOutcome(t *testing.T) {
	s := storetest.New(t)
	ctx := state.WithRequest(t.Context(), state.Request{ID: "0.abcdefghijklmnop", Digest: []byte{1}})
	runs := 0
	do := func(tx *store.Tx) error {
		runs++
		_, err := store.Services.Create(tx, service(fmt.Sprint("n", runs)))
		return err
	}
	first, err := s.Update(ctx, do)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Update(ctx, do)
	if err != nil || !again.Replayed || again.Revision != first.Revision || again.IDs[0] != first.IDs[0] || runs != 1 {
		t.Errorf("again: %+v, %v after %d runs; first %+v", again, err, runs, first)
	}
	other := state.WithRequest(t.Context(), state.Request{ID: "0.abcdefghijklmnop", Digest: []byte{2}})
	if _, err := s.Update(other, do); !errkind.Is(err, errkind.Invalid) {
		t.Errorf("same ID for another request: %v", err)
	}
}
