package store_test

import (
	"context"
	"testing"
	"testing/synctest"

	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// A request ID that is newer than HEAD is wrong only if this member leads: a leader that was
// deposed and does not know it may not have seen the revision.
func TestRequestIDNewerThanHead(t *testing.T) {
	for name, c := range map[string]struct {
		lost bool
		want errkind.Kind
	}{
		"leads":   {false, errkind.Invalid},
		"deposed": {true, errkind.NoLeader},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := storetest.NewLeader(t, "m", store.Options{})
				confirmed := make(chan error)
				s.Read = func(context.Context) error { return <-confirmed }
				w := begin(requested(t.Context(), "5.0123456789abcdef", 1), s, creating("a"))
				w.waits(t, "it is not confirmed that this member leads")
				if c.lost {
					s.Store.Lost(1)
				}
				confirmed <- nil
				w.failed(t, "request from the future", c.want)
				wantNames(t, s, "")
			})
		})
	}
}

// A leader that met a fault gives up what waits, and begins at ROOT again. What raft had of it
// may be applied all the same: then HEAD lacks it, and what was made or seen there does not hold.
func TestHeadIsPassedAfterAFault(t *testing.T) {
	for _, r := range []*reading{{fail: true}, {}} {
		synctest.Test(t, func(t *testing.T) {
			s := storetest.NewLeader(t, "m", store.Options{})
			a := begin(t.Context(), s, creating("a"))
			data := s.Take()
			stranger := transactions(t, data)[0]
			stranger.ID, stranger.Parent = []byte("another"), []byte("another")
			s.Apply(1, entryOf(t, stranger))
			a.failed(t, "a", errkind.UnknownOutcome)
			confirmed := make(chan error, 2)
			s.Read = func(context.Context) error { return <-confirmed }
			look := begin(t.Context(), s, r.fn)
			look.waits(t, "it is not confirmed")
			b := begin(t.Context(), s, creating("b"))
			b.waits(t, "it is not committed")

			s.Apply(1, data)
			b.failed(t, "b", errkind.UnknownOutcome)
			confirmed <- nil
			confirmed <- nil
			r.answered(t, look, 1, "", "a ")
			c := begin(t.Context(), s, creating("c"))
			s.Commit()
			c.committed(t, "c", 2)
			wantNames(t, s, "a c ")
		})
	}
}
