package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// Writers, readers of the present and of random revisions, watchers and snapshots, all at
// once: nothing races, each view is of one revision, and a follower, a restored member and the
// leader agree in the end.
func TestConcurrentUse(t *testing.T) {
	const writers, writes = 8, 80
	o := store.Options{MaxLog: 100, MaxRequests: 50, MaxPending: 5}
	s := storetest.NewLeader(t, "m", o).Auto(true)
	changed := storetest.Freeze(t, s.Store)
	var writing, others sync.WaitGroup
	stop := make(chan struct{})
	for n := range writers {
		writing.Go(func() {
			for i := range writes {
				err := writeOne(t, s.Store, n, i)
				for errkind.Is(err, errkind.UnknownOutcome) { // its ID grew too old while it waited
					err = writeOne(t, s.Store, n, i)
				}
				if err != nil {
					t.Errorf("writer %d: %v", n, err)
				}
			}
		})
	}
	during := func(do func() error) {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := do(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		during(func() error { return readOne(t, s.Store) })
	}
	during(func() error {
		snapshot := storetest.Save(t, s.Store.Image())
		r := storetest.NewScript(t, "r", o)
		return r.Store.Restore(snapshot.Reader())
	})
	during(func() error {
		var view store.ReadTx
		w, err := s.Store.ViewAndWatch(10_000, func(tx store.ReadTx) error { view = tx; return nil })
		if err != nil {
			return err
		}
		_, err = follow(w, view, min(view.Revision()+5, writers*writes))
		return errors.Join(err, w.Stop())
	})
	writing.Wait()
	close(stop)
	others.Wait()
	if got := s.Store.Root().Revision(); got != writers*writes {
		t.Errorf("revision %d, want %d", got, writers*writes)
	}
	for _, c := range changed() {
		t.Errorf("changed in place: %s", c)
	}
	f := follower(t, s, o)
	same(t, "leader and follower", s.Store, f.Store)
	r := storetest.NewScript(t, "r", o)
	r.Restore(storetest.Save(t, f.Store.Image()))
	same(t, "leader and restored", s.Store, r.Store)
}

// writeOne makes one revision: two objects that always have the same label, so that a view
// of half a transaction would be seen.
func writeOne(t *testing.T, s *store.MemoryStore, n, i int) error {
	ctx := t.Context()
	if i%2 == 0 {
		ctx = state.WithRequest(ctx, state.Request{
			ID: requestID(s.Root().Revision(), n*1000+i), Digest: []byte{byte(i)}, Caller: fmt.Sprint(n),
		})
	}
	_, err := s.Update(ctx, func(tx *store.Tx) error {
		for _, name := range []string{fmt.Sprint("left", n), fmt.Sprint("right", n)} {
			found, err := store.Services.FindAll(tx, store.ByName(name))
			if err != nil {
				return err
			}
			if len(found) == 0 {
				err = creating(name)(tx)
			} else {
				err = edit(tx, name, label(fmt.Sprint(i)))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

func readOne(t *testing.T, s *store.MemoryStore) error {
	now := s.Root()
	revision := now.Revision()
	if rand.IntN(3) > 0 {
		revision = rand.Uint64N(revision + 1)
	}
	tx, err := s.At(revision)
	if errkind.Is(err, errkind.OutOfRange) {
		return nil // below the floor, or it is by now
	}
	if err != nil || tx.Revision() != revision {
		return fmt.Errorf("at %d: %w", revision, err)
	}
	labels := map[string]string{}
	for o := range storetest.Objects(tx) {
		if o.GetMeta().Version.Index > revision {
			return fmt.Errorf("at %d: %s is of revision %d", revision, o.GetID(), o.GetMeta().Version.Index)
		}
	}
	all, err := store.Services.FindAll(tx, store.ByNamePrefix("left"))
	if err != nil {
		return err
	}
	for _, o := range all {
		labels[o.Spec.Annotations.Name[len("left"):]] = o.Spec.Annotations.Labels["l"]
	}
	for n, want := range labels {
		o, err := store.Services.FindAll(tx, store.ByName("right"+n))
		if err != nil || len(o) != 1 || o[0].Spec.Annotations.Labels["l"] != want {
			return fmt.Errorf("at %d: half a transaction is there: %v, want label %s (%w)", revision, o, want, err)
		}
	}
	return nil
}

// A leader that lost its place does not keep its HEAD, which may hold a whole old state.
func TestLostLeaderLetsGoOfHead(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{})
	s.Store.Lost(1)
	s.Apply(1, nil)
	if !store.HasHead(s.Store) {
		t.Error("HEAD drops in the order of the log, and its term is not over there")
	}
	s.Apply(2, nil)
	if store.HasHead(s.Store) {
		t.Error("HEAD is kept")
	}
}
