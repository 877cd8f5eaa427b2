package store_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"weak"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// history gives the revisions that changed a service, as a view of the log tells them.
func history(log store.Log, id string) string {
	out := ""
	for r, c := range log.Of(holdfast.Kind_KIND_SERVICE, id) {
		out += fmt.Sprintf("%d%s ", r.Revision, strings.ToLower(strings.TrimPrefix(c.Action().String(), "STORE_ACTION_"))[:1])
	}
	return out
}

func revisions(log store.Log, after, upTo uint64) string {
	out := ""
	for r := range log.Between(after, upTo) {
		out += fmt.Sprint(r.Revision, " ")
	}
	return out
}

// A view of the log stays as it is, and whole, while the log goes on and is compacted.
func TestLogStays(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, s *storetest.Script){
		"it goes on": func(*testing.T, *storetest.Script) {},
		"compacted": func(t *testing.T, s *storetest.Script) {
			for _, to := range []uint64{3, 0} {
				if _, err := s.Store.Compact(t.Context(), to); err != nil {
					t.Fatal(err)
				}
			}
		},
		"restored": func(t *testing.T, s *storetest.Script) {
			if _, err := s.Store.Compact(t.Context(), 4); err != nil {
				t.Fatal(err)
			}
			s.Restore(storetest.Save(t, s.Store.Image()))
			s.Elect(2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
			update := func(fn func(*store.Tx) error) {
				if _, err := s.Store.Update(t.Context(), fn); err != nil {
					t.Fatal(err)
				}
			}
			a := create(t, s.Store, "a") // 1
			create(t, s.Store, "b")
			update(func(tx *store.Tx) error { return edit(tx, "a", label("x")) }) // 3
			update(func(tx *store.Tx) error { return remove(tx, "a") })
			update(func(tx *store.Tx) error { // 5, the same ID
				o := service("a")
				o.ID = a.ID
				_, err := store.Services.Create(tx, o)
				return err
			})
			log := s.Store.Log()
			view, err := s.Store.At(4)
			if err != nil {
				t.Fatal(err)
			}
			past, ok := store.LogOf(view)
			if !ok {
				t.Fatal("a view without a log")
			}
			update(func(tx *store.Tx) error { return edit(tx, "a", label("y")) }) // 6
			lose(t, s)
			update(func(tx *store.Tx) error { return edit(tx, "b", label("z")) })
			const all = "1c 3u 4r "
			for _, c := range []struct{ got, want string }{
				{history(log, a.ID), all + "5c "},
				{history(past, a.ID), all},
				{history(log, "nobody"), ""},
				{revisions(log, 0, 99), "1 2 3 4 5 "},
				{revisions(past, 0, 99), "1 2 3 4 "},
				{revisions(past, 1, 3), "2 3 "},
				{revisions(past, 3, 3), ""},
				{revisions(past, 9, 3), ""},
			} {
				if c.got != c.want {
					t.Errorf("%q, want %q", c.got, c.want)
				}
			}
			if log.Revision() != 5 || log.Floor() != 0 || past.Revision() != 4 {
				t.Errorf("%d to %d, and to %d", log.Floor(), log.Revision(), past.Revision())
			}
			if _, ok := past.Get(5); ok {
				t.Error("a view shows what comes after it")
			}
			for revision, want := range []string{"", "a ", "a b ", "a b ", "b ", "a b "} {
				tx, err := log.At(uint64(revision))
				if err != nil || names(tx) != want {
					t.Errorf("at %d: %v, %v", revision, tx, err)
				}
			}
			_, err = past.At(5)
			if e, _ := errors.AsType[*errkind.Error](err); e == nil || e.Kind != errkind.OutOfRange || e.Now != 4 || e.Seen != 5 {
				t.Errorf("after the view: %v", err)
			}
			for range log.Of(holdfast.Kind_KIND_SERVICE, a.ID) { // it can be left
				break
			}
			for range log.Between(0, 9) {
				break
			}
			for range log.Back() {
				break
			}
		})
	}
}

// What is compacted takes no memory any more.
func TestCompactionFrees(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	a := weak.Make(create(t, s.Store, "a"))
	for _, fn := range []func(*store.Tx) error{
		func(tx *store.Tx) error { return edit(tx, "a", label("x")) }, creating("b"),
	} {
		if _, err := s.Store.Update(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	if a.Value() == nil {
		t.Fatal("the log does not hold the first version")
	}
	if _, err := s.Store.Compact(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if a.Value() != nil {
		t.Error("the first version is held after it was compacted")
	}
	runtime.KeepAlive(s)
}

// HEAD has no log, and what is on HEAD is in none.
func TestLogDoesNotShowHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{})
		c := begin(t.Context(), s, func(tx *store.Tx) error {
			if _, ok := store.LogOf(tx); ok {
				t.Error("a transaction under way has a log")
			}
			return creating("a")(tx)
		})
		c.waits(t, "a")
		if log := s.Store.Log(); log.Revision() != 0 || revisions(log, 0, 9) != "" {
			t.Errorf("the log shows %q", revisions(log, 0, 9))
		}
		s.Commit()
		if log := s.Store.Log(); revisions(log, 0, 9) != "1 " {
			t.Errorf("the log shows %q", revisions(log, 0, 9))
		}
	})
}
