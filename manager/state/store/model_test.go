package store_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// A model is what the store must hold: objects by kind and ID, each with its encoding.
type model map[string]state.Object

func modelKey(k *kindOps, id string) string { return k.kind.String() + "/" + id }

// taken tells whether another object of the kind has the name.
func (m model) taken(k *kindOps, name, id string) bool {
	for key, o := range m {
		if k.unique && name != "" && strings.HasPrefix(key, k.kind.String()+"/") && o.GetID() != id &&
			strings.EqualFold(k.name(o), name) {
			return true
		}
	}
	return false
}

// walk drives random transactions against the store and the model.
type walk struct {
	t       *rapid.T
	kinds   []kindOps
	leader  *storetest.Script
	model   model
	history map[uint64]model // by revision
	ids     []string         // that were ever made, as kind index and ID
}

// random transactions over all seven kinds: the store holds what plain maps say, at every
// revision that it keeps, and so do a follower and a member that was restored on the way.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := store.Options{MaxLog: rapid.SampledFrom([]int{5, 12, 1000}).Draw(rt, "log"), MaxRequests: 4}
		if rapid.Bool().Draw(rt, "bound by bytes") {
			o.MaxLogBytes = 1500
		}
		w := &walk{t: rt, kinds: allKinds(), model: model{}, history: map[uint64]model{0: {}}}
		w.leader = storetest.NewLeader(t, "m", o).Auto(true)
		other := storetest.NewScript(t, "f", o)
		changed := func() []string { return nil }
		for n := range rapid.IntRange(1, 12).Draw(rt, "transactions") {
			w.transaction()
			other.Feed(w.leader.Log()...)
			w.check(w.leader.Store)
			w.check(other.Store)
			same(rt, "leader and other", w.leader.Store, other.Store)
			switch rapid.IntRange(0, 9).Draw(rt, "then") {
			case 0: // a new member takes the follower's place
				snapshot := storetest.Save(t, other.Store.Image())
				other = storetest.NewScript(t, fmt.Sprint("r", n, "x"), o) // IDs of its own
				other.Restore(snapshot)
			case 1: // the follower leads, and the leader follows
				term := other.Store.Applied().Term + 1
				w.leader.Auto(false)
				w.leader.Store.Lost(term - 1)
				other.Elect(term)
				w.leader.Feed(other.Log()...)
				w.leader, other = other.Auto(true), w.leader
			case 2:
				for _, c := range changed() {
					rt.Errorf("changed in place: %s", c)
				}
				changed = storetest.Freeze(t, w.leader.Store)
			}
		}
		for _, c := range changed() {
			rt.Errorf("changed in place: %s", c)
		}
	})
}

