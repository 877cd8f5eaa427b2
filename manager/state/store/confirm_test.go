package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

var errMine = errors.New("mine")

// reading is a function that changes nothing, and one that fails, as the tests want it: what
// it saw is noted.
type reading struct {
	saw  []string
	fail bool
}

func (r *reading) fn(tx *store.Tx) error {
	r.saw = append(r.saw, names(tx))
	if r.fail {
		return errMine
	}
	return nil
}

func (r *reading) answered(t *testing.T, c *call, revision uint64, runs ...string) {
	t.Helper()
	synctest.Wait()
	if !c.done || r.fail != errors.Is(c.err, errMine) || !r.fail && (c.err != nil || c.res.Revision != revision) {
		t.Errorf("done %t, %+v, %v; want revision %d", c.done, c.res, c.err, revision)
	}
	if strings.Join(r.saw, "|") != strings.Join(runs, "|") {
		t.Errorf("runs saw %q, want %q", r.saw, runs)
	}
}

// forBoth runs a test with a function that fails and one that does nothing.
func forBoth(t *testing.T, test func(t *testing.T, r *reading)) {
	for name, fail := range map[string]bool{"error": true, "no-op": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, &reading{fail: fail}) })
		})
	}
}

// An error or a no-op is a read: it is told after what it saw is committed, and after a
// ReadIndex that was begun when the function had run.
func TestAnswerWaitsForWhatItSaw(t *testing.T) {
	forBoth(t, func(t *testing.T, r *reading) {
		s := storetest.NewLeader(t, "m", store.Options{})
		asked := 0
		confirmed := make(chan error)
		s.Read = func(context.Context) error { asked++; return <-confirmed }
		a := begin(t.Context(), s, creating("a"))
		c := begin(t.Context(), s, r.fn)
		c.waits(t, "what it saw is not committed")
		begin(t.Context(), s, creating("b")) // it need not wait for that
		data := s.Take()
		if asked != 0 {
			t.Error("the read index was asked for before what it saw was committed")
		}
		s.Apply(1, data)
		a.committed(t, "a", 1)
		c.waits(t, "the read index is not confirmed")
		if asked != 1 {
			t.Errorf("read index asked for %d times", asked)
		}
		confirmed <- nil
		r.answered(t, c, 1, "a ")
	})
}

// With nothing pending the read index alone decides.
func TestAnswerOnRoot(t *testing.T) {
	forBoth(t, func(t *testing.T, r *reading) {
		s := storetest.NewLeader(t, "m", store.Options{})
		confirmed := make(chan error)
		s.Read = func(context.Context) error { return <-confirmed }
		c := begin(t.Context(), s, r.fn)
		c.waits(t, "not confirmed")
		confirmed <- nil
		r.answered(t, c, 0, "")
	})
}

// When what the function saw is lost it runs again, on what is there then.
func TestAnswerRunsAgain(t *testing.T) {
	forBoth(t, func(t *testing.T, r *reading) {
		s := storetest.NewLeader(t, "m", store.Options{})
		begin(t.Context(), s, creating("a"))
		s.Take()
		c := begin(t.Context(), s, r.fn)
		s.Store.Refused(1)
		r.answered(t, c, 0, "a ", "")
	})
}

// A member that does not lead any more cannot know what is true now.
func TestAnswerOfALostLeader(t *testing.T) {
	forBoth(t, func(t *testing.T, r *reading) {
		s := storetest.NewLeader(t, "m", store.Options{})
		a := begin(t.Context(), s, creating("a"))
		s.Take()
		c := begin(t.Context(), s, r.fn)
		s.Store.Lost(1)
		c.waits(t, "what it saw may still be committed")
		s.Apply(2, nil)
		a.failed(t, "a", errkind.NoLeader)
		c.failed(t, "answer", errkind.NoLeader)
		if len(r.saw) != 1 {
			t.Errorf("runs: %q", r.saw)
		}
	})
}

// Leadership that is lost and regained during the read index makes the answer stale: others
// may have written between.
func TestAnswerAcrossTerms(t *testing.T) {
	forBoth(t, func(t *testing.T, r *reading) {
		s := storetest.NewLeader(t, "m", store.Options{})
		other := storetest.NewScript(t, "o", store.Options{})
		other.Feed(s.Log()...)
		confirmed := make(chan error)
		s.Read = func(context.Context) error { return <-confirmed }
		c := begin(t.Context(), s, r.fn)
		s.Store.Lost(1)
		other.Elect(2)
		begin(t.Context(), other, creating("x"))
		other.Commit()
		s.Feed(other.Log()...)
		s.Elect(3)
		confirmed <- nil
		c.waits(t, "it runs again")
		confirmed <- nil
		r.answered(t, c, 1, "", "x ")
	})
}

// An answer that cannot be confirmed is not told.
func TestAnswerNotConfirmed(t *testing.T) {
	forBoth(t, func(t *testing.T, r *reading) {
		s := storetest.NewLeader(t, "m", store.Options{})
		s.Read = func(context.Context) error {
			return errkind.New(errkind.NoLeader, "there is no leader").WithHint("try again")
		}
		c := begin(t.Context(), s, r.fn)
		c.failed(t, "no leader", errkind.NoLeader)
		if errors.Is(c.err, errMine) {
			t.Error("the function's own error was told")
		}
	})
}

// A caller whose time ends before the answer is certain hears neither the answer nor that the
// outcome is unknown: nothing was done.
func TestAnswerAndContext(t *testing.T) {
	forBoth(t, func(t *testing.T, r *reading) {
		s := storetest.NewLeader(t, "m", store.Options{})
		s.Read = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		ctx, cancel := context.WithCancel(t.Context())
		onRoot := begin(ctx, s, r.fn)
		begin(t.Context(), s, creating("a"))
		onPending := begin(ctx, s, r.fn)
		cancel()
		for _, c := range []*call{onRoot, onPending} {
			c.failed(t, "time ran out", errkind.NoLeader)
			if errors.Is(c.err, errMine) || !errors.Is(c.err, context.Canceled) {
				t.Errorf("%v", c.err)
			}
		}
	})
}

// What cancels out within a transaction is a no-op, and takes no revision.
func TestCreateAndRemoveIsANoOp(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	res, err := s.Store.Update(t.Context(), func(tx *store.Tx) error {
		o, err := store.Services.Create(tx, service("a"))
		if err != nil {
			return err
		}
		_, err = store.Services.Delete(tx, o.ID)
		return err
	})
	if err != nil || res.Revision != 0 || len(res.IDs) != 0 || s.Store.Root().Revision() != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}
