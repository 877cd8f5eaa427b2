package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// edit changes a service of a name within a transaction.
func edit(tx *store.Tx, name string, change func(*api.Service)) error {
	found, err := store.Services.FindAll(tx, store.ByName(name))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%s: %d found, %w", name, len(found), err)
	}
	o := found[0].Copy()
	change(o)
	_, err = store.Services.Update(tx, o)
	return err
}

func rename(to string) func(*api.Service) {
	return func(o *api.Service) { o.Spec.Annotations.Name = to }
}

func label(v string) func(*api.Service) {
	return func(o *api.Service) { o.Spec.Annotations.Labels = map[string]string{"l": v} }
}

func status(o *api.Service) { o.PendingDelete = !o.PendingDelete }

func remove(tx *store.Tx, name string) error {
	found, err := store.Services.FindAll(tx, store.ByName(name))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%s: %d found, %w", name, len(found), err)
	}
	_, err = store.Services.Delete(tx, found[0].ID)
	return err
}

// Several changes of one object in one transaction are one change, with one event, and count
// once in its Meta.
func TestChangesOfOneTransactionMerge(t *testing.T) {
	type meta struct{ version, created, spec, generation, changes uint64 }
	steps := func(fns ...func(*store.Tx) error) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			for _, fn := range fns {
				if err := fn(tx); err != nil {
					return err
				}
			}
			return nil
		}
	}
	change := func(name string, with func(*api.Service)) func(*store.Tx) error {
		return func(tx *store.Tx) error { return edit(tx, name, with) }
	}
	removing := func(name string) func(*store.Tx) error {
		return func(tx *store.Tx) error { return remove(tx, name) }
	}
	// At revision 1 there are a and b.
	for name, c := range map[string]struct {
		fn     func(*store.Tx) error
		events string
		names  string
		metas  map[string]meta
	}{
		"create and update": {
			steps(creating("c"), change("c", label("1")), change("c", status)), "CREATE", "a b c ",
			map[string]meta{"c": {2, 2, 2, 1, 1}, "a": {1, 1, 1, 1, 1}},
		},
		"update twice": {
			steps(change("a", label("1")), change("a", label("2"))), "UPDATE", "a b ",
			map[string]meta{"a": {2, 1, 2, 2, 2}},
		},
		"status, then spec": {
			steps(change("a", status), change("a", label("2"))), "UPDATE", "a b ", map[string]meta{"a": {2, 1, 2, 2, 2}},
		},
		"spec, then status": {
			steps(change("a", label("2")), change("a", status)), "UPDATE", "a b ", map[string]meta{"a": {2, 1, 2, 2, 2}},
		},
		"status alone":          {change("a", status), "UPDATE", "a b ", map[string]meta{"a": {2, 1, 1, 1, 2}}},
		"update and remove":     {steps(change("a", label("1")), removing("a")), "REMOVE", "b ", nil},
		"create, update, away":  {steps(creating("c"), change("c", status), removing("c"), change("a", status)), "UPDATE", "a b ", nil},
		"names swapped":         {steps(change("a", rename("x")), change("b", rename("a")), change("x", rename("b"))), "UPDATE UPDATE", "b a ", nil},
		"name of a removed one": {steps(removing("a"), creating("A")), "REMOVE CREATE", "b A ", nil},
		"name given free":       {steps(change("a", rename("x")), creating("A")), "UPDATE CREATE", "x b A ", nil},
		"own name in capitals":  {change("a", rename("A")), "UPDATE", "A b ", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
			if _, err := s.Store.Update(t.Context(), steps(creating("a"), creating("b"))); err != nil {
				t.Fatal(err)
			}
			storetest.CheckImmutable(t, s.Store)
			w, err := s.Store.ViewAndWatch(100, func(store.ReadTx) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			res, err := s.Store.Update(t.Context(), c.fn)
			if err != nil || res.Revision != 2 {
				t.Fatalf("%+v, %v", res, err)
			}
			var events []string
			for e := range w.Events() {
				ev, ok := e.(state.EventChange)
				if !ok {
					break
				}
				events = append(events, strings.TrimPrefix(ev.Action().String(), "STORE_ACTION_"))
			}
			if strings.Join(events, " ") != c.events || len(res.IDs) != len(events) {
				t.Errorf("events %v, %d IDs; want %s", events, len(res.IDs), c.events)
			}
			wantNames(t, s, c.names)
			for name, want := range c.metas {
				o, err := store.Services.FindAll(s.Store.Root(), store.ByName(name))
				if err != nil || len(o) != 1 {
					t.Fatal(o, err)
				}
				m := o[0].Meta
				got := meta{m.Version.Index, m.CreatedVersion.Index, m.SpecVersion.Index, m.Generation, m.Changes}
				if got != want {
					t.Errorf("%s: %+v, want %+v", name, got, want)
				}
			}
			same(t, "leader and follower", s.Store, follower(t, s, store.Options{}).Store)
		})
	}
}

