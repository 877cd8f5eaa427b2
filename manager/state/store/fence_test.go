package store_test

import (
	"testing"
	"testing/synctest"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// Each of the three fences holds alone: a transaction that differs from one that fits in its
// revision, its parent or its term is refused, by the leader that made it and by followers.
func TestFences(t *testing.T) {
	for name, c := range map[string]struct {
		spoil     func(*holdfast.RawTransaction)
		entryTerm uint64
		fits, own bool // own: the leader counts it as a fault of ours
	}{
		"nothing":       {func(*holdfast.RawTransaction) {}, 2, true, false},
		"revision low":  {func(x *holdfast.RawTransaction) { x.Revision-- }, 2, false, true},
		"revision high": {func(x *holdfast.RawTransaction) { x.Revision++ }, 2, false, true},
		"parent":        {func(x *holdfast.RawTransaction) { x.Parent = []byte("another") }, 2, false, true},
		"no parent":     {func(x *holdfast.RawTransaction) { x.Parent = nil }, 2, false, true},
		"term low":      {func(x *holdfast.RawTransaction) { x.Term = 1 }, 2, false, false},
		"term high":     {func(x *holdfast.RawTransaction) { x.Term = 3 }, 2, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := storetest.NewScript(t, "m", store.Options{})
				s.Elect(2)
				a := begin(t.Context(), s, creating("a"))
				s.Commit()
				a.committed(t, "a", 1)
				f := follower(t, s, store.Options{})
				b := begin(t.Context(), s, creating("b"))
				tx := transactions(t, s.Take())[0]
				c.spoil(tx)
				s.Apply(c.entryTerm, entryOf(t, tx))
				f.Feed(s.Log()...)
				same(t, "after it", s.Store, f.Store)
				if c.fits {
					b.committed(t, "b", 2)
					return
				}
				wantNames(t, s, "a ")
				b.failed(t, "b", errkind.NoLeader)
				if own := s.Store.Status().RefusedOwn; (own == 1) != c.own {
					t.Errorf("counted as a fault of ours: %d", own)
				}
				if f.Store.Status().RefusedOwn != 0 {
					t.Error("a follower counts it as its own")
				}
				if !c.own {
					s.Elect(4) // HEAD held it: nobody but a fault makes such a transaction
				}
				d := begin(t.Context(), s, creating("d"))
				s.Commit()
				d.committed(t, "d", 2)
				f.Feed(s.Log()...)
				same(t, "at the end", s.Store, f.Store)
			})
		})
	}
}

// The entry's own term counts, not only what the transaction says: the same bytes fit an
// entry of their term and no other.
func TestEntryOfAnotherTerm(t *testing.T) {
	for entryTerm, fits := range map[uint64]bool{1: true, 2: false, 3: false} {
		synctest.Test(t, func(t *testing.T) {
			s := storetest.NewLeader(t, "m", store.Options{})
			a := begin(t.Context(), s, creating("a"))
			data := s.Take()
			s.Apply(entryTerm, data)
			f := follower(t, s, store.Options{})
			same(t, "both", s.Store, f.Store)
			if fits {
				a.committed(t, "a", 1)
			} else {
				a.failed(t, "a", errkind.NoLeader)
				wantNames(t, s, "")
			}
		})
	}
}

// The leftover that the revision alone does not fence. In term 1 m makes a (revision 1) and
// on it b (revision 2). Another leader commits x as revision 1, m leads again, and b comes
// late: its revision is the next one, but what it was made on was never committed.
func TestLeftoverMadeOnWhatWasNeverCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewLeader(t, "m", store.Options{})
		other := storetest.NewScript(t, "o", store.Options{})
		other.Feed(m.Log()...)
		a := begin(t.Context(), m, creating("a"))
		m.Take()
		b := begin(t.Context(), m, creating("b"))
		late := m.Take()
		m.Store.Lost(1)
		other.Elect(2)
		x := begin(t.Context(), other, creating("x"))
		other.Commit()
		x.committed(t, "x", 1)
		other.Store.Lost(2)
		m.Feed(other.Log()...)
		a.failed(t, "a", errkind.NoLeader)
		b.failed(t, "b", errkind.NoLeader)
		m.Elect(3)
		c := begin(t.Context(), m, creating("c")) // revision 2, on x
		taken := m.Take()
		m.Apply(3, late)
		c.waits(t, "c")
		m.Apply(3, taken)
		c.committed(t, "c", 2)
		wantNames(t, m, "c x ")
		other.Feed(m.Log()...)
		same(t, "both", m.Store, other.Store)
		// The same transaction again, with a term that would fit: its parent does not.
		again := transactions(t, late)[0]
		again.Term, again.Revision = 3, 3
		m.Apply(3, entryOf(t, again))
		other.Feed(m.Log()...)
		wantNames(t, m, "c x ")
		same(t, "after the forgery", m.Store, other.Store)
	})
}

// A leftover of the leader's earlier term that is in the log under that term is committed,
// and its caller hears so, though the member does not lead any more.
func TestLeftoverCommittedByTheNextLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewLeader(t, "m", store.Options{})
		f := follower(t, m, store.Options{})
		a := begin(t.Context(), m, creating("a"))
		b := begin(t.Context(), m, creating("b"))
		data := m.Take()
		m.Store.Lost(1)
		// The next leader has the entry in its log, and commits it with its own first one.
		f.Apply(1, data)
		f.Elect(2)
		x := begin(t.Context(), f, creating("x"))
		f.Commit()
		x.committed(t, "x", 3)
		m.Feed(f.Log()...)
		a.committed(t, "a", 1)
		b.committed(t, "b", 2)
		same(t, "both", m.Store, f.Store)
	})
}

// In one entry some transactions fit and others do not: every member takes the same ones.
func TestEntryWithOneThatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{})
		for _, name := range []string{"a", "b", "c"} {
			begin(t.Context(), s, creating(name))
		}
		txs := transactions(t, s.Take())
		s.Apply(1, entryOf(t, txs[1], txs[0], txs[0], txs[2], txs[1]))
		f := follower(t, s, store.Options{})
		wantNames(t, f, "a b ")
		same(t, "both", s.Store, f.Store)
	})
}