// transaction does a few random things in one transaction, and the same to the model.
func (w *walk) transaction() {
	t := w.t
	next := maps.Clone(w.model)
	revision := w.leader.Store.Root().Revision() + 1
	touched := map[string]state.Object{} // the model's object before, nil for a create
	_, err := w.leader.Store.Update(t.Context(), func(tx *store.Tx) error {
		for range rapid.IntRange(1, 6).Draw(t, "operations") {
			k := &w.kinds[rapid.IntRange(0, len(w.kinds)-1).Draw(t, "kind")]
			w.operation(tx, k, next, touched)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("transaction: %v", err)
	}
	changes := 0
	for key, before := range touched {
		if before != nil || next[key] != nil {
			changes++
		}
	}
	got := w.leader.Store.Root().Revision()
	if changes == 0 {
		revision--
	}
	if got != revision {
		t.Fatalf("revision %d, want %d: %d objects changed", got, revision, changes)
	}
	w.model = next
	w.history[revision] = next
}

// operation does one thing. What it must come to follows from the model alone.
func (w *walk) operation(tx *store.Tx, k *kindOps, next model, touched map[string]state.Object) {
	t := w.t
	name := rapid.SampledFrom([]string{"", "a", "A", "b", "ab", "é", "É"}).Draw(t, "name")
	v := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value")
	id := ""
	if len(w.ids) > 0 {
		id = rapid.SampledFrom(w.ids).Draw(t, "id")
	}
	key := modelKey(k, id)
	old := next[key]
	if old == nil || rapid.IntRange(0, 3).Draw(t, "what") == 0 {
		w.create(tx, k, next, touched, name, id)
		return
	}
	var o state.Object
	spec := true
	switch what := rapid.IntRange(0, 5).Draw(t, "change"); {
	case what == 0:
		if err := k.remove(tx, id); err != nil {
			t.Fatalf("remove %s: %v", key, err)
		}
		note(touched, key, old)
		delete(next, key)
		return
	case what == 1:
		o, spec = k.rename(old, name), k.renameIsSpec
	case what == 2 && k.status != nil:
		o, spec = k.status(old, v), false
	case what == 3:
		o = old // nothing
	case what == 4:
		stale := k.version(k.spec(old, v), old.GetMeta().Version.Index+uint64(rapid.SampledFrom([]int{-1, 1}).Draw(t, "off")))
		if _, err := k.update(tx, stale); !errkind.Is(err, errkind.OutOfSequence) {
			t.Fatalf("stale update of %s: %v", key, err)
		}
		return
	default:
		o = k.spec(old, v)
	}
	w.update(tx, k, next, touched, old, o, spec)
}

func (w *walk) create(tx *store.Tx, k *kindOps, next model, touched map[string]state.Object, name, id string) {
	t := w.t
	o := k.fresh(name)
	_, mine := touched[modelKey(k, id)]
	wantErr := next.taken(k, name, "")
	if id != "" && rapid.IntRange(0, 2).Draw(t, "own ID") == 0 {
		o = k.withID(o, id)
		wantErr = wantErr || next[modelKey(k, id)] != nil || mine
	}
	made, err := k.create(tx, o)
	if wantErr != errkind.Is(err, errkind.Exists) || !wantErr && err != nil {
		t.Fatalf("create %s %q: %v, want an error: %t", k.kind, name, err, wantErr)
	}
	if err != nil {
		return
	}
	o = k.withID(o, made.GetID())
	m := k.meta(o)
	m.Version.Index, m.CreatedVersion.Index, m.SpecVersion.Index = tx.Revision()+1, tx.Revision()+1, tx.Revision()+1
	m.Generation, m.Changes = 1, 1
	m.CreatedAt, m.UpdatedAt = made.GetMeta().CreatedAt, stamp(tx)
	key := modelKey(k, made.GetID())
	note(touched, key, nil)
	next[key] = o
	if !slices.Contains(w.ids, made.GetID()) {
		w.ids = append(w.ids, made.GetID())
	}
}

func (w *walk) update(tx *store.Tx, k *kindOps, next model, touched map[string]state.Object, old, o state.Object, spec bool) {
	t := w.t
	key := modelKey(k, old.GetID())
	differs := encoded(t, o) != encoded(t, old)
	wantErr := differs && next.taken(k, k.name(o), o.GetID())
	_, err := k.update(tx, o)
	if wantErr != errkind.Is(err, errkind.Exists) || !wantErr && err != nil {
		t.Fatalf("update %s: %v, want an error: %t", key, err, wantErr)
	}
	if err != nil || !differs {
		return
	}
	note(touched, key, old)
	o = k.version(o, tx.Revision()+1) // a copy
	m := k.meta(o)
	if old.GetMeta().Version.Index != tx.Revision()+1 {
		m.Changes++
	}
	if spec && old.GetMeta().SpecVersion.Index != tx.Revision()+1 {
		m.Generation++
		m.SpecVersion.Index = tx.Revision() + 1
	}
	m.UpdatedAt = stamp(tx)
	next[key] = o
}

func note(touched map[string]state.Object, key string, before state.Object) {
	if _, ok := touched[key]; !ok {
		touched[key] = before
	}
}

// check compares a store with the model, at every revision.
func (w *walk) check(s *store.MemoryStore) {
	t := w.t
	now := s.Root().Revision()
	order := []uint64{now}
	for revision := uint64(0); revision < now; revision++ {
		order = append(order, revision)
	}
	floor := s.Status().Floor
	for _, revision := range rapid.Permutation(order).Draw(t, "order") {
		tx, err := s.At(revision)
		if revision < floor {
			if !errkind.Is(err, errkind.OutOfRange) {
				t.Fatalf("at %d below the floor %d: %v", revision, floor, err)
			}
			continue
		}
		if err != nil || tx.Revision() != revision {
			t.Fatalf("at %d, floor %d: %v", revision, floor, err)
		}
		w.compare(tx, w.history[revision], fmt.Sprintf("at %d of %d", revision, now))
	}
}

func (w *walk) compare(tx store.ReadTx, want model, what string) {
	n := 0
	for i := range w.kinds {
		k := &w.kinds[i]
		for _, id := range w.ids {
			o, wanted := k.get(tx, id), want[modelKey(k, id)]
			if (o == nil) != (wanted == nil) || o != nil && encoded(w.t, o) != encoded(w.t, wanted) {
				w.t.Fatalf("%s: %s %s is\n%v\nwant\n%v", what, k.kind, id, o, wanted)
			}
		}
	}
	for range storetest.Objects(tx) {
		n++
	}
	if n != len(want) {
		w.t.Fatalf("%s: %d objects, want %d", what, n, len(want))
	}
}
