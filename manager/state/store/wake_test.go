package store_test

import (
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

func woken(w *store.Waker) bool {
	select {
	case <-w.C:
		return true
	default:
		return false
	}
}

func TestWakerWakesForItsKinds(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	write := func(name string, network bool) {
		t.Helper()
		if _, err := s.Store.Update(t.Context(), func(tx *store.Tx) (err error) {
			a := api.Annotations{Name: name}
			if network {
				_, err = store.Networks.Create(tx, &api.Network{Spec: api.NetworkSpec{Annotations: a}})
			} else {
				_, err = store.Services.Create(tx, &api.Service{Spec: api.ServiceSpec{Annotations: a}})
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	services := store.Interest{Kinds: store.Kinds(holdfast.Kind_KIND_SERVICE)}
	networks := store.Interest{Kinds: store.Kinds(holdfast.Kind_KIND_NETWORK)}
	any := store.Interest{Kinds: services.Kinds | networks.Kinds}
	w, other, both := s.Store.NewWaker(), s.Store.NewWaker(), s.Store.NewWaker()
	for _, sleeper := range []struct {
		w        *store.Waker
		interest store.Interest
	}{{w, services}, {other, networks}, {both, any}} {
		if !sleeper.w.Sleep(sleeper.interest, 0) {
			t.Fatal("there is something to see in an empty store")
		}
	}
	write("a", false)
	write("b", false)
	if !woken(w) || woken(other) || !woken(both) {
		t.Error("a change of a service woke not just those who wait for it")
	}
	// What was nothing to a sleeper is passed over; what woke it is not.
	if at := w.Wake(); at != 0 {
		t.Errorf("woken by revision 1, the sleeper is told %d", at)
	}
	if at := other.Wake(); at != 2 {
		t.Errorf("the sleeper that nothing woke is told %d of 2", at)
	}
	if w.Sleep(services, 1) {
		t.Error("revision 2 is not seen, and there is nothing to see")
	}
	if !w.Sleep(services, 2) || !other.Sleep(networks, 0) {
		t.Error("all is seen, and there is something to see")
	}
	write("n", true)
	if woken(w) || !woken(other) || other.Wake() != 2 {
		t.Error("a change of a network woke not just those who wait for it")
	}
	// A sleeper that wakes by itself is not woken by what comes then.
	if at := w.Wake(); at != 3 {
		t.Errorf("the sleeper is told %d of 3", at)
	}
	write("c", false)
	if woken(w) {
		t.Error("a waker that is awake was woken")
	}
	// One that waits for a revision to come is not woken by those before it.
	if !w.Sleep(services, 6) {
		t.Error("there is something to see after a revision that is not there")
	}
	write("d", false)
	write("e", false)
	if woken(w) {
		t.Error("woken by revisions 5 and 6, and not waiting for them")
	}
	if write("f", false); !woken(w) || w.Wake() != 6 {
		t.Error("not woken by revision 7")
	}
}

// One who waits for some objects is woken by changes of those alone, whether they have the value
// or had it.
func TestWakerWakesForValues(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	move := func(id, node string) uint64 {
		t.Helper()
		r, err := s.Store.Update(t.Context(), func(tx *store.Tx) error {
			if old := store.Tasks.Get(tx, id); old != nil {
				o := old.Copy()
				o.NodeID = node
				_, err := store.Tasks.Update(tx, o)
				return err
			}
			_, err := store.Tasks.Create(tx, &api.Task{ID: id, NodeID: node})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.Revision
	}
	index, values, ok := store.ByNodeID("n1").Exact()
	if !ok || len(values) != 1 {
		t.Fatal("a node's ID is not exact")
	}
	interest := store.Interest{Values: []store.Value{{Kind: holdfast.Kind_KIND_TASK, Index: index, Value: "n1"}}}
	w := s.Store.NewWaker()
	at := uint64(0)
	for _, c := range []struct {
		task, node string
		wakes      bool
	}{
		{"a", "n2", false},
		{"b", "n1", true},
		{"a", "n3", false},
		{"b", "n2", true}, // leaves
		{"a", "n1", true}, // comes
	} {
		if !w.Sleep(interest, at) {
			t.Fatalf("at %d: there is something to see", at)
		}
		at = move(c.task, c.node)
		if woken(w) != c.wakes {
			t.Errorf("task %s on %s: woken: %v", c.task, c.node, !c.wakes)
		}
		want := at
		if c.wakes {
			want--
		}
		if told := w.Wake(); told != want {
			t.Errorf("task %s on %s: told %d, want %d", c.task, c.node, told, want)
		}
	}
}

// A snapshot that takes the place of the state wakes all: what is in its log may be for them.
func TestWakerWakesWhenTheStateIsReplaced(t *testing.T) {
	leader := storetest.NewLeader(t, "leader", store.Options{}).Auto(true)
	follower := storetest.NewScript(t, "follower", store.Options{})
	kinds := store.Interest{Kinds: store.Kinds(holdfast.Kind_KIND_TASK)}
	w := follower.Store.NewWaker()
	if !w.Sleep(kinds, 0) {
		t.Fatal("there is something to see in an empty store")
	}
	for range 3 {
		if _, err := leader.Store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := store.Tasks.Create(tx, &api.Task{})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	follower.Restore(storetest.Save(t, leader.Store.Image()))
	if !woken(w) || w.Wake() != 0 {
		t.Error("not woken by a snapshot")
	}
	if w.Sleep(kinds, 2) {
		t.Error("revision 3 is not seen, and there is nothing to see")
	}
	if !w.Sleep(kinds, 3) {
		t.Error("all is seen, and there is something to see")
	}
}

func TestEntries(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	for range 5 {
		if _, err := s.Store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := store.Tasks.Create(tx, &api.Task{})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Store.Compact(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after uint64
		room  int
		want  []uint64
		at    uint64
	}{
		{2, 2, []uint64{3, 4}, 4},
		{2, 9, []uint64{3, 4, 5}, 5},
		{4, 1, []uint64{5}, 5},
		{5, 1, nil, 5},
		{9, 1, nil, 9},
	} {
		entries, at, err := s.Store.Entries(c.after, make([]store.Entry, 0, c.room))
		if err != nil || at != c.at || len(entries) != len(c.want) {
			t.Errorf("after %d: %d entries up to %d, %v; want %v", c.after, len(entries), at, err, c.want)
			continue
		}
		for i, e := range entries {
			if e.Revision() != c.want[i] || len(e.Changes()) != 1 {
				t.Errorf("after %d: revision %d, want %d", c.after, e.Revision(), c.want[i])
			}
		}
	}
	if _, _, err := s.Store.Entries(1, nil); !errkind.Is(err, errkind.OutOfRange) {
		t.Errorf("below the floor: %v", err)
	}
}
