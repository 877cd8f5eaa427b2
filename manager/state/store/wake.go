package store

import (
	"holdfast/api/holdfast"
	"holdfast/manager/state"
)

// KindSet is a set of kinds. The zero value is empty.
type KindSet uint32

// Kinds makes a set.
func Kinds(kinds ...holdfast.Kind) KindSet {
	var set KindSet
	for _, k := range kinds {
		set |= 1 << k
	}
	return set
}

// Has tells whether a kind is in the set.
func (s KindSet) Has(k holdfast.Kind) bool { return s&(1<<k) != 0 }

// Union returns what is in one of the sets.
func (s KindSet) Union(o KindSet) KindSet { return s | o }

func kindsOf(changes []state.Change) (set KindSet) {
	for i := range changes {
		set |= 1 << changes[i].Kind
	}
	return set
}

// Waker wakes one goroutine when something that it waits for is committed. It belongs to that
// goroutine, and holds the store's log by nothing: a sleeper costs its place in a map.
type Waker struct {
	// C gets a value when the sleeper is to wake.
	C     <-chan struct{}
	c     chan struct{}
	store *MemoryStore

	// What follows is guarded by the store's events.mu.
	kinds KindSet // that it sleeps for; empty while it is awake
	after uint64  // nothing of kinds changed up to here, since it fell asleep
}

// sleepers are the wakers whose goroutines sleep, by the kinds that they wait for. Sets differ
// little, so a commit looks at a few of them only.
type sleepers struct {
	byKinds map[KindSet]map[*Waker]struct{}
	// changed is the last revision that changed each kind, or a later one if that is not known.
	changed map[holdfast.Kind]uint64
}

// NewWaker makes a waker. It needs no end, but to be awake.
func (s *MemoryStore) NewWaker() *Waker {
	c := make(chan struct{}, 1)
	return &Waker{C: c, c: c, store: s}
}

// Sleep tells whether there is nothing to see: none of the kinds changed after a revision. If
// so, C gets a value once one does, and Wake must be called before Sleep is called again.
func (w *Waker) Sleep(kinds KindSet, after uint64) bool {
	w.store.events.mu.Lock()
	defer w.store.events.mu.Unlock()
	s := &w.store.events.sleepers
	for kind, revision := range s.changed {
		if kinds.Has(kind) && revision > after {
			return false
		}
	}
	w.kinds, w.after = kinds, max(after, w.store.root.Load().revision)
	if s.byKinds == nil {
		s.byKinds = map[KindSet]map[*Waker]struct{}{}
	}
	if s.byKinds[kinds] == nil {
		s.byKinds[kinds] = map[*Waker]struct{}{}
	}
	s.byKinds[kinds][w] = struct{}{}
	return true
}

// Wake ends the sleep, whether or not C got a value. It returns a revision up to which none of
// the kinds changed while it slept, so that a sleeper does not fall behind the floor because
// of what is nothing to it.
func (w *Waker) Wake() uint64 {
	w.store.events.mu.Lock()
	defer w.store.events.mu.Unlock()
	after := w.after
	if w.store.events.sleepers.remove(w) { // it was not woken
		after = max(after, w.store.root.Load().revision)
	}
	select {
	case <-w.c:
	default:
	}
	return after
}

// remove takes out a waker, and tells whether it was there.
func (s *sleepers) remove(w *Waker) bool {
	asleep := w.kinds != 0
	if set := s.byKinds[w.kinds]; asleep {
		delete(set, w)
		if len(set) == 0 {
			delete(s.byKinds, w.kinds)
		}
	}
	w.kinds = 0
	return asleep
}

// committed wakes those who wait for what a revision changed.
func (s *sleepers) committed(e *logEntry) {
	kinds := kindsOf(e.changes)
	for i := range e.changes {
		s.note(e.changes[i].Kind, e.revision)
	}
	for set, wakers := range s.byKinds {
		if set&kinds == 0 {
			continue
		}
		for w := range wakers {
			if e.revision > w.after { // it may wait for one that is to come
				s.wake(w, e.revision-1)
			}
		}
	}
}

func (s *sleepers) note(kind holdfast.Kind, revision uint64) {
	if s.changed == nil {
		s.changed = map[holdfast.Kind]uint64{}
	}
	s.changed[kind] = revision
}

// replaced wakes all: another state takes the place of the one at a revision.
func (s *sleepers) replaced(was uint64, next *root) {
	s.changed = nil
	for i := range tables {
		s.note(tables[i].Kind, next.log.floor)
	}
	for _, e := range next.log.entries {
		for i := range e.changes {
			s.note(e.changes[i].Kind, e.revision)
		}
	}
	for _, wakers := range s.byKinds {
		for w := range wakers {
			s.wake(w, max(w.after, was))
		}
	}
}

func (s *sleepers) wake(w *Waker, after uint64) {
	s.remove(w)
	w.after = after
	w.c <- struct{}{} // it has room: a waker that is awake is not in the map
}

// Entry is one revision of the log, for a reader that goes through many.
type Entry struct{ e *logEntry }

// Revision returns the entry's revision.
func (e Entry) Revision() uint64 { return e.e.revision }

// Changes returns what it changed. It is the log's own and must not be changed.
func (e Entry) Changes() []state.Change { return e.e.changes }

// maxEntriesBytes is when Entries stops to fill its buffer: what is read is held as long as the
// reader takes.
const maxEntriesBytes = 1 << 20

// Entries appends the revisions after one to a buffer without making it larger, oldest first,
// and returns a revision up to which there was nothing else. It fails with errkind.OutOfRange,
// which tells the floor, if some of them are not in the log any more; a revision that is not
// there yet is no error. It does not block.
func (s *MemoryStore) Entries(after uint64, buffer []Entry) ([]Entry, uint64, error) {
	r := s.root.Load()
	if after >= r.revision {
		return buffer, after, nil
	}
	if err := r.check(after); err != nil {
		return buffer, after, err
	}
	bytes := 0
	for _, e := range r.log.after(after) {
		if len(buffer) == cap(buffer) || bytes > maxEntriesBytes {
			return buffer, after, nil
		}
		buffer = append(buffer, Entry{e})
		after = e.revision
		bytes += e.size
	}
	return buffer, after, nil
}
