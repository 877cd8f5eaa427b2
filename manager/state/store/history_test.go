package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// content gives everything in a view, as text.
func content(t tester, tx store.ReadTx) string {
	var b strings.Builder
	for o := range storetest.Objects(tx) {
		fmt.Fprintf(&b, "%T%q\n", o, encoded(t, o))
		if _, ok := o.(*api.Service); !ok {
			continue
		}
		if got := store.Services.Get(tx, o.GetID()); got != o {
			t.Errorf("%s is found, and got as %v", o.GetID(), got)
		}
	}
	for _, by := range []store.By{
		store.ByName("n1"), store.ByNamePrefix("n"), store.ByNamePrefix("n1"), store.ByIDPrefix(""), store.ByIDPrefix("m"),
		store.Or(store.ByName("n2"), store.ByNamePrefix("n1")), store.And(store.ByNamePrefix("n"), store.ByIDPrefix("m")),
		store.ByName("gone"),
	} {
		found, err := store.Services.FindAll(tx, by)
		if err != nil {
			t.Errorf("%v", err)
		}
		for _, o := range found {
			fmt.Fprintf(&b, "%s/%s/%d ", o.ID, o.Spec.Annotations.Name, o.Meta.Version.Index)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// scribe writes random changes, and remembers what each revision looked like.
type scribe struct {
	*storetest.Script
	rand *rand.Rand
	was  map[uint64]string
}

func newScribe(t *testing.T, s *storetest.Script) *scribe {
	return &scribe{Script: s.Auto(true), rand: rand.New(rand.NewPCG(1, 2)), was: map[uint64]string{0: content(t, s.Store.Root())}}
}

func (w *scribe) write(t *testing.T, n int) {
	t.Helper()
	for range n {
		name := fmt.Sprint("n", w.rand.IntN(12))
		_, err := w.Store.Update(t.Context(), func(tx *store.Tx) error {
			found, err := store.Services.FindAll(tx, store.ByName(name))
			switch {
			case err != nil:
				return err
			case len(found) == 0:
				return creating(name)(tx)
			case w.rand.IntN(3) == 0:
				return remove(tx, name)
			}
			return edit(tx, name, label(strings.Repeat("x", w.rand.IntN(400))))
		})
		if err != nil {
			t.Fatal(err)
		}
		w.was[w.Store.Root().Revision()] = content(t, w.Store.Root())
	}
}

// reads compares n reads at random revisions, and one at each.
func (w *scribe) reads(t *testing.T, s *store.MemoryStore, n int) {
	t.Helper()
	st := s.Status()
	for i := range n + int(st.Revision) + 3 {
		revision := uint64(i)
		if i > int(st.Revision)+2 {
			revision = w.rand.Uint64N(st.Revision + 1)
		}
		tx, err := s.At(revision)
		want, _ := errors.AsType[*errkind.Error](err)
		switch {
		case revision > st.Revision:
			if !errkind.Is(err, errkind.OutOfRange) || want.Now != st.Revision || want.Seen != revision ||
				!strings.Contains(err.Error(), "future revision") || want.Hint == "" {
				t.Errorf("at %d of %d: %#v", revision, st.Revision, err)
			}
		case revision < st.Floor:
			if !errkind.Is(err, errkind.OutOfRange) || want.Now != st.Floor || want.Seen != revision ||
				!strings.Contains(err.Error(), "compacted") || want.Hint == "" {
				t.Errorf("at %d, floor %d: %#v", revision, st.Floor, err)
			}
		case err != nil || tx.Revision() != revision:
			t.Errorf("at %d: %v", revision, err)
		default:
			if got := content(t, tx); got != w.was[revision] {
				t.Errorf("at %d of %d: %s\nwant %s", revision, st.Revision, got, w.was[revision])
			}
		}
	}
}

// Every revision in the window reads as it was, however the reads follow each other, while
// the window moves, and after a restart.
func TestHistory(t *testing.T) {
	for name, o := range map[string]store.Options{
		"all":            {},
		"bound by count": {MaxLog: 20},
		"bound by bytes": {MaxLogBytes: 5000},
		"one":            {MaxLog: 1},
		"less than one":  {MaxLogBytes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newScribe(t, storetest.NewLeader(t, "m", o))
			f := storetest.NewScript(t, "f", o)
			for range 8 {
				w.write(t, 9)
				f.Feed(w.Log()...)
				changed := storetest.Freeze(t, w.Store)
				w.reads(t, w.Store, 60)
				w.reads(t, f.Store, 20)
				st := w.Store.Status()
				if o.MaxLog > 0 && st.LogEntries > o.MaxLog || o.MaxLogBytes > 0 && st.LogEntries > 1 && st.LogBytes > o.MaxLogBytes {
					t.Errorf("the log is over its bound: %+v", st)
				}
				if st.Floor != f.Store.Status().Floor || st.Floor+uint64(st.LogEntries) != st.Revision {
					t.Errorf("%+v, follower %+v", st, f.Store.Status())
				}
				if c := changed(); len(c) > 0 {
					t.Errorf("reads changed %v", c)
				}
				same(t, "leader and follower", w.Store, f.Store)
				if w.rand.IntN(2) == 0 {
					snapshot := storetest.Save(t, f.Store.Image())
					f = storetest.NewScript(t, "r", o)
					f.Restore(snapshot)
				}
			}
		})
	}
}

// A restore does not leave another history behind.
func TestHistoryAfterRestore(t *testing.T) {
	a := newScribe(t, storetest.NewLeader(t, "a", store.Options{}))
	b := newScribe(t, storetest.NewLeader(t, "b", store.Options{}))
	a.write(t, 20)
	b.rand.Uint64() // not the same history
	b.write(t, 30)
	a.reads(t, a.Store, 10)
	a.Auto(false).Store.Lost(1)
	a.Restore(storetest.Save(t, b.Store.Image()))
	b.reads(t, a.Store, 50)
}

// A view is of one revision for as long as it is kept.
func TestViewsStay(t *testing.T) {
	w := newScribe(t, storetest.NewLeader(t, "m", store.Options{MaxLog: 10}))
	kept := map[uint64]store.ReadTx{}
	for range 30 {
		w.write(t, 1)
		now := w.Store.Root()
		kept[now.Revision()] = now
		if past, err := w.Store.At(max(now.Revision(), 5) - 5); err == nil {
			kept[past.Revision()] = past
		}
	}
	for revision, tx := range kept {
		if content(t, tx) != w.was[revision] {
			t.Errorf("the view of revision %d has changed", revision)
		}
	}
}
