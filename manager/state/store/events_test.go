package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"holdfast/api"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
	"holdfast/watch"
)

// follow applies events to what a view showed, and checks their order, until revision last.
func follow(w *watch.Watcher, view store.ReadTx, last uint64) (map[string]*api.Service, error) {
	have := map[string]*api.Service{}
	for o := range storetest.Objects(view) {
		have[o.GetID()] = o.(*api.Service)
	}
	at := view.Revision()
	for at < last {
		e, ok := <-w.Events()
		if !ok {
			return nil, fmt.Errorf("at %d: ended: %w", at, w.Err())
		}
		switch e := e.(type) {
		case state.EventCommit:
			if at++; e.Revision != at {
				return nil, fmt.Errorf("commit of %d after %d", e.Revision, at-1)
			}
		case state.EventChange:
			id := e.Object().GetID()
			if e.Revision != at+1 {
				return nil, fmt.Errorf("change of %d after the commit of %d", e.Revision, at)
			}
			if old, ok := have[id]; ok != (e.Old != nil) || ok && e.Old != state.Object(old) {
				return nil, fmt.Errorf("at %d: %s changes from %v, was %v", e.Revision, id, e.Old, old)
			}
			if delete(have, id); e.New != nil {
				have[id] = e.New.(*api.Service)
			}
		default:
			return nil, fmt.Errorf("at %d: event %T", at, e)
		}
	}
	return have, nil
}

// A watcher gets exactly the events after its view, in order, whoever writes meanwhile.
func TestViewAndWatch(t *testing.T) {
	const writers, each, watchers = 4, 60, 12
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	var wg sync.WaitGroup
	results := make(chan error, watchers+writers*each)
	watching := func() {
		var view store.ReadTx
		w, err := s.Store.ViewAndWatch(10_000, func(tx store.ReadTx) error { view = tx; return nil })
		if err != nil {
			results <- err
			return
		}
		got, err := follow(w, view, writers*each)
		if err == nil {
			n := 0
			for o := range storetest.Objects(s.Store.Root()) {
				if n++; got[o.GetID()] != o {
					err = fmt.Errorf("%s is %v, want %v", o.GetID(), got[o.GetID()], o)
				}
			}
			if n != len(got) {
				err = fmt.Errorf("%d objects, want %d", len(got), n)
			}
		}
		results <- errors.Join(err, w.Stop())
	}
	for n := range writers {
		wg.Go(func() {
			for i := range each {
				name := fmt.Sprint("n", n, "-", i%7)
				_, err := s.Store.Update(t.Context(), func(tx *store.Tx) error {
					if found, err := store.Services.FindAll(tx, store.ByName(name)); err != nil || len(found) == 0 {
						return errors.Join(err, creating(name)(tx))
					}
					if i%3 == 0 {
						return remove(tx, name)
					}
					return edit(tx, name, label(fmt.Sprint(i)))
				})
				if err != nil {
					results <- err
				}
				if i%(each/(watchers/writers)) == n {
					wg.Go(watching)
				}
			}
		})
	}
	wg.Wait()
	close(results)
	n := 0
	for err := range results {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != watchers {
		t.Errorf("%d watchers ended, want %d", n, watchers)
	}
}

// A consumer that leaves its events is cut off and told so; the writer never waits for it.
func TestSlowWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
		slow, err := s.Store.ViewAndWatch(3, func(store.ReadTx) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		fast, err := s.Store.ViewAndWatch(100, func(store.ReadTx) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			create(t, s.Store, fmt.Sprint("n", i)) // two events each
		}
		synctest.Wait()
		var got []any
		for e := range slow.Events() {
			got = append(got, e)
		}
		if len(got) != 3 || !errors.Is(slow.Err(), watch.ErrSlow) {
			t.Errorf("%d events, %v", len(got), slow.Err())
		}
		// It is told where to go on: after revision 1, since of revision 2 it has a part only.
		e, ok := errors.AsType[*watch.SlowError](slow.Err())
		if !ok || e.Position != 1 {
			t.Fatalf("got %v, want to go on after 1", slow.Err())
		}
		if missed, err := s.Store.Changes(e.Position, 100); err != nil || len(missed) != 9 || missed[0].Revision != 2 {
			t.Errorf("the log has %d revisions from there, %v", len(missed), err)
		}
		if len(fast.Events()) != 20 || fast.Err() != nil {
			t.Errorf("the other one has %d events, %v", len(fast.Events()), fast.Err())
		}
		if err := errors.Join(slow.Stop(), fast.Stop(), fast.Stop()); err != nil {
			t.Error(err)
		}
	})
}

// A restore is one event: what was between is in the log. Then events go on.
func TestEventReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := busy(t, store.Options{})
		m := storetest.NewScript(t, "r", store.Options{})
		watcher, err := m.Store.ViewAndWatch(100, func(store.ReadTx) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		m.Restore(storetest.Save(t, w.Store.Image()))
		revision := m.Store.Root().Revision()
		create(t, w.Store, "next")
		m.Feed(w.Log()...)
		synctest.Wait()
		if e := <-watcher.Events(); e != (state.EventReset{Revision: revision}) {
			t.Errorf("first: %#v", e)
		}
		if e, ok := (<-watcher.Events()).(state.EventChange); !ok || e.Revision != revision+1 {
			t.Errorf("second: %#v", e)
		}
		if e := <-watcher.Events(); e != (state.EventCommit{Revision: revision + 1}) {
			t.Errorf("third: %#v", e)
		}
	})
}

// A view that fails leaves no watcher, and its error is what is returned.
func TestViewThatFails(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	if w, err := s.Store.ViewAndWatch(1, func(store.ReadTx) error { return errMine }); !errors.Is(err, errMine) || w != nil {
		t.Errorf("%v, %v", w, err)
	}
	w, err := s.Store.ViewAndWatch(1, func(store.ReadTx) error { return errors.Join(errMine, s.Store.Close()) })
	if !errors.Is(err, errMine) || w != nil {
		t.Errorf("closed meanwhile: %v, %v", w, err)
	}
}

// After Close nobody watches, and nothing is left that would have to end.
func TestWatchAfterClose(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	w, err := s.Store.ViewAndWatch(10, func(store.ReadTx) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Store.Close(), s.Store.Close()); err != nil {
		t.Error(err)
	}
	if _, ok := <-w.Events(); ok || !errors.Is(w.Err(), watch.ErrClosed) {
		t.Errorf("open %t, %v", ok, w.Err())
	}
	for i := range 3 { // writes go on
		create(t, s.Store, fmt.Sprint("n", i))
		if w, err := s.Store.ViewAndWatch(10, func(store.ReadTx) error { return nil }); !errors.Is(err, watch.ErrClosed) {
			t.Errorf("%v, %v", w, err)
		}
	}
}
