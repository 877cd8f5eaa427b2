package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// Writers do not wait for each other's consensus: all are on HEAD before one is committed,
// each sees those before it, and readers see none of them.
func TestManyUpdatesAreInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{})
		var calls []*call
		saw := ""
		for i := range 5 {
			calls = append(calls, begin(t.Context(), s, func(tx *store.Tx) error {
				saw += fmt.Sprint(tx.Revision(), ":", names(tx), "|")
				return creating(fmt.Sprint("n", i))(tx)
			}))
		}
		if want := "0:|1:n0 |2:n0 n1 |3:n0 n1 n2 |4:n0 n1 n2 n3 |"; saw != want {
			t.Errorf("the functions saw %q, want %q", saw, want)
		}
		handed := s.Take()
		for _, c := range calls {
			c.waits(t, "before commit")
		}
		if wantNames(t, s, ""); s.Store.Root().Revision() != 0 || s.Store.Status().Pending != 5 {
			t.Errorf("before commit: %+v", s.Store.Status())
		}
		kept := s.Store.Root()
		s.Apply(1, handed)
		for i, c := range calls {
			c.committed(t, fmt.Sprint("n", i), uint64(i+1))
		}
		wantNames(t, s, "n0 n1 n2 n3 n4 ")
		if got := names(kept); got != "" {
			t.Errorf("a view that was opened before shows %q", got)
		}
		if st := s.Store.Status(); st.Pending != 0 || st.PendingBytes != 0 {
			t.Errorf("after commit: %+v", st)
		}
		same(t, "leader and follower", s.Store, follower(t, s, store.Options{}).Store)
	})
}

// What raft has taken is committed entry by entry, while later ones go on to wait.
func TestEntriesCommitOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{})
		a := begin(t.Context(), s, creating("a"))
		first := s.Take()
		b := begin(t.Context(), s, creating("b"))
		second := s.Take()
		c := begin(t.Context(), s, creating("c"))
		s.Apply(1, first)
		a.committed(t, "a", 1)
		b.waits(t, "b")
		wantNames(t, s, "a ")
		s.Apply(1, second)
		b.committed(t, "b", 2)
		c.waits(t, "c")
		s.Commit()
		c.committed(t, "c", 3)
		if s.Take() != nil {
			t.Error("there is something left to take")
		}
	})
}

// Only the first applied entry of its own term opens the store, whatever is in it.
func TestWritesOpenWithTheFirstEntryOfTheTerm(t *testing.T) {
	for name, own := range map[string]state.Committed{
		"empty":      {Index: 2, Term: 3},
		"membership": {Index: 2, Term: 3, Change: state.AddVoter},
		"refused":    {Index: 2, Term: 3, Data: []byte{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.NewScript(t, "m", store.Options{})
			refused := func(when string) {
				t.Helper()
				ran := false
				_, err := s.Store.Update(t.Context(), func(*store.Tx) error { ran = true; return nil })
				if !errkind.Is(err, errkind.NoLeader) || ran {
					t.Errorf("%s: %v, ran %t", when, err, ran)
				}
			}
			refused("never elected")
			s.Store.Elected(3)
			refused("elected")
			s.Feed(state.Committed{Index: 1, Term: 2})
			refused("an entry of an older term applied")
			s.Feed(own)
			if _, err := s.Store.Update(t.Context(), func(*store.Tx) error { return nil }); err != nil {
				t.Errorf("own entry applied: %v", err)
			}
			s.Store.Lost(3)
			refused("lost")
		})
	}
}

// An entry holds as many transactions as go into the bound, and one at least.
func TestPacking(t *testing.T) {
	for name, c := range map[string]struct {
		sizes []int // of the names
		want  string
	}{
		"all in one":        {[]int{10, 10, 10}, "3"},
		"many small":        {[]int{300, 300, 300, 300, 300, 300, 300}, "4 3"},
		"large alone":       {[]int{3000, 10, 10}, "1 2"},
		"large in between":  {[]int{10, 3000, 10}, "1 1 1"},
		"large at the end":  {[]int{10, 10, 3000}, "2 1"},
		"two large in line": {[]int{3000, 3000}, "1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const limit = 2000
				s := storetest.NewLeader(t, "m", store.Options{MaxEntryBytes: limit})
				for i, size := range c.sizes {
					begin(t.Context(), s, creating(fmt.Sprint(i)+strings.Repeat("x", size-1)))
				}
				var got []string
				for data := s.Take(); data != nil; data = s.Take() {
					n := len(transactions(t, data))
					if n > 1 && len(data) > limit {
						t.Errorf("an entry of %d transactions has %d bytes", n, len(data))
					}
					got = append(got, fmt.Sprint(n))
					s.Apply(1, data)
				}
				if strings.Join(got, " ") != c.want {
					t.Errorf("transactions per entry: %v, want %s", got, c.want)
				}
			})
		})
	}
}

