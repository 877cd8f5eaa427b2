package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"holdfast/internal/errkind"
	"holdfast/internal/wire"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// requestID makes the ID of the n-th request of a client that had seen a revision.
func requestID(seen uint64, n int) string {
	return wire.FormatRequestID(seen, fmt.Sprintf("random%010d", n))
}

// A retry joins the first run while that waits, and gets its outcome, good or bad.
func TestRetryJoinsThePendingOne(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(s *storetest.Script, data []byte)
		kind errkind.Kind
		ok   bool
	}{
		"committed": {func(s *storetest.Script, data []byte) { s.Apply(1, data) }, 0, true},
		"refused":   {func(s *storetest.Script, _ []byte) { s.Store.Refused(1) }, errkind.NoLeader, false},
		"overtaken": {func(s *storetest.Script, _ []byte) { s.Apply(2, nil) }, errkind.NoLeader, false},
		"stopped":   {func(s *storetest.Script, _ []byte) { s.Store.Stop() }, errkind.UnknownOutcome, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := storetest.NewLeader(t, "m", store.Options{})
				first := begin(requested(t.Context(), requestID(0, 1), 1), s, creating("a"))
				again := begin(requested(t.Context(), requestID(0, 1), 1), s, creating("b"))
				other := begin(requested(t.Context(), requestID(0, 1), 2), s, creating("c"))
				other.failed(t, "another request with the ID", errkind.Invalid)
				first.waits(t, "first")
				again.waits(t, "again")
				c.end(s, s.Take())
				if !c.ok {
					first.failed(t, "first", c.kind)
					again.failed(t, "again", c.kind)
					wantNames(t, s, "")
					return
				}
				first.committed(t, "first", 1)
				again.committed(t, "again", 1)
				if first.res.Replayed || !again.res.Replayed || !slices.Equal(first.res.IDs, again.res.IDs) {
					t.Errorf("first %+v, again %+v", first.res, again.res)
				}
				wantNames(t, s, "a ")
			})
		})
	}
}

// The outcome of a request is known to every member, after a failover, and after a snapshot.
func TestRetryOnAnotherMember(t *testing.T) {
	first := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	id := requestID(0, 1)
	done, err := first.Store.Update(requested(t.Context(), id, 1), creating("a"))
	if err != nil {
		t.Fatal(err)
	}
	create(t, first.Store, "b")
	restored := storetest.NewScript(t, "r", store.Options{})
	restored.Restore(storetest.Save(t, first.Store.Image()))
	for name, s := range map[string]*storetest.Script{
		"same": first, "follower": follower(t, first, store.Options{}), "restored": restored,
	} {
		s.Store.Lost(1)
		s.Elect(2)
		s.Auto(true)
		res, err := s.Store.Update(requested(t.Context(), id, 1), creating("x"))
		if err != nil || !res.Replayed || res.Revision != done.Revision || !slices.Equal(res.IDs, done.IDs) {
			t.Errorf("%s: %+v, %v; want %+v", name, res, err, done)
		}
		if _, err = s.Store.Update(requested(t.Context(), id, 9), creating("x")); !errkind.Is(err, errkind.Invalid) {
			t.Errorf("%s: another digest: %v", name, err)
		}
		ctx := state.WithRequest(t.Context(), state.Request{ID: id, Digest: []byte{1}, Caller: "somebody else"})
		if res, err := s.Store.Update(ctx, creating("x")); err != nil || res.Replayed {
			t.Errorf("%s: the ID of another caller: %+v, %v", name, res, err)
		}
	}
}

// Requests are forgotten in the order in which they were applied, on every member alike, and
// an ID that may have been forgotten is never run.
func TestRequestsAreForgotten(t *testing.T) {
	o := store.Options{MaxRequests: 3}
	s := storetest.NewLeader(t, "m", o).Auto(true)
	f := storetest.NewScript(t, "f", o)
	idOf := func(i int) string { return requestID(uint64(2*(i-1)), i) }
	for i := 1; i <= 5; i++ { // at revisions 2, 4, … 10
		create(t, s.Store, fmt.Sprint("without", i))
		if _, err := s.Store.Update(requested(t.Context(), idOf(i), 1), creating(fmt.Sprint("n", i))); err != nil {
			t.Fatal(err)
		}
	}
	f.Feed(s.Log()...)
	restored := storetest.NewScript(t, "r", o)
	restored.Restore(storetest.Save(t, f.Store.Image()))
	same(t, "follower", s.Store, f.Store)
	same(t, "restored", s.Store, restored.Store)
	for name, m := range map[string]*storetest.Script{"leader": s, "follower": f, "restored": restored} {
		if name != "leader" {
			m.Elect(2)
		}
		m.Auto(true)
		if n := m.Store.Status().Requests; n != 3 {
			t.Errorf("%s: %d requests", name, n)
		}
		run := func(id string) (res store.Result, err error, ran bool) {
			res, err = m.Store.Update(requested(t.Context(), id, 1), func(*store.Tx) error { ran = true; return nil })
			return res, err, ran
		}
		for i := 3; i <= 5; i++ {
			if res, err, ran := run(idOf(i)); err != nil || ran || res.Revision != uint64(2*i) {
				t.Errorf("%s: remembered %d: %+v, %v, ran %t", name, i, res, err, ran)
			}
		}
		// Revision 4 is the newest that is forgotten: what was made after it was seen cannot be.
		for seen, unknown := range map[uint64]bool{0: true, 3: true, 4: false, 10: false} {
			_, err, ran := run(requestID(seen, 99))
			if errkind.Is(err, errkind.UnknownOutcome) != unknown || ran == unknown {
				t.Errorf("%s: an ID made at revision %d: %v, ran %t", name, seen, err, ran)
			}
		}
		if _, err, ran := run(idOf(1)); !errkind.Is(err, errkind.UnknownOutcome) || ran {
			t.Errorf("%s: forgotten: %v, ran %t", name, err, ran)
		}
	}
}

