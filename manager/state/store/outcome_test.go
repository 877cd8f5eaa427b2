package store_test

import (
	"context"
	"testing"
	"testing/synctest"

	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// Refused takes back the batch that was taken last and all after it, nothing else, and HEAD
// goes back to the last one that raft has.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{})
		a := begin(t.Context(), s, creating("a"))
		b := begin(t.Context(), s, creating("b"))
		first := s.Take()
		c := begin(t.Context(), s, creating("c"))
		d := begin(t.Context(), s, creating("d"))
		s.Take()
		e := begin(t.Context(), s, creating("e"))
		s.Store.Refused(1)
		c.failed(t, "c", errkind.NoLeader)
		d.failed(t, "d", errkind.NoLeader)
		e.failed(t, "e", errkind.NoLeader)
		a.waits(t, "a")
		b.waits(t, "b")
		saw := ""
		g := begin(t.Context(), s, func(tx *store.Tx) error { saw = names(tx); return creating("g")(tx) })
		if saw != "a b " {
			t.Errorf("HEAD is %q", saw)
		}
		s.Apply(1, first)
		s.Commit()
		a.committed(t, "a", 1)
		b.committed(t, "b", 2)
		g.committed(t, "g", 3)
		if st := s.Store.Status(); st.Pending != 0 || st.PendingBytes != 0 || st.RefusedOwn != 0 {
			t.Errorf("%+v", st)
		}
		same(t, "after a refusal", s.Store, follower(t, s, store.Options{}).Store)
	})
}

// A refusal counts from the batch that was taken last, also when what was before it is
// committed meanwhile, and HEAD goes back to ROOT if raft has nothing.
func TestRefusedWithNothingBefore(t *testing.T) {
	for name, committed := range map[string]bool{"first of all": false, "the one before is committed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := storetest.NewLeader(t, "m", store.Options{})
				next := uint64(1)
				if committed {
					a := begin(t.Context(), s, creating("a"))
					data := s.Take()
					defer a.committed(t, "a", 1)
					next = 2
					b := begin(t.Context(), s, creating("b"))
					s.Take()
					s.Apply(1, data)
					b.waits(t, "b")
					s.Store.Refused(1)
					b.failed(t, "b", errkind.NoLeader)
				} else {
					b := begin(t.Context(), s, creating("b"))
					s.Take()
					s.Store.Refused(1)
					b.failed(t, "b", errkind.NoLeader)
				}
				c := begin(t.Context(), s, creating("b"))
				s.Commit()
				c.committed(t, "b again", next)
				same(t, "after a refusal", s.Store, follower(t, s, store.Options{}).Store)
			})
		})
	}
}

// A refusal that comes after the term has ended, or after all is committed, does nothing.
func TestRefusedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{})
		s.Store.Refused(1)
		a := begin(t.Context(), s, creating("a"))
		s.Take()
		s.Elect(2)
		a.failed(t, "a", errkind.NoLeader)
		b := begin(t.Context(), s, creating("b"))
		s.Store.Refused(1)
		b.waits(t, "b")
		s.Commit()
		b.committed(t, "b", 1)
	})
}

// A loss fails at once what raft never had; the rest comes out through the log.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{})
		a := begin(t.Context(), s, creating("a"))
		b := begin(t.Context(), s, creating("b"))
		handed := s.Take()
		c := begin(t.Context(), s, creating("c"))
		s.Store.Lost(1)
		c.failed(t, "c", errkind.NoLeader)
		a.waits(t, "a")
		b.waits(t, "b")
		begin(t.Context(), s, creating("d")).failed(t, "d", errkind.NoLeader)
		if s.Take() != nil {
			t.Error("a lost leader has something to propose")
		}
		s.Apply(1, handed)
		a.committed(t, "a", 1)
		b.committed(t, "b", 2)
	})
}

// What waits is overtaken exactly when the first entry of a higher term is applied, and it
// was not before that.
func TestOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{})
		a := begin(t.Context(), s, creating("a"))
		first := s.Take()
		b := begin(t.Context(), s, creating("b"))
		s.Take()
		c := begin(t.Context(), s, creating("c")) // raft never has it
		s.Apply(1, nil)
		a.waits(t, "a, another entry of the term")
		s.Store.Lost(1)
		c.failed(t, "c", errkind.NoLeader)
		s.Apply(1, first)
		a.committed(t, "a", 1)
		b.waits(t, "b, before the next term")
		s.Apply(2, nil)
		b.failed(t, "b", errkind.NoLeader)
		if st := s.Store.Status(); st.Pending != 0 || st.PendingBytes != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A member that is elected again, without having seen a loss, starts from ROOT: what it had
