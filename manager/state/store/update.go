package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/gogo/protobuf/types"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/mutant"
	"holdfast/internal/wire"
	"holdfast/manager/state"
)

// Update runs fn on HEAD and returns when what it changed is committed and applied here. fn
// runs under the write lock, must do nothing but read and change tx, and may run twice.
//
// If fn fails, or changes nothing, its error or the revision that it read is returned, once
// it is certain that what it saw was the committed state at some moment during the call.
//
// The outcome is true: errkind.NoLeader means that nothing was done and never will be,
// errkind.UnknownOutcome that it may still be done, for example because ctx ended. If ctx
// holds a state.Request that is known, its first outcome is returned and fn does not run.
func (s *MemoryStore) Update(ctx context.Context, fn func(*Tx) error) (Result, error) {
	for {
		res, again, err := s.attempt(ctx, fn)
		if !again {
			return res, err
		}
	}
}

// attempt runs fn once. again tells that what fn saw was lost, so that it runs again.
func (s *MemoryStore) attempt(ctx context.Context, fn func(*Tx) error) (res Result, again bool, err error) {
	if err := s.queue.waitRoom(ctx, s.opts.Wait); err != nil {
		return Result{}, false, err
	}
	if ctx.Err() != nil {
		return Result{}, false, nothingDone(ctx)
	}
	run, err := s.run(state.RequestFrom(ctx), fn)
	switch {
	case err != nil:
		return Result{}, false, err
	case run.full: // others came first
		return Result{}, true, nil
	case run.replay != nil:
		res, err = s.replay(ctx, run)
		return res, false, err
	case run.sealed != nil:
		s.opts.Proposer.Wake()
		res, err = s.await(ctx, run.sealed)
		return res, false, err
	}
	return s.confirm(ctx, run)
}

// run is what happened under the lock: one of sealed (a transaction was made), replay (the
// request is known) and neither (fn failed, or changed nothing).
type run struct {
	full     bool // too many wait: fn did not run
	sealed   *pending
	replay   *holdfast.RequestRecord
	digest   []byte
	term     uint64
	revision uint64   // that fn saw
	begun    int      // how often HEAD had been set to ROOT
	saw      *pending // the transaction that made it, or of replay, if it waited then
	err      error    // of fn
}

func (s *MemoryStore) run(req state.Request, fn func(*Tx) error) (run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.head
	if h == nil || !s.queue.leads(h.term) {
		return run{}, errNotLeading("this manager does not lead")
	}
	if s.queue.full() {
		return run{full: true}, nil
	}
	req.Digest = bytes.Clone(req.Digest) // the caller may use its bytes again
	r := run{term: h.term, revision: h.revision, digest: req.Digest}
	r.saw, r.begun = s.queue.newest()
	txn := h.db.Txn(true)
	defer txn.Abort() // does nothing after Commit
	if req.ID != "" {
		if p, record := s.known(req); record != nil {
			r.saw, r.replay = p, record
			return r, nil
		}
		newer, err := s.checkRequest(req, h.revision)
		if err != nil {
			return run{}, err
		}
		if newer != nil && s.opts.Planted.Has(mutant.UnconfirmedID) {
			return run{}, newer
		}
		if r.err = newer; newer != nil {
			return r, nil // true only if this member leads, which confirm finds out
		}
	}
	now := s.opts.Clock().Round(0) // as it is stamped: the monotonic clock would hide a step back
	if now.Before(h.at) {
		now = h.at
	}
	tx := &Tx{txn: txn, base: h.revision, now: now, at: timestamp(now), newID: s.opts.NewID}
	if r.err = fn(tx); r.err != nil {
		return r, nil
	}
	changes := tx.net()
	if len(changes) == 0 {
		return r, nil
	}
	p, err := s.seal(h, req, tx.at, changes)
	if err != nil {
		r.err = err
		return r, nil
	}
	txn.Commit()
	p.after = position{db: h.db.Snapshot(), revision: p.entry.revision, txnID: p.entry.txnID, at: now}
	if !s.queue.push(p) {
		s.head = nil // it holds what will never be
		return run{}, errNotLeading("leadership was lost before it was proposed")
	}
	s.head = &head{position: p.after, term: h.term}
	s.head.db = h.db
	r.sealed = p
	return r, nil
}

// known returns the outcome of a request that waits or is committed, and the transaction if it
// waits. One that leaves the queue between the two looks is in the root's table before.
func (s *MemoryStore) known(req state.Request) (*pending, *holdfast.RequestRecord) {
	if p := s.queue.byRequest(req); p != nil && !s.opts.Planted.Has(mutant.RequestForgotten) {
		return p, p.entry.record()
	}
	return nil, s.requests.find(req.Caller, req.ID)
}

