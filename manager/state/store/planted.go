package store

// What planted faults do, where it is more than a line. Nothing here runs in the product.

// openEarly sets HEAD to ROOT, and opens Update, when raft is elected.
func (s *MemoryStore) openEarly(term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head = &head{position: s.root.Load().writable(), term: term}
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.queue.opened = term
}

// waitingOf returns the n-th transaction that waits if it is for the revision, else nil.
func (q *queue) waitingOf(n int, revision uint64) *pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n >= len(q.waiting) || q.waiting[n].entry.revision != revision {
		return nil
	}
	return q.waiting[n]
}

// butLast leaves out what is emitted last.
func butLast(emit func(marshaler) error) func(marshaler) error {
	var held marshaler
	return func(next marshaler) error {
		before := held
		held = next
		if before == nil {
			return nil
		}
		return emit(before)
	}
}

// uncommitted returns up to most of the revisions after one that wait for their outcome.
func (q *queue) uncommitted(after uint64, most int) []Revision {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []Revision
	for _, p := range q.waiting {
		if p.entry.revision > after && len(out) < most {
			r := p.entry.public()
			r.Hash = nil // not known before it is applied
			out = append(out, r)
		}
	}
	return out
}
