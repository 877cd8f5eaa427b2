package store

import (
	"time"

	memdb "github.com/hashicorp/go-memdb"

	"holdfast/api/holdfast"
	"holdfast/manager/state"
)

// position is a state that a transaction left: the objects, and what the next transaction is
// made from. It is never changed.
type position struct {
	db       *memdb.MemDB
	revision uint64
	txnID    []byte // of the transaction that left it
	at       time.Time
}

// root is everything that is replicated, at one index of the log. It is never changed; the
// next one takes its place through one atomic pointer.
type root struct {
	position
	index       uint64
	term        uint64 // of the entry at index
	incarnation uint64
	hash        []byte
	log         changeLog
	versions    *versionIndex // of the store, which knows the log of this root at least
	requests    requestTable
	peers       []holdfast.Peer
	removed     []uint64
}

func (r *root) read() ReadTx { return readTx{txn: r.db.Txn(false), revision: r.revision, root: r} }

// view returns a view of a revision, which check has passed.
func (r *root) view(revision uint64) ReadTx {
	if revision == r.revision {
		return r.read()
	}
	return &pastTx{root: r, txn: r.db.Txn(false), revision: revision, versions: r.versions}
}

// head is what the next transaction of this leader is made on.
type head struct {
	position
	term uint64
}

// New makes an empty store. It accepts writes once raft has elected this member.
func New(o Options) (*MemoryStore, error) {
	o.setDefaults()
	db, err := newDB()
	if err != nil {
		return nil, err
	}
	s := &MemoryStore{opts: o}
	s.queue.init(o)
	s.root.Store(&root{position: position{db: db}, incarnation: 1, versions: &s.versions})
	return s, nil
}

// newDB makes an empty database that closes no watch channels: what is written to a memdb of
// its own is not watched, so the cost of that is saved.
func newDB() (*memdb.MemDB, error) {
	schema := &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{}}
	for _, t := range tables {
		schema.Tables[t.Table.Name] = t.Table
	}
	db, err := memdb.NewMemDB(schema)
	if err != nil {
		return nil, err
	}
	return db.Snapshot(), nil
}

// Applied tells how far the log is applied, and the membership there.
func (s *MemoryStore) Applied() state.Applied {
	r := s.root.Load()
	return state.Applied{
		Index: r.index, Term: r.term, Revision: r.revision, Hash: r.hash,
		Peers: r.peers, Removed: r.removed,
	}
}

// Position tells the newest committed revision and its incarnation. It takes no lock.
func (s *MemoryStore) Position() (incarnation, revision uint64) {
	r := s.root.Load()
	return r.incarnation, r.revision
}

// Status is what there is to see of a store from outside.
type Status struct {
	Incarnation   uint64
	Revision      uint64
	Floor         uint64 // oldest revision that can be read
	Hash          []byte // state hash at Revision
	LogEntries    int
	LogBytes      int
	Requests      int
	RequestsFloor uint64 // revision of the last request that was forgotten
	Pending       int
	PendingBytes  int
	RefusedOwn    uint64 // transactions of the leader's own term that did not fit: a fault
}

// Status tells the store's position and how full its bounded parts are.
func (s *MemoryStore) Status() Status {
	r := s.root.Load()
	st := Status{
		Incarnation: r.incarnation, Revision: r.revision, Floor: r.log.floor, Hash: r.hash,
		LogEntries: len(r.log.entries), LogBytes: r.log.bytes, Requests: len(r.requests.records),
		RequestsFloor: r.requests.floor,
	}
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	st.Pending, st.PendingBytes, st.RefusedOwn = len(s.queue.waiting), s.queue.bytes, s.queue.refusedOwn
	return st
}
