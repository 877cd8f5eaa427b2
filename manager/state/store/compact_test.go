package store_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// compacting is a Compact under way.
type compacting struct {
	done  bool
	floor uint64
	err   error
}

func compact(ctx context.Context, s *storetest.Script, revision uint64) *compacting {
	c := &compacting{}
	go func() {
		c.floor, c.err = s.Store.Compact(ctx, revision)
		c.done = true
	}()
	synctest.Wait()
	return c
}

func written(t *testing.T, n int, o store.Options) *storetest.Script {
	s := storetest.NewLeader(t, "m", o).Auto(true)
	for i := range n {
		if _, err := s.Store.Update(t.Context(), creating(fmt.Sprint("s", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestCompact(t *testing.T) {
	for name, c := range map[string]struct {
		asked, floor uint64
	}{
		"to a revision":  {4, 4},
		"to the present": {0, 6},
		"to the newest":  {6, 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := written(t, 6, store.Options{})
				if _, err := s.Store.At(1); err != nil { // a state that is kept open must go too
					t.Fatal(err)
				}
				before, err := s.Store.At(c.floor)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if floor, err := s.Store.Compact(t.Context(), c.asked); err != nil || floor != c.floor {
						t.Fatalf("floor %d, %v", floor, err)
					}
				}
				f := follower(t, s, store.Options{})
				same(t, "a follower", s.Store, f.Store)
				restored := storetest.NewScript(t, "r", store.Options{})
				restored.Restore(storetest.Save(t, s.Store.Image()))
				for _, m := range []*storetest.Script{s, f, restored} {
					if got := m.Store.Status().Floor; got != c.floor {
						t.Errorf("floor %d", got)
					}
					now, err := m.Store.At(c.floor)
					if err != nil || names(now) != names(before) {
						t.Errorf("at the floor: %v", err)
					}
					if _, err := m.Store.At(c.floor - 1); !errkind.Is(err, errkind.OutOfRange) {
						t.Errorf("below the floor: %v", err)
					}
					if _, err := m.Store.Changes(c.floor-1, 9); !errkind.Is(err, errkind.OutOfRange) {
						t.Errorf("changes below the floor: %v", err)
					}
				}
			})
		})
	}
}

func TestCompactFails(t *testing.T) {
	for name, c := range map[string]struct {
		before   func(s *storetest.Script)
		meet     func(s *storetest.Script)
		revision uint64
		want     errkind.Kind
	}{
		"a future revision": {nil, nil, 7, errkind.OutOfRange},
		"no leader":         {func(s *storetest.Script) { s.Store.Lost(1) }, nil, 3, errkind.NoLeader},
		"lost meanwhile":    {nil, func(s *storetest.Script) { s.Take(); s.Store.Lost(1) }, 3, errkind.UnknownOutcome},
		"raft refuses":      {nil, func(s *storetest.Script) { s.Take(); s.Store.Refused(1) }, 3, errkind.UnknownOutcome},
		"it stops":          {nil, func(s *storetest.Script) { s.Store.Stop() }, 3, errkind.UnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := written(t, 6, store.Options{}).Auto(false)
				if c.before != nil {
					c.before(s)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				call := compact(ctx, s, c.revision)
				if c.meet != nil {
					c.meet(s)
				}
				synctest.Wait()
				if !call.done || !errkind.Is(call.err, c.want) || errkind.Hint(call.err) == "" {
					t.Errorf("done %t, %v", call.done, call.err)
				}
				if s.Store.Status().Floor != 0 {
					t.Error("it was compacted")
				}
			})
		})
	}
}

// Two that come together, and one that comes when another is with raft, all end with their own
// revision gone.
func TestCompactTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := written(t, 6, store.Options{}).Auto(false)
		first := compact(t.Context(), s, 2)
		s.Apply(1, s.Take())
		synctest.Wait()
		if !first.done || first.floor != 2 {
			t.Fatalf("%+v", first)
		}
		second := compact(t.Context(), s, 3)
		data := s.Take()
		third := compact(t.Context(), s, 5)
		s.Apply(1, data)
		synctest.Wait()
		if !second.done || second.floor != 3 || third.done {
			t.Fatalf("%+v, %+v", second, third)
		}
		s.Apply(1, s.Take())
		synctest.Wait()
		if !third.done || third.floor != 5 || third.err != nil {
			t.Fatalf("%+v", third)
		}
	})
}

func TestExcess(t *testing.T) {
	tick := time.Millisecond // between two transactions
	for name, c := range map[string]struct {
		keep store.Retention
		want uint64
	}{
		"all":                {store.Retention{}, 0},
		"few enough":         {store.Retention{Revisions: 100}, 0},
		"a twentieth more":   {store.Retention{Revisions: 96}, 0},
		"too many":           {store.Retention{Revisions: 90}, 10},
		"one":                {store.Retention{Revisions: 1}, 99},
		"too big":            {store.Retention{Bytes: 1}, 100},
		"big enough":         {store.Retention{Bytes: 1 << 20}, 0},
		"young":              {store.Retention{Age: time.Hour}, 0},
		"too old":            {store.Retention{Age: 50 * tick}, 49},
		"all too old":        {store.Retention{Age: 1}, 99},
		"the stricter rules": {store.Retention{Revisions: 10, Age: 50 * tick}, 90},
	} {
		t.Run(name, func(t *testing.T) {
			s := written(t, 100, store.Options{})
			all, err := s.Store.Changes(99, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Store.Excess(c.keep, all[0].At); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
