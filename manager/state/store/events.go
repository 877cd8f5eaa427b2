package store

import (
	"sync"

	"holdfast/manager/state"
	"holdfast/watch"
)

// publisher swaps the root and publishes what changed, so that a watcher which starts with a
// view sees exactly the events after it.
type publisher struct {
	mu    sync.Mutex
	queue *watch.Queue // nil until somebody watches
	// closed stays: a queue that is made after Close would not end.
	closed bool

	sleepers sleepers
}

// publish makes next the root and tells of the revisions that it has more. next may go on to
// be changed by the caller: the root is a copy.
func (s *MemoryStore) publish(next *root, entries ...*logEntry) {
	published := *next
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	s.requests.follow(s.root.Load().requests, published.requests)
	s.versions.follow(published.log)
	s.root.Store(&published)
	for _, e := range entries {
		for _, c := range e.changes {
			s.send(state.EventChange{Revision: e.revision, Change: c})
		}
		s.send(state.EventCommit{Revision: e.revision})
		s.events.sleepers.committed(e)
	}
}

// reset makes next the root in place of a state that it does not follow.
func (s *MemoryStore) reset(next *root) {
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	s.requests.replace(next.requests)
	s.versions.replace(next.log)
	s.events.sleepers.replaced(s.root.Load().revision, next)
	s.root.Store(next)
	s.send(state.EventReset{Revision: next.revision})
}

// send publishes one event, if somebody watches. events.mu is held.
func (s *MemoryStore) send(e any) {
	if s.events.queue == nil || s.events.closed {
		return
	}
	if err := s.events.queue.Publish(e); err != nil { // cannot be: only Close closes it
		s.events.closed = true
	}
}

// ViewAndWatch calls fn with a view, and returns a watcher that gets exactly the events after
// it: EventChange for each change, then EventCommit, for each revision; EventReset when the
// state was replaced. The watcher is cut off with a watch.SlowError if its consumer leaves more
// than limit events; it tells the revision after which Changes goes on. Stop it when done.
func (s *MemoryStore) ViewAndWatch(limit int, fn func(ReadTx) error) (*watch.Watcher, error) {
	w, tx, err := s.watch(limit)
	if err != nil {
		return nil, err
	}
	if err := fn(tx); err != nil {
		w.Stop() //nolint:errcheck // it fails if the store was closed, and the watcher is off then
		return nil, err
	}
	return w, nil
}

func (s *MemoryStore) watch(limit int) (*watch.Watcher, ReadTx, error) {
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	if s.events.closed {
		return nil, nil, watch.ErrClosed
	}
	if s.events.queue == nil {
		s.events.queue = watch.NewQueue()
	}
	tx := s.Root()
	w, err := s.events.queue.Watch(limit, tx.Revision())
	return w, tx, err
}

// Close ends all watchers. The store can still be read.
func (s *MemoryStore) Close() error {
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	s.events.closed = true
	if s.events.queue == nil {
		return nil
	}
	return s.events.queue.Close()
}