// What a transaction refuses, and of which kind the error is.
func TestRefusedChanges(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	create(t, s.Store, "a")
	create(t, s.Store, "b")
	for name, c := range map[string]struct {
		fn   func(*store.Tx) error
		kind errkind.Kind
	}{
		"name taken":        {creating("A"), errkind.Exists},
		"renamed to taken":  {func(tx *store.Tx) error { return edit(tx, "a", rename("B")) }, errkind.Exists},
		"taken by this one": {func(tx *store.Tx) error { _ = creating("C")(tx); return creating("c")(tx) }, errkind.Exists},
		"remove and create": {func(tx *store.Tx) error {
			o, err := store.Services.FindAll(tx, store.ByName("a"))
			if err != nil {
				return err
			}
			if _, err := store.Services.Delete(tx, o[0].ID); err != nil {
				return err
			}
			_, err = store.Services.Create(tx, o[0])
			return err
		}, errkind.Exists},
		"ID taken": {func(tx *store.Tx) error {
			o, err := store.Services.FindAll(tx, store.ByName("a"))
			if err != nil {
				return err
			}
			again := o[0].Copy()
			again.Spec.Annotations.Name = "new"
			_, err = store.Services.Create(tx, again)
			return err
		}, errkind.Exists},
		"update of none": {func(tx *store.Tx) error {
			_, err := store.Services.Update(tx, &api.Service{ID: "none"})
			return err
		}, errkind.NotFound},
		"remove of none": {func(tx *store.Tx) error {
			_, err := store.Services.Delete(tx, "none")
			return err
		}, errkind.NotFound},
		"version below": {func(tx *store.Tx) error {
			return edit(tx, "b", func(o *api.Service) { o.Meta.Version.Index--; status(o) })
		}, errkind.OutOfSequence},
		"version above": {func(tx *store.Tx) error {
			return edit(tx, "b", func(o *api.Service) { o.Meta.Version.Index++; status(o) })
		}, errkind.OutOfSequence},
		"no version": {func(tx *store.Tx) error {
			return edit(tx, "b", func(o *api.Service) { o.Meta = api.Meta{}; status(o) })
		}, errkind.OutOfSequence},
	} {
		_, err := s.Store.Update(t.Context(), c.fn)
		if !errkind.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
		if s.Store.Root().Revision() != 2 {
			t.Fatalf("%s: something was changed", name)
		}
	}
}

