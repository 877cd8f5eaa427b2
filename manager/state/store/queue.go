package store

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"sync"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/mutant"
	"holdfast/manager/state"
)

// pending is a transaction that is on HEAD and whose outcome is not known yet.
type pending struct {
	entry   *logEntry // hash is set when it is applied
	raw     []byte    // encoded holdfast.Transaction
	actions []actionDigest
	after   position // the state that it leaves
	outcome *state.Outcome
}

// queue is the transactions that wait for their outcome, in order. Those before handed are
// with raft.
type queue struct {
	maxCount, maxBytes, maxEntry int
	planted                      mutant.Set

	mu         sync.Mutex
	waiting    []*pending
	handed     int
	last       int // how many of them were handed on last
	bytes      int
	elected    uint64 // newest term that raft leads in
	opened     uint64 // newest term in which HEAD was set to ROOT
	lost       uint64 // newest term that it does not lead in any more
	refusedOwn uint64
	begun      int           // how often HEAD was set to ROOT
	compact    *compaction   // nil if none is under way
	room       chan struct{} // closed when something leaves a full queue
}

func (q *queue) init(o Options) {
	q.maxCount, q.maxBytes, q.maxEntry = o.MaxPending, o.MaxPendingBytes, o.MaxEntryBytes
	q.planted = o.Planted
}

func (q *queue) leads(term uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.leadsLocked(term)
}

// stands tells whether this member still leads, and HEAD was not set to ROOT since: what was
// seen of it then holds.
func (q *queue) stands(term uint64, begun int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.leadsLocked(term) && (q.begun == begun || q.planted.Has(mutant.HeadBegunAnew))
}

func (q *queue) leadsLocked(term uint64) bool { return term == q.elected && term > q.lost }

// full tells whether no transaction may be added. One is added whatever its size.
func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.fullLocked()
}

func (q *queue) fullLocked() bool { return len(q.waiting) >= q.maxCount || q.bytes >= q.maxBytes }

// waitRoom blocks while the queue is full and this member leads, until ctx ends.
func (q *queue) waitRoom(ctx context.Context, wait state.Wait) error {
	for {
		q.mu.Lock()
		if !q.fullLocked() || q.elected <= q.lost {
			q.mu.Unlock()
			return nil
		}
		if q.room == nil {
			q.room = make(chan struct{})
		}
		room, count, bytes := q.room, len(q.waiting), q.bytes
		q.mu.Unlock()
		if ctx.Err() != nil {
			return &errkind.Error{
				Kind: errkind.Limit, Max: fmt.Sprintf("%d transactions, %d bytes", q.maxCount, q.maxBytes),
				Msg:  fmt.Sprintf("too many writes wait: %d, with %d bytes; nothing was done", count, bytes),
				Hint: "try again later", Err: ctx.Err(),
			}
		}
		wait(ctx, room, nil)
	}
}

// push adds a transaction, unless its term is lost meanwhile: then nobody would tell its
// outcome.
func (q *queue) push(p *pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.leadsLocked(p.entry.term) {
		return false
	}
	q.waiting = append(q.waiting, p)
	q.bytes += len(p.raw)
	return true
}

// newest returns the transaction that came last, or nil if none waits, and how often HEAD was
// set to ROOT.
func (q *queue) newest() (last *pending, begun int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil, q.begun
	}
	return q.waiting[len(q.waiting)-1], q.begun
}

// byRequest returns the transaction that waits for a request's outcome, or nil.
func (q *queue) byRequest(req state.Request) *pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.waiting {
		if r := &p.entry.request; r.ID == req.ID && r.Caller == req.Caller {
			return p
		}
	}
	return nil
}

// waitingAt returns the n-th transaction that waits if it has the ID, else nil.
func (q *queue) waitingAt(n int, txnID []byte) *pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n >= len(q.waiting) || string(q.waiting[n].entry.txnID) != string(txnID) {
		return nil
	}
	return q.waiting[n]
}

// firstLocked returns the transaction that waits longest if it has the ID, else nil.
func (q *queue) firstLocked(txnID []byte) *pending {
	if len(q.waiting) == 0 || string(q.waiting[0].entry.txnID) != string(txnID) {
		return nil
	}
	return q.waiting[0]
}

// popLocked takes the first one off and tells its outcome.
func (q *queue) popLocked(outcome error) {
	p := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	q.handed = max(q.handed-1, 0)
	q.bytes -= len(p.raw)
	q.tell(p, outcome)
	q.signalLocked()
}

