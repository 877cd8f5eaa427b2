package store

// HasHead tells whether the store keeps a HEAD.
func HasHead(s *MemoryStore) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head != nil
}

// HoldPublishing keeps new roots from being published until release is called.
func HoldPublishing(s *MemoryStore) (release func()) {
	s.events.mu.Lock()
	return s.events.mu.Unlock
}

// Settling tells whether somebody holds the lock of what waits.
func Settling(s *MemoryStore) bool {
	if !s.queue.mu.TryLock() {
		return true
	}
	s.queue.mu.Unlock()
	return false
}
