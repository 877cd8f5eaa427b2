package store

import (
	"bytes"
	"fmt"
	"slices"

	memdb "github.com/hashicorp/go-memdb"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/mutant"
	"holdfast/manager/state"
)

// Apply applies committed entries, in the order of the log. What it does depends on nothing
// but the entries and the state before them, so every member does the same. An error is a
// fault after which the process must end.
func (s *MemoryStore) Apply(entries []state.Committed) error {
	for _, e := range entries {
		cur := s.root.Load()
		if e.Index <= cur.index {
			return fmt.Errorf("apply: entry %d after entry %d", e.Index, cur.index)
		}
		if e.Term > cur.term {
			s.overtake(e.Term)
		}
		next := *cur
		next.index, next.term = e.Index, e.Term
		var err error
		switch {
		case e.Change != state.NoChange:
			if err = next.changePeers(e); err == nil {
				s.publish(&next)
			}
		case len(e.Data) > 0:
			err = s.applyEntry(&next, e)
		default:
			s.publish(&next)
		}
		if err != nil {
			return fmt.Errorf("apply entry %d of term %d: %w", e.Index, e.Term, err)
		}
		s.lead(e.Term)
	}
	return nil
}

// overtake tells transactions of earlier terms that they never come: an entry of a later term
// is applied, and they were not before it. HEAD, if it is of an earlier term, goes with them.
func (s *MemoryStore) overtake(term uint64) {
	s.mu.Lock()
	if s.head != nil && s.head.term < term && !s.opts.Planted.Has(mutant.HeadKept) {
		s.head = nil
	}
	s.mu.Unlock()
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 && q.waiting[0].entry.term < term {
		if q.planted.Has(mutant.KeptByRevision) || q.handed == 0 && q.planted.Has(mutant.StaleQueue) {
			return
		}
		q.popLocked(errNotLeading("another leader was elected before it was replicated"))
	}
}