// cutLocked takes off the n-th and all after it and tells their outcome.
func (q *queue) cutLocked(n int, outcome func(*pending) error) {
	for i, p := range q.waiting[n:] {
		q.bytes -= len(p.raw)
		q.tell(p, outcome(p))
		q.waiting[n+i] = nil
	}
	q.waiting = q.waiting[:n]
	q.handed = min(q.handed, n)
	q.signalLocked()
}

// tell tells the outcome of a transaction.
func (q *queue) tell(p *pending, outcome error) {
	if q.planted.Has(mutant.AckOnAppend) {
		if _, known := p.outcome.Known(); known {
			return
		}
	}
	p.outcome.Set(outcome)
}

func (q *queue) signalLocked() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}

// Elected tells that this member leads since term.
func (s *MemoryStore) Elected(term uint64) {
	if s.opts.Planted.Has(mutant.EarlyLeader) {
		s.openEarly(term)
	}
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.queue.elected = max(s.queue.elected, term)
}

// Lost closes Update at once. What was never handed to raft fails, and can be repeated; the
// outcome of the rest comes through the log.
func (s *MemoryStore) Lost(term uint64) {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost = max(q.lost, term)
	cut := q.handed < len(q.waiting) && q.waiting[q.handed].entry.term <= term
	if cut && !q.planted.Has(mutant.StaleQueue) {
		q.cutLocked(q.handed, func(*pending) error { return errNotLeading("leadership was lost before it was proposed") })
	}
	if q.lost >= q.opened {
		q.endCompaction(errCompaction("leadership was lost", nil))
	}
	q.signalLocked() // who waits for room would wait for what is with raft
}

// Next packs transactions that wait into the data of one entry: as many as fit, and one at
// least; and a compaction that was asked for.
func (s *MemoryStore) Next(term uint64) []byte {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	var entry holdfast.RawEntry
	size := 0
	for _, p := range q.waiting[q.handed:] {
		add := framed(len(p.raw))
		other := p.entry.term != term && !q.planted.Has(mutant.StaleQueue)
		if other || size > 0 && size+add > q.maxEntry {
			break
		}
		size += add
		entry.Transactions = append(entry.Transactions, p.raw)
		if q.planted.Has(mutant.AckOnAppend) {
			q.tell(p, nil)
		}
	}
	if q.leadsLocked(term) {
		entry.Compact = q.takeCompaction()
	}
	if len(entry.Transactions) == 0 && entry.Compact == 0 {
		return nil
	}
	data, err := entry.Marshal()
	if err != nil { // it is bytes in memory: nothing can fail
		panic(fmt.Sprintf("store: encode entry: %v", err))
	}
	q.last = len(entry.Transactions)
	q.handed += q.last
	return data
}

// framed is the size of n bytes as a field of an entry: with a tag, and their length.
func framed(n int) int { return 1 + (bits.Len(uint(n)|1)+6)/7 + n } //nolint:gosec // a length

// Refused takes back what Next returned last, and all that came after it: they fail, safe to
// repeat, and HEAD goes back to the last one that raft has.
func (s *MemoryStore) Refused(term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.compact != nil && q.compact.handed {
		q.endCompaction(errCompaction("raft did not take it", nil))
	}
	n := q.handed - q.last
	if q.last == 0 || n < 0 || n >= len(q.waiting) || q.waiting[n].entry.term != term {
		return // overtaken meanwhile
	}
	q.cutLocked(n, func(*pending) error { return errNotLeading("raft did not take it") })
	if s.head == nil || s.head.term != term {
		return
	}
	after := s.root.Load().position
	if n > 0 && !q.planted.Has(mutant.HeadToRoot) {
		after = q.waiting[n-1].after
	}
	s.head = &head{position: after.writable(), term: term}
}

// Stop closes Update for good. What is with raft may still be committed by the others; what
// raft never had fails, and can be repeated.
func (s *MemoryStore) Stop() {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost = math.MaxUint64
	q.endCompaction(errCompaction("this manager stopped", nil))
	q.cutLocked(q.handed, func(*pending) error { return errNotLeading("this manager stopped before it was proposed") })
	q.cutLocked(0, func(*pending) error { return errUnknown("this manager stopped before it was committed", nil) })
}

// writable gives a position whose database may be written without changing the other's.
func (p position) writable() position {
	p.db = p.db.Snapshot()
	return p
}

func errNotLeading(why string) error {
	return &errkind.Error{
		Kind: errkind.NoLeader, Msg: "not committed: " + why,
		Hint: "nothing was done: it is safe to try again",
	}
}

func errUnknown(why string, cause error) error {
	return &errkind.Error{
		Kind: errkind.UnknownOutcome, Msg: "unknown outcome: " + why, Err: cause,
		Hint: "try again with the same request ID, and get the first outcome",
	}
}