// Only what is committed is remembered: a request that failed or did nothing runs again.
func TestOnlyCommitsAreRemembered(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	ctx := requested(t.Context(), requestID(0, 1), 1)
	runs := 0
	for _, fail := range []error{errMine, nil, errMine} {
		_, _ = s.Store.Update(ctx, func(*store.Tx) error { runs++; return fail })
	}
	if res, err := s.Store.Update(ctx, creating("a")); runs != 3 || err != nil || res.Replayed {
		t.Errorf("%d runs; %+v, %v", runs, res, err)
	}
}

// An ID that no client of ours makes is refused, whatever is in it.
func TestBadRequestIDs(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	for _, id := range []string{
		"x", "1.short", "-1.abcdefghijklmnop", ".abcdefghijklmnop", "1.abcdefghijklmnop\x00", "99999999999999999999.abcdefghijklmnop",
		"1." + strings.Repeat("x", 200),
	} {
		ran := false
		_, err := s.Store.Update(requested(t.Context(), id, 1), func(*store.Tx) error { ran = true; return nil })
		if !errkind.Is(err, errkind.Invalid) || ran {
			t.Errorf("%q: %v, ran %t", id, err, ran)
		}
	}
}

// The table is the store's own: a caller that changes what it gave, or what it got, does not
// change it. (The leader would differ from its followers, and no hash would tell.)
func TestRequestTableIsNotShared(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	digest := []byte{1}
	ctx := state.WithRequest(t.Context(), state.Request{ID: requestID(0, 1), Digest: digest})
	if _, err := s.Store.Update(ctx, creating("a")); err != nil {
		t.Fatal(err)
	}
	digest[0] = 7
	ctx = state.WithRequest(t.Context(), state.Request{ID: requestID(0, 1), Digest: []byte{1}})
	res, err := s.Store.Update(ctx, creating("a"))
	if err != nil || len(res.IDs) != 1 {
		t.Fatalf("after the caller used its bytes again: %+v, %v", res, err)
	}
	res.IDs[0] = "scribble"
	if res, err := s.Store.Update(ctx, creating("a")); err != nil || res.IDs[0] == "scribble" {
		t.Errorf("%+v, %v", res, err)
	}
	same(t, "leader and follower", s.Store, follower(t, s, store.Options{}).Store)
}

// A batch is cut into the same parts when it is repeated, each with its own outcome; one that
// was broken off goes on where it was.
func TestBatch(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	ctx := requested(t.Context(), requestID(0, 1), 1)
	runs := 0
	batch := func(failAt int) error {
		return s.Store.Batch(ctx, func(b *store.Batch) error {
			for i := range 450 {
				if err := b.Update(func(tx *store.Tx) error {
					if i == failAt {
						return errMine
					}
					runs++
					return creating(fmt.Sprintf("n%03d", i))(tx)
				}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, step := range []struct {
		failAt, runs int
		revision     uint64
		fails        bool
	}{
		{250, 250, 1, true}, // the first part is made, of the second nothing is
		{449, 449, 2, true}, // the first part is known
		{-1, 50, 3, false},  // the first two are known
		{-1, 0, 3, false},   // all is known
		{0, 0, 3, false},    // a known part does not run at all
	} {
		runs = 0
		err := batch(step.failAt)
		if (err != nil) != step.fails || s.Store.Root().Revision() != step.revision {
			t.Errorf("fail at %d: %v, revision %d, want %d", step.failAt, err, s.Store.Root().Revision(), step.revision)
		}
	}
	if runs != 0 {
		t.Errorf("a batch that is known ran %d steps", runs)
	}
	if n := len(strings.Fields(names(s.Store.Root()))); n != 450 {
		t.Errorf("%d services", n)
	}
	same(t, "leader and follower", s.Store, follower(t, s, store.Options{}).Store)
}

// A request ID of a revision that is not there yet would outlive every other one.
func TestRequestFromTheFuture(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	create(t, s.Store, "a")
	if _, err := s.Store.Update(requested(t.Context(), requestID(2, 1), 1), creating("b")); !errkind.Is(err, errkind.Invalid) {
		t.Errorf("of revision 2, at revision 1: %v", err)
	}
	if _, err := s.Store.Update(requested(t.Context(), requestID(1, 1), 1), creating("b")); err != nil {
		t.Errorf("of the present revision: %v", err)
	}
}