// lead opens Update once the first entry of the term is applied in which this member leads.
// It takes the write lock for that one entry only: a writer that runs must not hold up what is
// committed.
func (s *MemoryStore) lead(term uint64) {
	s.queue.mu.Lock()
	opens := s.queue.leadsLocked(term) && s.queue.opened < term
	if opens {
		s.queue.opened = term
	}
	s.queue.mu.Unlock()
	if !opens {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head != nil && s.opts.Planted.Has(mutant.HeadKept) {
		s.head.term = term
	}
	if s.head == nil || s.head.term < term {
		s.resetHead(term, errNotLeading("another term began"))
	}
}

// resetHead sets HEAD to ROOT and fails what waits. The write lock is held.
func (s *MemoryStore) resetHead(term uint64, why error) {
	s.queue.mu.Lock()
	s.queue.begun++
	if !s.opts.Planted.Has(mutant.StaleQueue) {
		s.queue.cutLocked(0, func(*pending) error { return why })
	}
	s.queue.mu.Unlock()
	s.head = &head{position: s.root.Load().writable(), term: term}
}

// applyEntry applies the transactions of an entry to next and publishes it.
func (s *MemoryStore) applyEntry(next *root, e state.Committed) error {
	var raw holdfast.RawEntry
	if err := raw.Unmarshal(e.Data); err != nil {
		return fmt.Errorf("decode entry: %w", err)
	}
	a := applying{store: s, next: next}
	for _, data := range raw.Transactions {
		t := &holdfast.RawTransaction{}
		if err := t.Unmarshal(data); err != nil {
			return fmt.Errorf("decode transaction: %w", err)
		}
		if !a.fits(t, e.Term) {
			a.refused = append(a.refused, t)
			continue
		}
		if err := a.apply(t, len(data)); err != nil {
			return fmt.Errorf("transaction for revision %d: %w", t.Revision, err)
		}
	}
	a.commit()
	next.log = next.log.compact(min(raw.Compact, next.revision))
	s.queue.mu.Lock()
	s.publish(next, a.done...)
	for range a.kept {
		s.queue.popLocked(nil)
	}
	s.queue.mu.Unlock()
	if raw.Compact > 0 {
		s.compacted(next.log.floor)
	}
	for _, t := range a.refused {
		s.refuse(t, e.Term)
	}
	if a.kept < len(a.done) {
		s.passed(e.Term)
	}
	return nil
}

// applying is the state of one entry while its transactions are applied.
type applying struct {
	store   *MemoryStore
	next    *root
	txn     *memdb.Txn // on next.db, if actions were done there
	done    []*logEntry
	kept    int // how many of done are the first ones that wait here
	refused []*holdfast.RawTransaction
}

// apply makes next the state after a transaction that fits: the snapshot that Update kept, if
// it was made here, and else by doing its actions.
func (a *applying) apply(t *holdfast.RawTransaction, size int) error {
	if p := a.waiting(t); p != nil {
		a.commit()
		a.kept++
		return a.applyKept(p)
	}
	if a.txn == nil {
		a.next.db = a.next.db.Snapshot()
		a.txn = a.next.db.Txn(true)
	}
	return a.applyActions(t, size)
}

// waiting returns the next transaction that waits here if it is this one, else nil.
func (a *applying) waiting(t *holdfast.RawTransaction) *pending {
	q := &a.store.queue
	if q.planted.Has(mutant.KeptByRevision) {
		return q.waitingOf(a.kept, t.Revision)
	}
	if p := q.waitingAt(a.kept, t.ID); p != nil && p.entry.term == t.Term {
		return p
	}
	return nil
}

func (a *applying) commit() {
	if a.txn != nil {
		a.txn.Commit()
		a.txn = nil
	}
}

// fits tells whether a transaction was made on the state that is there, by the leader of the
// term that its entry is of. The revision alone does not tell: a leader that lost and regained
// leadership may have one over that was made on a state that was never committed.
func (a *applying) fits(t *holdfast.RawTransaction, term uint64) bool {
	planted := a.store.opts.Planted
	return t.Revision == a.next.revision+1 &&
		(bytes.Equal(t.Parent, a.next.txnID) || planted.Has(mutant.FenceWithoutParent)) &&
		(t.Term == term || planted.Has(mutant.FenceWithoutTerm))
}

func (a *applying) applyKept(p *pending) error {
	tx := readTx{txn: p.after.db.Txn(false), revision: p.after.revision}
	hash, err := chain(tx, a.next.hash, p.entry.revision, p.entry.changes, p.actions)
	if err != nil {
		return err
	}
	p.entry.hash = hash
	a.next.position = p.after
	floor := a.next.log.floor
	a.add(p.entry)
	if a.store.opts.Planted.Has(mutant.FloorUndone) {
		a.next.log.floor = floor
	}
	return nil
}

func (a *applying) applyActions(t *holdfast.RawTransaction, size int) error {
	e := &logEntry{
		revision: t.Revision, term: t.Term, txnID: t.ID, parent: t.Parent, at: t.At, size: size,
		request: state.Request{ID: t.RequestID, Digest: t.Digest, Caller: t.Caller, Message: t.Message},
	}
	digests := make([]actionDigest, len(t.Actions))
	for i, data := range t.Actions {
		digests[i] = digestAction(data)
		var action api.StoreAction
		if err := action.Unmarshal(data); err != nil {
			return fmt.Errorf("decode action %d: %w", i, err)
		}
		c, err := ApplyStoreAction(a.txn, &action)
		if err != nil {
			return err
		}
		e.changes = append(e.changes, c)
	}
	var err error
	if e.hash, err = chain(rawTx{a.txn}, a.next.hash, e.revision, e.changes, digests); err != nil {
		return err
	}
	a.next.revision, a.next.txnID, a.next.at = e.revision, e.txnID, e.time()
	a.add(e)
	return nil
}

// add puts an applied revision into the hash chain, the log and the request table.
func (a *applying) add(e *logEntry) {
	a.next.hash = e.hash
	a.next.log = a.next.log.push(e, a.store.opts.MaxLog, a.store.opts.MaxLogBytes)
	if record := e.record(); record != nil {
		a.next.requests = a.next.requests.push(record, a.store.opts.MaxRequests)
	}
	a.done = append(a.done, e)
}

// ApplyStoreAction does one committed action on a memdb transaction and returns what it
// changed. An action that does not fit the state, or is of a kind that this version does not
// know, is a fault.
func ApplyStoreAction(txn *memdb.Txn, action *api.StoreAction) (state.Change, error) {
	for _, t := range tables {
		if c, ok, err := t.ApplyStoreAction(txn, action); ok {
			return c, err
		}
	}
	return state.Change{}, errkind.New(errkind.Internal, "a committed action is of a kind that this version does not know")
}

// tableOf returns the table of a kind, which a change cannot be without.
func tableOf(kind holdfast.Kind) *ObjectStoreConfig {
	for i := range tables {
		if tables[i].Kind == kind {
			return &tables[i]
		}
	}
	panic(fmt.Sprintf("store: no table of kind %v", kind))
}

// refuse drops a transaction that does not fit, as every member does.
func (s *MemoryStore) refuse(t *holdfast.RawTransaction, term uint64) {
	s.queue.mu.Lock()
	if s.queue.firstLocked(t.ID) != nil {
		s.queue.popLocked(errNotLeading("it was made on a state that was not committed"))
	}
	own := s.queue.leadsLocked(term)
	s.queue.mu.Unlock()
	if !own {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head == nil || s.head.term != term || t.Term != term {
		return
	}
	// The leader of this very term made it, so this is a fault of ours.
	s.queue.mu.Lock()
	s.queue.refusedOwn++
	s.queue.mu.Unlock()
	s.resetHead(term, errUnknown("the leader refused a transaction of its own", nil))
}

// passed sets HEAD to ROOT after a transaction of the leader's own was applied that does not
// wait: HEAD was set back after a fault, and what raft had then was applied all the same.
func (s *MemoryStore) passed(term uint64) {
	if !s.queue.leads(term) || s.opts.Planted.Has(mutant.HeadPassed) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head != nil && s.head.term == term {
		s.resetHead(term, errUnknown("the leader applied a transaction that it had given up", nil))
	}
}

// changePeers applies a change of membership.
func (r *root) changePeers(e state.Committed) error {
	peers := slices.DeleteFunc(slices.Clone(r.peers), func(p holdfast.Peer) bool { return p.RaftID == e.Peer.RaftID })
	switch e.Change {
	case state.AddLearner, state.AddVoter:
		p := e.Peer
		p.Learner = e.Change == state.AddLearner
		peers = append(peers, p)
	case state.UpdatePeer:
		if old, ok := (state.Applied{Peers: r.peers}).Peer(e.Peer.RaftID); ok {
			p := e.Peer
			p.Learner = old.Learner
			peers = append(peers, p)
		}
	case state.RemovePeer:
		if !slices.Contains(r.removed, e.Peer.RaftID) {
			r.removed = append(slices.Clone(r.removed), e.Peer.RaftID)
		}
	default:
		return fmt.Errorf("change of membership of the unknown kind %d", e.Change)
	}
	slices.SortFunc(peers, func(a, b holdfast.Peer) int {
		if a.RaftID < b.RaftID {
			return -1
		}
		return 1
	})
	r.peers = peers
	return nil
}
