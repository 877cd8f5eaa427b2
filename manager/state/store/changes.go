package store

import (
	"fmt"
	"time"

	"holdfast/api/holdfast"
	"holdfast/internal/mutant"
	"holdfast/manager/state"
)

// Revision is one committed transaction as the log keeps it. What it refers to is the log's
// own: it is never changed.
type Revision struct {
	Revision uint64
	Term     uint64
	TxnID    []byte
	At       time.Time
	Request  state.Request // its ID is empty if the transaction was made without one
	Changes  []state.Change
	Hash     []byte // state hash after it
}

// Changes returns up to most of the revisions after one, oldest first: none after the present
// one or a later one. It fails with errkind.OutOfRange, which tells the floor, if some of them
// are not in the log any more. It does not block.
func (s *MemoryStore) Changes(after uint64, most int) ([]Revision, error) {
	r := s.root.Load()
	var out []Revision
	if after < r.revision {
		if err := r.check(after); err != nil {
			return nil, err
		}
	}
	for at := after + 1; after < r.revision && at <= r.revision && len(out) < most; at++ {
		e := r.log.entry(at)
		if e == nil {
			return nil, fmt.Errorf("change log has no revision %d", at)
		}
		out = append(out, e.public())
	}
	if s.opts.Planted.Has(mutant.EventsBeforeCommit) {
		out = append(out, s.queue.uncommitted(max(after, r.revision), most-len(out))...)
	}
	return out, nil
}

func (e *logEntry) public() Revision {
	return Revision{
		Revision: e.revision, Term: e.term, TxnID: e.txnID, At: e.time(), Request: e.request,
		Changes: e.changes, Hash: e.hash,
	}
}

// Change returns what the revision did to one object; ok is false if it did nothing to it.
func (r Revision) Change(kind holdfast.Kind, id string) (c state.Change, ok bool) {
	return change(r.Changes, objectKey{kind, id})
}

func change(changes []state.Change, key objectKey) (c state.Change, ok bool) {
	for _, c := range changes {
		if c.Kind == key.kind && c.Object().GetID() == key.id {
			return c, true
		}
	}
	return state.Change{}, false
}

// checkpointInterval is how many revisions are between two checkpoints.
const checkpointInterval = 64

// Checkpoint returns the newest revision that is a multiple of 64, and the state hash there; no
// hash if it is not in the log any more.
func (s *MemoryStore) Checkpoint() (revision uint64, hash []byte) {
	r := s.root.Load()
	revision = r.revision - r.revision%checkpointInterval
	if e := r.log.entry(revision); e != nil {
		return revision, e.hash
	}
	return revision, nil
}