// The bound of an entry counts what it takes to put transactions into it.
func TestEntryIsWithinItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{MaxEntryBytes: 20_000})
		for i := range 200 {
			begin(t.Context(), s, creating(fmt.Sprint("n", i)))
		}
		for data := s.Take(); data != nil; data = s.Take() {
			if len(data) > 20_000 {
				t.Errorf("an entry has %d bytes", len(data))
			}
		}
	})
}

// A full queue makes writers wait, and lets them in when something leaves it.
func TestFullQueueMakesWritersWait(t *testing.T) {
	for name, o := range map[string]store.Options{
		"count": {MaxPending: 2},
		"bytes": {MaxPendingBytes: 200},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := storetest.NewLeader(t, "m", o)
				begin(t.Context(), s, creating("a"))
				begin(t.Context(), s, creating("b"))
				pending := s.Store.Status().Pending
				ran := false
				ctx, cancel := context.WithCancel(t.Context())
				late := begin(ctx, s, func(*store.Tx) error { ran = true; return nil })
				d := begin(t.Context(), s, creating("d"))
				if late.waits(t, "late"); ran || s.Store.Status().Pending != pending {
					t.Errorf("ran %t, %+v", ran, s.Store.Status())
				}
				cancel()
				late.failed(t, "late", errkind.Limit)
				if late.err != nil && !strings.Contains(late.err.Error(), "nothing was done") {
					t.Errorf("error is %v", late.err)
				}
				d.waits(t, "d")
				s.Commit()
				synctest.Wait()
				s.Commit()
				if d.committed(t, "d", 3); ran {
					t.Error("the one that gave up ran")
				}
			})
		})
	}
}

// A loss ends the wait for room at once: what fills the queue is with raft, and may stay for
// long.
func TestLossEndsTheWaitForRoom(t *testing.T) {
	for name, end := range map[string]func(*store.MemoryStore){
		"lost": func(s *store.MemoryStore) { s.Lost(1) },
		"stop": func(s *store.MemoryStore) { s.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := storetest.NewLeader(t, "m", store.Options{MaxPending: 1})
				begin(t.Context(), s, creating("a"))
				s.Take()
				late := begin(t.Context(), s, creating("b"))
				late.waits(t, "b")
				end(s.Store)
				late.failed(t, "b", errkind.NoLeader)
				begin(t.Context(), s, creating("c")).failed(t, "c", errkind.NoLeader)
			})
		})
	}
}

// A function that panics has done nothing, and the store goes on.
func TestPanicLeavesTheStoreUsable(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not come through")
			}
		}()
		//nolint:errcheck // it does not return
		s.Store.Update(t.Context(), func(tx *store.Tx) error {
			if err := creating("gone")(tx); err != nil {
				t.Error(err)
			}
			panic("a fault of the caller's")
		})
	}()
	if res, err := s.Store.Update(t.Context(), creating("a")); err != nil || res.Revision != 1 {
		t.Errorf("after the panic: %+v, %v", res, err)
	}
	wantNames(t, s, "a ")
}

// What does not fit into a transaction changes nothing.
func TestTransactionBounds(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	many := func(n, size int) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			for i := range n {
				o := service(fmt.Sprint("n", i))
				o.Spec.Annotations.Labels = map[string]string{"pad": strings.Repeat("x", size)}
				if _, err := store.Services.Create(tx, o); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for name, fn := range map[string]func(*store.Tx) error{
		"513 operations": many(513, 0), "object over 1 MiB": many(1, 1<<20), "over 4 MiB": many(5, 1<<20-500),
	} {
		_, err := s.Store.Update(t.Context(), fn)
		if !errkind.Is(err, errkind.Limit) {
			t.Errorf("%s: %v", name, err)
		}
		if names(s.Store.Root()) != "" || s.Store.Root().Revision() != 0 {
			t.Fatalf("%s: it changed something", name)
		}
	}
	if _, err := s.Store.Update(t.Context(), many(512, 0)); err != nil {
		t.Errorf("512 operations: %v", err)
	}
}
