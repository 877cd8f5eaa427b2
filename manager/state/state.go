// Package state is where the raft node and the store meet: what each asks of the other, and
// the events that a committed change makes. Neither of them imports the other.
package state

import (
	"context"

	"holdfast/api"
	"holdfast/api/holdfast"
)

// Object is any object of the store. What a read returns is shared and is never changed:
// Copy it first.
type Object interface {
	GetID() string
	GetMeta() api.Meta
	Size() int
	Marshal() ([]byte, error)
}

// Change is what one transaction did to one object. Old is nil for a create, New for a remove.
type Change struct {
	Kind holdfast.Kind
	Old  Object
	New  Object
}

// Object returns what the change left, or for a remove what it took away.
func (c Change) Object() Object {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// Action tells what the change did.
func (c Change) Action() api.StoreActionKind {
	switch {
	case c.Old == nil:
		return api.StoreActionKind_STORE_ACTION_CREATE
	case c.New == nil:
		return api.StoreActionKind_STORE_ACTION_REMOVE
	}
	return api.StoreActionKind_STORE_ACTION_UPDATE
}

// EventChange is published for each change of a committed transaction, in the order in which
// the transaction made them.
type EventChange struct {
	Revision uint64
	Change
}

// EventCommit is published after the last EventChange of a transaction.
type EventCommit struct{ Revision uint64 }

// Position implements watch.Positioner.
func (e EventCommit) Position() uint64 { return e.Revision }

// EventReset is published when the state was replaced by a received snapshot: what happened
// between is in the store's log, if it is not below its floor, and not in events.
type EventReset struct{ Revision uint64 }

// Position implements watch.Positioner.
func (e EventReset) Position() uint64 { return e.Revision }

// Request names what a transaction is the outcome of, for retries and for history.
type Request struct {
	ID      string // empty: a retry cannot be told from a new request
	Digest  []byte // SHA-256 of method and message; the same ID with another digest is invalid
	Caller  string // who asked
	Message string // why, in the caller's words
}

type requestKey struct{}

// WithRequest returns a context whose Update stamps r on the transaction.
func WithRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestFrom returns the request in ctx, or a zero one.
func RequestFrom(ctx context.Context) Request {
	r, ok := ctx.Value(requestKey{}).(Request)
	if !ok {
		return Request{}
	}
	return r
}

// Proposer is raft as the store sees it.
type Proposer interface {
	// Wake tells that the store has transactions to propose. It does not block.
	Wake()
	// ReadIndex blocks until a read index that was begun after the call is confirmed by a
	// quorum and everything up to it is applied here. It fails with errkind.NoLeader if
	// there is no leader, and with ctx.
	ReadIndex(ctx context.Context) error
}

// ChangeType is what a change of membership does.
type ChangeType int

// The changes of membership.
const (
	NoChange ChangeType = iota
	AddLearner
	AddVoter // also promotes a learner
	RemovePeer
	UpdatePeer // a new address
)

// Committed is one committed raft log entry: transactions, or a change of membership, or
// nothing.
type Committed struct {
	Index  uint64
	Term   uint64
	Data   []byte // encoded holdfast.Entry
	Change ChangeType
	Peer   holdfast.Peer
}

// Machine is the store as raft sees it. Apply, Restore and Applied are called from one
// goroutine, in the order of the log; Elected, Lost, Next and Refused from raft's loop.
type Machine interface {
	// Apply applies committed entries. An error is a fault that ends the process.
	Apply(entries []Committed) error
	// Restore replaces everything by a snapshot.
	Restore(r SectionReader) error
	// Applied tells how far the log is applied, and the membership there. It may be called
	// from anywhere.
	Applied() Applied
	// Image returns the present state, for a snapshot. It is the state at one index only
	// between two calls of Apply.
	Image() Image

	// Elected tells that this member leads since term. The store accepts writes once an
	// entry of that term is applied.
	Elected(term uint64)
	// Lost tells that this member does not lead in term, nor in any before it.
	Lost(term uint64)
	// Next packs transactions that wait into the data of one entry and counts them as
	// handed to raft; nil if none waits, or if term is not the one they were made in.
	Next(term uint64) []byte
	// Refused tells that raft did not take what Next returned last.
	Refused(term uint64)
	// Stop tells that nothing is applied any more: the outcome of what waits is unknown.
	Stop()
}

// Image is everything that is replicated, at one index of the log. It is never changed, and
// can be saved at any time.
type Image interface {
	Applied() Applied
	Save(w SectionWriter) error
}

// Applied is the state beside the objects, at one log index.
type Applied struct {
	Index    uint64
	Term     uint64 // of the entry at Index
	Revision uint64
	Hash     []byte // state hash at Revision
	Peers    []holdfast.Peer
	Removed  []uint64 // raft IDs that are never used again
}

// Peer returns the peer with a raft ID.
func (a Applied) Peer(raftID uint64) (holdfast.Peer, bool) {
	for _, p := range a.Peers {
		if p.RaftID == raftID {
			return p, true
		}
	}
	return holdfast.Peer{}, false
}

// SectionWriter takes a snapshot: sections by name, each a number of records.
type SectionWriter interface {
	Section(name string) error
	Record(b []byte) error
}

// SectionReader gives a snapshot back in the order in which it was written.
type SectionReader interface {
	// Next returns the next record; it belongs to the caller. A section without records is
	// not seen. io.EOF comes only after the whole was verified.
	Next() (section string, record []byte, err error)
}
