package sim

import (
	"errors"
	"fmt"

	"holdfast/api/holdfast"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// errApply is an apply that fails for a reason outside, after which a member must stop.
var errApply = errors.New("sim: the store failed to apply an entry")

// observer is a member's store as raft sees it. It holds what is applied against the truth, and
// is raft where raft does something that is rare: it refuses a proposal, or brings one that was
// made on another state.
type observer struct {
	*store.MemoryStore
	p        *process
	revision uint64 // that was looked at last
	old      []*holdfast.RawTransaction
	lastTxn  []byte // ID of the transaction that was handed to raft last
}

// Apply implements state.Machine: entry by entry, so that each state is looked at.
func (o *observer) Apply(entries []state.Committed) error {
	p := o.p
	for i, e := range entries {
		if !p.calm && p.chance(p.profile.applyFails) {
			p.stats.ApplyFaults++
			return errApply
		}
		p.truth.applied(p.name(), e)
		before := o.Root().Revision()
		if err := o.MemoryStore.Apply(entries[i : i+1]); err != nil {
			return err
		}
		if at := o.Applied(); at.Index != e.Index || at.Term != e.Term {
			p.fail("members agree at an index", "n%d applied entry %d and says that it is at %d", p.id, e.Index, at.Index)
		}
		o.look()
		o.count(e, o.Root().Revision()-before)
		p.truth.follows(p.name(), o.MemoryStore)
		if e.Change != state.NoChange {
			p.stats.ConfChanges++
			p.tell("n%d applies: n%d %s", p.id, e.Peer.RaftID, became(e.Change))
		}
	}
	p.tell("n%d applied %d, revision %d", p.id, o.Applied().Index, o.revision)
	return nil
}

// became tells what a change of membership makes of a member.
func became(c state.ChangeType) string {
	switch c {
	case state.AddVoter:
		return "is a voter"
	case state.AddLearner:
		return "is a learner"
	case state.RemovePeer:
		return "is removed"
	case state.UpdatePeer:
		return "has another address"
	case state.NoChange:
	}
	return "is what it was"
}

// count holds the transactions of an entry against the revisions that they made: a leader makes
// none that does not fit.
func (o *observer) count(e state.Committed, made uint64) {
	var raw holdfast.RawEntry
	if err := raw.Unmarshal(e.Data); err != nil {
		o.p.fail("entries can be read", "entry %d: %v", e.Index, err)
	}
	want := uint64(0)
	for _, data := range raw.Transactions {
		t := &holdfast.RawTransaction{}
		if err := t.Unmarshal(data); err != nil {
			o.p.fail("entries can be read", "entry %d: %v", e.Index, err)
		}
		if !o.p.truth.leftovers[string(t.ID)] {
			want++
			if t.Term != e.Term {
				o.p.fail("an entry holds its own term", "entry %d of term %d holds a transaction of term %d", e.Index, e.Term, t.Term)
			}
		}
	}
	if made != want && !o.p.profile.strangers {
		o.p.fail("no transaction is refused", "n%d made %d revisions of the %d transactions of entry %d", o.p.id, made, want, e.Index)
	}
}

// look holds the revisions that are new against the truth.
func (o *observer) look() {
	revisions, err := o.Changes(o.revision, 1<<30)
	if err != nil {
		o.p.fail("revisions go up by one", "n%d after revision %d: %v", o.p.id, o.revision, err)
	}
	for _, r := range revisions {
		if r.Revision != o.revision+1 {
			o.p.fail("revisions go up by one", "n%d shows revision %d after %d", o.p.id, r.Revision, o.revision)
		}
		o.revision = r.Revision
		if r.Revision > o.Root().Revision() {
			o.p.fail("watchers see what is committed", "n%d shows changes of revision %d and is at %d", o.p.id, r.Revision, o.Root().Revision())
		}
		o.p.truth.revision(o.p.name(), r)
	}
	if o.revision != o.Root().Revision() {
		o.p.fail("revisions go up by one", "n%d is at revision %d, its log ends at %d", o.p.id, o.Root().Revision(), o.revision)
	}
}

// Restore implements state.Machine.
func (o *observer) Restore(r state.SectionReader) error {
	before := o.Root().Revision()
	if err := o.MemoryStore.Restore(r); err != nil {
		return err
	}
	now := o.Root().Revision()
	if now < before || now > o.p.truth.newestRevision() {
		o.p.fail("revisions go up by one", "n%d goes from revision %d to %d by a snapshot, and %d is the newest", o.p.id, before, now, o.p.truth.newestRevision())
	}
	o.revision = o.Status().Floor
	o.look()
	o.p.truth.follows(o.p.name(), o.MemoryStore)
	o.p.stats.Snapshots++
	o.p.tell("n%d restored %d, revision %d", o.p.id, o.Applied().Index, now)
	return nil
}

// Elected implements state.Machine.
func (o *observer) Elected(term uint64) {
	p := o.p
	p.stats.Elections++
	p.tell("n%d leads in term %d", p.id, term)
	p.truth.elected(term, p.id)
	p.elected = term
	o.MemoryStore.Elected(term)
}

// Lost implements state.Machine.
func (o *observer) Lost(term uint64) {
	o.p.tell("n%d leads no more in term %d", o.p.id, term)
	o.MemoryStore.Lost(term)
}

// Next implements state.Machine.
func (o *observer) Next(term uint64) []byte {
	p := o.p
	data := o.MemoryStore.Next(term)
	switch {
	case data == nil && !p.calm && p.chance(p.profile.leftovers):
		return o.leftover(term)
	case data == nil:
		return nil
	case p.refuses || !p.calm && p.chance(p.profile.refusals):
		p.refuses = false
		p.tell("n%d: raft refuses a proposal", p.id)
		p.stats.Refusals++
		o.Refused(term)
		return nil
	}
	o.remember(data)
	return data
}

// remember keeps transactions, to bring them again later.
func (o *observer) remember(data []byte) {
	var raw holdfast.RawEntry
	if err := raw.Unmarshal(data); err != nil {
		o.p.fail("entries can be read", "%v", err)
	}
	for _, b := range raw.Transactions {
		t := &holdfast.RawTransaction{}
		if err := t.Unmarshal(b); err != nil {
			o.p.fail("entries can be read", "%v", err)
		}
		o.lastTxn = t.ID
		if len(o.old) < 20 {
			o.old = append(o.old, t)
		}
	}
}

// leftover makes an entry of an old transaction whose revision fits, and whose parent or term
// does not: what a leader could bring that lost and won leadership again.
func (o *observer) leftover(term uint64) []byte {
	p, st := o.p, o.Status()
	if len(o.old) == 0 || st.Pending > 0 || st.Revision == 0 {
		return nil
	}
	last, err := o.Changes(st.Revision-1, 1)
	if err != nil || len(last) != 1 {
		return nil // nothing is in the log
	}
	t := *o.old[p.rng.IntN(len(o.old))]
	t.ID = []byte(fmt.Sprint("left", p.random(12)))
	t.Revision, t.Term, t.RequestID = st.Revision+1, term, ""
	if !p.profile.strangers {
		t.Parent, t.Term = last[0].TxnID, term-1
	} else if string(t.Parent) == string(last[0].TxnID) {
		t.Parent = []byte("another parent..")
	}
	b, err := t.Marshal()
	if err != nil {
		p.fail("entries can be read", "%v", err)
	}
	data, err := (&holdfast.RawEntry{Transactions: [][]byte{b}}).Marshal()
	if err != nil {
		p.fail("entries can be read", "%v", err)
	}
	p.truth.leftovers[string(t.ID)] = true
	p.stats.Leftovers++
	p.tell("n%d brings a transaction that does not fit, for revision %d", p.id, t.Revision)
	return data
}
