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
}

// publish makes next the root and tells of the revisions that it has more. next may go on to
// be changed by the caller: the root is a copy.
func (s *MemoryStore) publish(next *root, entries []*logEntry) {
	published := *next
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	s.root.Store(&published)
	if s.events.queue == nil {
		return
	}
	for _, e := range entries {
		for _, c := range e.changes {
			s.send(state.EventChange{Revision: e.revision, Change: c})
		}
		s.send(state.EventCommit{Revision: e.revision})
	}
}

// send publishes one event. It fails only on a closed queue, and then nobody watches.
func (s *MemoryStore) send(e any) {
	if err := s.events.queue.Publish(e); err != nil {
		s.events.queue = nil
	}
}

// ViewAndWatch calls fn with a view, and returns a watcher that gets exactly the events after
// it: EventChange for each change, then EventCommit, for each revision; EventReset when the
// state was replaced. The watcher is cut off with watch.ErrSlow if its consumer leaves more
// than limit events. Stop it when done.
func (s *MemoryStore) ViewAndWatch(limit int, fn func(ReadTx) error) (*watch.Watcher, error) {
	s.events.mu.Lock()
	if s.events.queue == nil {
		s.events.queue = watch.NewQueue()
	}
	w, err := s.events.queue.Watch(limit)
	tx := s.Root()
	s.events.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := fn(tx); err != nil {
		if stopErr := w.Stop(); stopErr != nil {
			return nil, stopErr
		}
		return nil, err
	}
	return w, nil
}

// Close ends all watchers. The store can still be read.
func (s *MemoryStore) Close() error {
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	if s.events.queue == nil {
		return nil
	}
	return s.events.queue.Close()
}