// checkRequest refuses a request ID that may have been forgotten, since it can have been done,
// and, with newer, one that claims a revision which nobody can have seen: it would never be
// forgotten. A member that leads no more and does not know may take a true one for such.
func (s *MemoryStore) checkRequest(req state.Request, head uint64) (newer, err error) {
	seen, err := wire.ParseRequestID(req.ID)
	if err != nil {
		return nil, err
	}
	if seen > head {
		return errkind.Field(wire.RequestID, "was made at revision %d, the newest is %d", seen, head).
			WithHint("begin it with a revision that the cluster has told"), nil
	}
	if floor := s.root.Load().requests.floor; seen < floor {
		return nil, errUnknown(fmt.Sprintf(
			"the request ID was made at revision %d; requests before revision %d are forgotten", seen, floor), nil)
	}
	return nil, nil
}

// seal makes the transaction of the changes.
func (s *MemoryStore) seal(h *head, req state.Request, at *types.Timestamp, changes []state.Change) (*pending, error) {
	e := &logEntry{
		revision: h.revision + 1, term: h.term, txnID: s.opts.NewTxnID(), parent: h.txnID,
		at: at, request: req, changes: changes,
	}
	raw := e.header()
	p := &pending{entry: e, outcome: state.NewOutcome()}
	for _, c := range changes {
		action := tableOf(c.Kind).NewStoreAction(c)
		data, err := action.Marshal()
		if err != nil {
			return nil, fmt.Errorf("encode change: %w", err)
		}
		raw.Actions = append(raw.Actions, data)
		p.actions = append(p.actions, digestAction(data))
	}
	var err error
	if p.raw, err = raw.Marshal(); err != nil {
		return nil, fmt.Errorf("encode transaction: %w", err)
	}
	e.size = len(p.raw)
	if e.size > MaxTransactionBytes {
		return nil, &errkind.Error{
			Kind: errkind.Limit, Max: "4 MiB",
			Msg:  fmt.Sprintf("transaction of %d bytes is over the limit of 4 MiB", e.size),
			Hint: "split it",
		}
	}
	return p, nil
}

// header gives the entry as a transaction without its actions.
func (e *logEntry) header() *holdfast.RawTransaction {
	return &holdfast.RawTransaction{
		ID: e.txnID, Parent: e.parent, Revision: e.revision, Term: e.term, At: e.at,
		RequestID: e.request.ID, Digest: e.request.Digest, Caller: e.request.Caller, Message: e.request.Message,
	}
}

// await blocks until the outcome of a transaction is known, or ctx ends.
func (s *MemoryStore) await(ctx context.Context, p *pending) (Result, error) {
	s.opts.Wait(ctx, p.outcome.Done(), nil)
	outcome, known := p.outcome.Known()
	switch {
	case !known:
		return Result{}, errUnknown("the time ran out before it was committed", ctx.Err())
	case outcome != nil:
		return Result{}, outcome
	}
	return Result{Revision: p.entry.revision, IDs: p.entry.ids()}, nil
}

// replay returns the outcome of the first run of a request.
func (s *MemoryStore) replay(ctx context.Context, r run) (Result, error) {
	known := r.replay
	if !bytes.Equal(known.Digest, r.digest) {
		return Result{}, errkind.Field(wire.RequestID, "was used for another request").
			WithHint("make a new request ID for each request")
	}
	if r.saw != nil {
		if _, err := s.await(ctx, r.saw); err != nil {
			return Result{}, err
		}
	}
	// The record is the table's own: the caller gets a copy of what is in it.
	return Result{Revision: known.Revision, IDs: slices.Clone(known.IDs), Replayed: true}, nil
}

// confirm returns what fn said without changing anything, once it is certain that it was true:
// what it saw is committed, and this member still led when it ran.
func (s *MemoryStore) confirm(ctx context.Context, r run) (res Result, again bool, err error) {
	if s.opts.Planted.Has(mutant.ErrorAtOnce) {
		return Result{Revision: r.revision}, false, r.err
	}
	if r.saw != nil {
		if _, err := s.await(ctx, r.saw); err != nil {
			if ctx.Err() != nil {
				return Result{}, false, nothingDone(ctx)
			}
			return Result{}, true, nil
		}
	}
	if err := s.readIndex(ctx); err != nil {
		if ctx.Err() != nil {
			return Result{}, false, nothingDone(ctx)
		}
		return Result{}, false, err
	}
	if !s.queue.stands(r.term, r.begun) {
		return Result{}, true, nil
	}
	return Result{Revision: r.revision}, false, r.err
}

// readIndex makes sure that this member leads, or that what it has applied is as new as if it
// did.
func (s *MemoryStore) readIndex(ctx context.Context) error {
	if s.opts.Planted.Has(mutant.ErrorWithoutReadIndex) {
		return nil
	}
	return s.opts.Proposer.ReadIndex(ctx)
}

func nothingDone(ctx context.Context) error {
	return &errkind.Error{
		Kind: errkind.NoLeader, Msg: "the time ran out before the answer was certain; nothing was done", Err: ctx.Err(),
		Hint: "it is safe to try again",
	}
}