// A spec may be replaced by one that was made from it, whatever the status did since.
func TestCheckSpecVersion(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	for _, fn := range []func(*store.Tx) error{
		creating("a"), // 1
		func(tx *store.Tx) error { return edit(tx, "a", status) },     // 2
		func(tx *store.Tx) error { return edit(tx, "a", label("x")) }, // 3: the spec
		func(tx *store.Tx) error { return edit(tx, "a", status) },     // 4
		func(tx *store.Tx) error { return edit(tx, "a", status) },     // 5
	} {
		if _, err := s.Store.Update(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	o, err := store.Services.FindAll(s.Store.Root(), store.ByName("a"))
	if err != nil {
		t.Fatal(err)
	}
	for seen, ok := range []bool{false, false, false, true, true, true, false} {
		err := store.Services.CheckSpecVersion(o[0], uint64(seen))
		if (err == nil) != ok || !ok && !errkind.Is(err, errkind.OutOfSequence) {
			t.Errorf("from revision %d: %v", seen, err)
		}
	}
}

// An update that changes nothing does nothing, whatever is in the Meta that it is given.
func TestNoOpUpdate(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	create(t, s.Store, "a")
	res, err := s.Store.Update(t.Context(), func(tx *store.Tx) error {
		return edit(tx, "a", func(o *api.Service) {
			o.Meta.Generation, o.Meta.Changes, o.Meta.CreatedAt, o.Meta.UpdatedAt = 9, 9, nil, nil
			o.Spec.Annotations.Labels = map[string]string{}
		})
	})
	if err != nil || res.Revision != 1 || len(res.IDs) != 0 || s.Store.Root().Revision() != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

// The Meta is the store's: what a caller writes there is not kept.
func TestMetaIsTheStores(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	_, err := s.Store.Update(t.Context(), func(tx *store.Tx) error {
		o := service("a")
		o.Meta.Generation, o.Meta.Version.Index, o.Meta.Changes = 9, 9, 9
		made, err := store.Services.Create(tx, o)
		if err == nil && (made.Meta.Generation != 1 || made.Meta.Version.Index != 1 || made.Meta.Changes != 1) {
			err = fmt.Errorf("created with %v", made.Meta)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Times are the leader's clock, and never go back, also on the next leader whose clock is
// behind.
func TestTimesNeverGoBack(t *testing.T) {
	now := storetest.Start()
	o := store.Options{Clock: func() time.Time { return now }}
	s := storetest.NewLeader(t, "m", o).Auto(true)
	stamp := func(s *storetest.Script, name string, want time.Time) {
		t.Helper()
		var said time.Time
		if _, err := s.Store.Update(t.Context(), func(tx *store.Tx) error {
			said = tx.Now()
			return creating(name)(tx)
		}); err != nil {
			t.Fatal(err)
		}
		all, err := store.Services.FindAll(s.Store.Root(), store.ByName(name))
		if err != nil {
			t.Fatal(err)
		}
		at := all[0].Meta.CreatedAt
		if got := time.Unix(at.Seconds, int64(at.Nanos)); !got.Equal(want) || !said.Equal(want) || !at.Equal(all[0].Meta.UpdatedAt) {
			t.Errorf("%s: made at %v (now %v), want %v", name, got, said, want)
		}
	}
	stamp(s, "a", storetest.Start())
	now = storetest.Start().Add(-time.Hour)
	stamp(s, "b", storetest.Start())
	f := follower(t, s, o)
	f.Elect(2)
	stamp(f.Auto(true), "c", storetest.Start())
	restored := storetest.NewScript(t, "r", o)
	restored.Restore(storetest.Save(t, f.Store.Image()))
	restored.Elect(3)
	stamp(restored.Auto(true), "d", storetest.Start())
	now = storetest.Start().Add(time.Nanosecond)
	stamp(restored, "e", now)
	// A monotonic reading would hide that the wall clock was set back.
	now = time.Now()
	if _, err := restored.Store.Update(t.Context(), func(tx *store.Tx) error {
		if strings.Contains(tx.Now().String(), "m=") {
			t.Error("the time of a transaction has a monotonic reading, which it is compared by")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// What a read returns is shared, and CheckImmutable finds who changes it.
func TestCheckImmutable(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	made := create(t, s.Store, "a")
	given := service("b")
	if _, err := s.Store.Update(t.Context(), func(tx *store.Tx) error {
		_, err := store.Services.Create(tx, given)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	changed := storetest.Freeze(t, s.Store)
	given.Spec.Annotations.Name = "mine" // the store has a copy
	create(t, s.Store, "c")
	if got := changed(); len(got) != 0 {
		t.Errorf("changed: %v", got)
	}
	made.Spec.Annotations.Name = "z"
	if got := changed(); len(got) != 1 || !strings.Contains(got[0], made.ID) {
		t.Errorf("changed: %v, want %s", got, made.ID)
	}
	made.Spec.Annotations.Name = "a"
}
