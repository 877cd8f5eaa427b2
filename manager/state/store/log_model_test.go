package store_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// Random transactions over all kinds, in which IDs and names come back, compactions and restores:
// lists, histories and net changes at random revisions are what full copies of every revision say,
// and a view of the log goes on to say the same.
func TestLogModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := store.Options{MaxLog: rapid.SampledFrom([]int{4, 20, 1000}).Draw(rt, "log")}
		w := &walk{t: rt, kinds: allKinds(), model: model{}, history: map[uint64]model{0: {}}}
		w.leader = storetest.NewLeader(t, "m", o).Auto(true)
		kept := []store.Log{w.leader.Store.Log()}
		for n := range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 11).Draw(rt, "step") {
			default:
				w.transaction()
			case 0:
				w.compact()
			case 1:
				snapshot := storetest.Save(t, w.leader.Store.Image())
				w.leader = storetest.NewScript(t, fmt.Sprint("r", n, "x"), o) // IDs of its own
				w.leader.Restore(snapshot)
				w.leader.Elect(w.leader.Store.Applied().Term + 1)
				w.leader.Auto(true)
			case 2:
				kept = append(kept, w.leader.Store.Log())
			}
			w.log(w.leader.Store.Log())
		}
		for _, log := range kept {
			w.log(log)
		}
	})
}

func (w *walk) compact() {
	st := w.leader.Store.Status()
	to := rapid.Uint64Range(st.Floor, st.Revision).Draw(w.t, "compact to")
	floor, err := w.leader.Store.Compact(w.t.Context(), to)
	if want := max(st.Floor, to); to > 0 && (err != nil || floor != want) {
		w.t.Fatalf("compact to %d: floor %d, %v, want %d", to, floor, err, want)
	}
}

// log compares a few things that a view of the log says with the model.
func (w *walk) log(log store.Log) {
	t := w.t
	floor, now := log.Floor(), log.Revision()
	for _, revision := range []uint64{now + 1, floor - 1} { // floor-1 may be a great number
		if _, err := log.At(revision); !errkind.Is(err, errkind.OutOfRange) || log.Check(revision) == nil {
			t.Fatalf("at %d of %d to %d: %v", revision, floor, now, err)
		}
	}
	revision := rapid.Uint64Range(floor, now).Draw(t, "revision")
	tx, err := log.At(revision)
	if err != nil || tx.Revision() != revision {
		t.Fatalf("at %d of %d to %d: %v", revision, floor, now, err)
	}
	w.lists(tx)
	past, ok := store.LogOf(tx)
	if !ok || past.Revision() != revision || past.Floor() != floor {
		t.Fatalf("the log of the view at %d: %d to %d, %t", revision, past.Floor(), past.Revision(), ok)
	}
	for _, l := range []store.Log{log, past} {
		w.versions(l)
		w.net(l)
	}
}

// lists compares what some selectors find.
func (w *walk) lists(tx store.ReadTx) {
	t := w.t
	k := &w.kinds[rapid.IntRange(0, len(w.kinds)-1).Draw(t, "listed kind")]
	part := rapid.SampledFrom([]string{"", "a", "A", "ab", "b", "é", "É", "m000", "r"}).Draw(t, "part")
	hasName := func(o state.Object) bool { return strings.EqualFold(k.found(o), part) }
	hasPrefix := func(o state.Object) bool {
		return strings.HasPrefix(strings.ToLower(k.found(o)), strings.ToLower(part))
	}
	hasID := func(o state.Object) bool { return strings.HasPrefix(o.GetID(), part) }
	for name, c := range map[string]struct {
		by   store.By
		want func(state.Object) bool
		key  func(state.Object) string // of its order, before the ID
	}{
		"all":       {store.All(), func(state.Object) bool { return true }, nil},
		"name":      {store.ByName(part), func(o state.Object) bool { return part != "" && hasName(o) }, nil},
		"prefix":    {store.ByNamePrefix(part), func(o state.Object) bool { return k.found(o) != "" && hasPrefix(o) }, k.found},
		"ID prefix": {store.ByIDPrefix(part), hasID, nil},
		"and": {
			store.And(store.ByIDPrefix(part), store.ByNamePrefix("a")),
			func(o state.Object) bool {
				return hasID(o) && strings.HasPrefix(strings.ToLower(k.found(o)), "a")
			}, nil,
		},
	} {
		var want []state.Object
		for key, o := range w.history[tx.Revision()] {
			if strings.HasPrefix(key, k.kind.String()+"/") && c.want(o) {
				want = append(want, o)
			}
		}
		slices.SortFunc(want, func(a, b state.Object) int {
			first := 0
			if c.key != nil {
				first = cmp.Compare(strings.ToLower(c.key(a)), strings.ToLower(c.key(b)))
			}
			return cmp.Or(first, cmp.Compare(a.GetID(), b.GetID()))
		})
		got, err := k.find(tx, c.by)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s by %s %q at %d: %d objects, %v, want %d", k.kind, name, part, tx.Revision(), len(got), err, len(want))
		}
		for i := range got {
			if encoded(t, got[i]) != encoded(t, want[i]) {
				t.Fatalf("%s by %s %q at %d: object %d is\n%v\nwant\n%v", k.kind, name, part, tx.Revision(), i, got[i], want[i])
			}
		}
	}
}