// on HEAD fails, handed to raft or not.
func TestElectedAgainWithoutALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{})
		a := begin(t.Context(), s, creating("a"))
		late := s.Take()
		b := begin(t.Context(), s, creating("b"))
		s.Store.Elected(3)
		begin(t.Context(), s, creating("c")).failed(t, "c, before the own entry", errkind.NoLeader)
		if s.Store.Next(3) != nil || s.Store.Next(1) == nil {
			t.Error("what was made in term 1 is for an entry of term 1 alone")
		}
		a.waits(t, "a")
		s.Apply(3, nil)
		a.failed(t, "a", errkind.NoLeader)
		b.failed(t, "b", errkind.NoLeader)
		c := begin(t.Context(), s, creating("c"))
		s.Apply(3, late) // raft took it late
		c.waits(t, "c")
		s.Commit()
		c.committed(t, "c", 1)
		if s.Store.Status().RefusedOwn != 0 {
			t.Error("a leftover counts as a fault")
		}
		same(t, "elected again", s.Store, follower(t, s, store.Options{}).Store)
	})
}

// When nothing is applied any more, what raft has is unknown, and what it never had is not.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{})
		a := begin(t.Context(), s, creating("a"))
		s.Take()
		b := begin(t.Context(), s, creating("b"))
		s.Store.Stop()
		a.failed(t, "a", errkind.UnknownOutcome)
		b.failed(t, "b", errkind.NoLeader)
		begin(t.Context(), s, creating("c")).failed(t, "c", errkind.NoLeader)
		s.Store.Elected(9)
		begin(t.Context(), s, creating("d")).failed(t, "d", errkind.NoLeader)
	})
}

// Once on HEAD a transaction cannot be taken back: when its caller's time ends, nobody knows.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		a := begin(ctx, s, creating("a"))
		b := begin(t.Context(), s, creating("b"))
		cancel()
		a.failed(t, "a", errkind.UnknownOutcome)
		s.Commit()
		b.committed(t, "b", 2)
		wantNames(t, s, "a b ")
	})
}

// A call whose time has ended before it does anything does nothing.
func TestContextEndedBefore(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran := false
	_, err := s.Store.Update(ctx, func(tx *store.Tx) error { ran = true; return creating("a")(tx) })
	if ran || !errkind.Is(err, errkind.NoLeader) || s.Store.Root().Revision() != 0 {
		t.Errorf("ran %t, %v, revision %d", ran, err, s.Store.Root().Revision())
	}
}

// An outcome that is there is told, even if the caller's time has ended as well.
func TestOutcomeBeforeContext(t *testing.T) {
	for range 50 {
		s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
		ctx, cancel := context.WithCancel(t.Context())
		res, err := s.Store.Update(ctx, func(tx *store.Tx) error {
			cancel() // it is committed before Update waits
			return creating("a")(tx)
		})
		if err != nil || res.Revision != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
}

// A change of membership is applied in its place and takes no revision.
func TestMembership(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	create(t, s.Store, "a")
	peer := func(id uint64, addr string) state.Committed {
		c := state.Committed{Term: 1, Index: s.Store.Applied().Index + 1}
		c.Peer.RaftID, c.Peer.Addr = id, addr
		return c
	}
	for _, step := range []struct {
		change state.ChangeType
		id     uint64
		addr   string
	}{
		{state.AddVoter, 7, "seven"},
		{state.AddLearner, 3, "three"},
		{state.AddVoter, 3, "three"},
		{state.UpdatePeer, 7, "elsewhere"},
		{state.UpdatePeer, 99, "nobody"},
		{state.AddLearner, 5, "five"},
		{state.UpdatePeer, 5, "else"},
		{state.RemovePeer, 7, ""},
		{state.RemovePeer, 7, ""},
	} {
		c := peer(step.id, step.addr)
		c.Change = step.change
		s.Feed(c)
	}
	a := s.Store.Applied()
	three, _ := a.Peer(3)
	five, _ := a.Peer(5)
	if len(a.Peers) != 2 || three.Learner || three.Addr != "three" || !five.Learner || five.Addr != "else" {
		t.Errorf("peers: %v", a.Peers)
	}
	if len(a.Removed) != 1 || a.Removed[0] != 7 || a.Revision != 1 {
		t.Errorf("%+v", a)
	}
	bad := peer(1, "")
	bad.Change = 99
	if s.Store.Apply([]state.Committed{bad}) == nil {
		t.Error("a change of an unknown kind was applied")
	}
	if s.Store.Apply([]state.Committed{{Index: a.Index, Term: 1}}) == nil {
		t.Error("an entry was applied twice")
	}
	create(t, s.Store, "b")
	same(t, "membership", s.Store, follower(t, s, store.Options{}).Store)
}
