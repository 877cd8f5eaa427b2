package store

import (
	"fmt"
	"slices"
	"sync"

	memdb "github.com/hashicorp/go-memdb"
)

// maxOpened is the number of past states that are kept open, for the pages of lists.
const maxOpened = 8

// openRoots keeps the past states that were read last, newest use first.
type openRoots struct {
	mu     sync.Mutex
	opened []openRoot
}

type openRoot struct {
	db       *memdb.MemDB
	revision uint64
	txnID    []byte // tells states of one revision apart, before and after a restore
}

func (o *openRoots) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.opened = nil
}

// drop closes the states below a revision.
func (o *openRoots) drop(below uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.opened = slices.DeleteFunc(o.opened, func(r openRoot) bool { return r.revision < below })
}

// At returns a view of the state at a revision. It fails with errkind.OutOfRange below the
// floor and above the present. A past state is made from the nearest one at hand by undoing
// the changes between, so it costs about 10 µs for each of them the first time.
func (s *MemoryStore) At(revision uint64) (ReadTx, error) {
	r := s.root.Load()
	if revision == r.revision {
		return r.read(), nil
	}
	if err := r.check(revision); err != nil {
		return nil, err
	}
	s.opened.mu.Lock()
	defer s.opened.mu.Unlock()
	from := openRoot{db: r.db, revision: r.revision, txnID: r.txnID}
	for i, o := range s.opened.opened {
		if o.revision < revision || o.revision >= from.revision || !r.has(o) {
			continue
		}
		from = o
		if o.revision == revision { // it was used now, so it goes to the front
			copy(s.opened.opened[1:i+1], s.opened.opened[:i])
			s.opened.opened[0] = o
			return readTx{txn: o.db.Txn(false), revision: revision}, nil
		}
	}
	o, err := r.undo(from, revision)
	if err != nil {
		return nil, err
	}
	s.opened.opened = append([]openRoot{o}, s.opened.opened[:min(len(s.opened.opened), maxOpened-1)]...)
	return readTx{txn: o.db.Txn(false), revision: revision}, nil
}

// has tells whether an opened state is of this root's own past: what follows was made on it.
// (The transaction that left the state at the floor is not in the log any more.)
func (r *root) has(o openRoot) bool {
	e := r.log.entry(o.revision + 1)
	return e != nil && string(e.parent) == string(o.txnID)
}

// undo makes the state at a revision from a later one.
func (r *root) undo(from openRoot, revision uint64) (openRoot, error) {
	db := from.db.Snapshot()
	txn := db.Txn(true)
	defer txn.Abort()
	for at := from.revision; at > revision; at-- {
		e := r.log.entry(at)
		if e == nil {
			return openRoot{}, fmt.Errorf("change log has no revision %d", at)
		}
		for i := len(e.changes) - 1; i >= 0; i-- {
			c := e.changes[i]
			var err error
			if c.Old != nil {
				err = txn.Insert(tableOf(c.Kind).Table.Name, c.Old)
			} else {
				err = txn.Delete(tableOf(c.Kind).Table.Name, c.New)
			}
			if err != nil {
				return openRoot{}, fmt.Errorf("undo revision %d: %w", at, err)
			}
		}
	}
	txn.Commit()
	return openRoot{db: db, revision: revision, txnID: r.log.entry(revision + 1).parent}, nil
}