// show gives an object as text; one that is not there is "".
func (w *walk) show(o state.Object) string {
	if o == nil {
		return ""
	}
	return encoded(w.t, o)
}

// versions compares the history of every object that ever was.
func (w *walk) versions(log store.Log) {
	for i := range w.kinds {
		k := &w.kinds[i]
		for _, id := range w.ids {
			key := modelKey(k, id)
			var want, got []string
			for r := log.Floor() + 1; r <= log.Revision(); r++ {
				before, after := w.show(w.history[r-1][key]), w.show(w.history[r][key])
				if before != after {
					want = append(want, fmt.Sprintf("%d %q %q", r, before, after))
				}
			}
			for r, c := range log.Of(k.kind, id) {
				got = append(got, fmt.Sprintf("%d %q %q", r.Revision, w.show(c.Old), w.show(c.New)))
				same, ok := log.Get(r.Revision)
				change, has := same.Change(k.kind, id)
				if !ok || !has || change != c || string(same.TxnID) != string(r.TxnID) {
					w.t.Fatalf("revision %d of %s: %v, %t, %t", r.Revision, key, same, ok, has)
				}
			}
			if !slices.Equal(got, want) {
				w.t.Fatalf("%s from %d to %d:\n%q\nwant\n%q", key, log.Floor(), log.Revision(), got, want)
			}
		}
	}
}

// net compares the net changes between two revisions.
func (w *walk) net(log store.Log) {
	t := w.t
	from := rapid.Uint64Range(log.Floor(), log.Revision()).Draw(t, "from")
	to := rapid.Uint64Range(from, log.Revision()).Draw(t, "to")
	before, after := map[string]string{}, map[string]string{}
	next := from + 1
	var there []store.Revision
	for r := range log.Between(from, to) {
		if r.Revision != next {
			t.Fatalf("revision %d after %d", r.Revision, next-1)
		}
		next++
		there = append(there, r)
		for _, c := range r.Changes {
			key := c.Kind.String() + "/" + c.Object().GetID()
			if _, ok := before[key]; !ok {
				before[key] = w.show(c.Old)
			}
			after[key] = w.show(c.New)
		}
	}
	if next != to+1 {
		t.Fatalf("from %d to %d: ended at %d", from, to, next-1)
	}
	back := 0
	for r := range log.Back() {
		if want := log.Revision() - uint64(back); r.Revision != want {
			t.Fatalf("backwards: %d, want %d", r.Revision, want)
		}
		back++
	}
	if uint64(back) != log.Revision()-log.Floor() {
		t.Fatalf("backwards: %d revisions of %d to %d, %d", back, log.Floor(), log.Revision(), len(there))
	}
	for _, id := range w.ids {
		for i := range w.kinds {
			key := modelKey(&w.kinds[i], id)
			was, is := w.show(w.history[from][key]), w.show(w.history[to][key])
			if _, touched := before[key]; !touched && was != is || touched && (before[key] != was || after[key] != is) {
				t.Fatalf("%s from %d to %d: %q, %q, want %q, %q", key, from, to, before[key], after[key], was, is)
			}
		}
	}
}
