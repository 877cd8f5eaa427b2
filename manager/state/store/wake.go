package store

import (
	"maps"
	"slices"

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

func kindsOf(changes []state.Change) (set KindSet) {
	for i := range changes {
		set |= 1 << changes[i].Kind
	}
	return set
}

// Interest is what a sleeper waits for: changes of some kinds, and of those objects of other
// kinds that have a value in an index, or had it before. It is not changed once it is used.
type Interest struct {
	Kinds  KindSet
	Values []Value
}

// Value is a value in an index of a kind, as By.Exact gives them.
type Value struct {
	Kind  holdfast.Kind
	Index string
	Value string
}

// Empty tells whether there is nothing to wait for.
func (i Interest) Empty() bool { return i.Kinds == 0 && len(i.Values) == 0 }

// kinds returns all kinds that may be of interest.
func (i Interest) kinds() KindSet {
	set := i.Kinds
	for _, v := range i.Values {
		set |= Kinds(v.Kind)
	}
	return set
}

// Waker wakes one goroutine when something that it waits for is committed. It belongs to that
// goroutine. A sleeper holds nothing of the log.
type Waker struct {
	// C gets a value when the sleeper is to wake.
	C     <-chan struct{}
	c     chan struct{}
	store *MemoryStore

	// What follows is guarded by the store's events.mu.
	asleep   bool
	interest Interest
	after    uint64 // nothing of interest changed up to here, since it fell asleep
}

// sleepers are the wakers whose goroutines sleep, by what they wait for.
type sleepers struct {
	byKinds map[KindSet]map[*Waker]struct{} // sets differ little, so there are few
	byValue map[holdfast.Kind]map[string]map[string]map[*Waker]struct{}
	// changed is the last revision that changed each kind, or a later one if that is not known.
	changed map[holdfast.Kind]uint64
}

// NewWaker makes a waker. It needs no end, but to be awake.
func (s *MemoryStore) NewWaker() *Waker {
	c := make(chan struct{}, 1)
	return &Waker{C: c, c: c, store: s}
}

// Sleep tells whether there is nothing to see: no kind of interest changed after a revision. If
// so, C gets a value once something of interest does, and Wake must be called before Sleep is
// called again.
func (w *Waker) Sleep(interest Interest, after uint64) bool {
	w.store.events.mu.Lock()
	defer w.store.events.mu.Unlock()
	s := &w.store.events.sleepers
	kinds := interest.kinds()
	for kind, revision := range s.changed {
		if kinds.Has(kind) && revision > after {
			return false
		}
	}
	w.asleep, w.interest, w.after = true, interest, max(after, w.store.root.Load().revision)
	s.add(w)
	return true
}

// Wake ends the sleep, whether or not C got a value. It returns a revision up to which nothing
// of interest changed while it slept, so that a sleeper does not fall behind the floor because
// of what is nothing to it.
func (w *Waker) Wake() uint64 {
	w.store.events.mu.Lock()
	defer w.store.events.mu.Unlock()
	if w.asleep { // it was not woken
		w.store.events.sleepers.remove(w)
		w.after = max(w.after, w.store.root.Load().revision)
	}
	select {
	case <-w.c:
	default:
	}
	return w.after
}

func (s *sleepers) add(w *Waker) {
	if w.interest.Kinds != 0 {
		s.byKinds = with(s.byKinds, w.interest.Kinds, with(s.byKinds[w.interest.Kinds], w, struct{}{}))
	}
	for _, v := range w.interest.Values {
		byIndex := s.byValue[v.Kind]
		byValue := byIndex[v.Index]
		byValue = with(byValue, v.Value, with(byValue[v.Value], w, struct{}{}))
		s.byValue = with(s.byValue, v.Kind, with(byIndex, v.Index, byValue))
	}
}

// with returns a map with an entry more; a nil map is made.
func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	m[key] = value
	return m
}

// remove takes out a waker, and what is empty then.
func (s *sleepers) remove(w *Waker) {
	w.asleep = false
	if set := s.byKinds[w.interest.Kinds]; set != nil {
		if delete(set, w); len(set) == 0 {
			delete(s.byKinds, w.interest.Kinds)
		}
	}
	for _, v := range w.interest.Values {
		byValue := s.byValue[v.Kind][v.Index]
		if delete(byValue[v.Value], w); len(byValue[v.Value]) == 0 {
			delete(byValue, v.Value)
		}
		if len(byValue) == 0 {
			delete(s.byValue[v.Kind], v.Index)
		}
	}
}

// committed wakes those who wait for what a revision changed.
func (s *sleepers) committed(e *logEntry) {
	for i := range e.changes {
		s.note(e.changes[i].Kind, e.revision)
	}
	kinds := kindsOf(e.changes)
	for set, wakers := range s.byKinds {
		if set&kinds != 0 {
			s.wakeAll(wakers, e.revision)
		}
	}
	for _, c := range e.changes {
		for index, byValue := range s.byValue[c.Kind] {
			for _, o := range [...]state.Object{c.Old, c.New} {
				for _, value := range tableOf(c.Kind).Values(index, o) {
					s.wakeAll(byValue[value], e.revision)
				}
			}
		}
	}
}

func (s *sleepers) wakeAll(wakers map[*Waker]struct{}, revision uint64) {
	for w := range wakers {
		if revision > w.after { // it may wait for one that is to come
			s.wake(w, revision-1)
		}
	}
}

func (s *sleepers) note(kind holdfast.Kind, revision uint64) {
	s.changed = with(s.changed, kind, revision)
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
	var all []*Waker
	for _, wakers := range s.byKinds {
		all = slices.AppendSeq(all, maps.Keys(wakers))
	}
	for _, byIndex := range s.byValue {
		for _, byValue := range byIndex {
			for _, wakers := range byValue {
				all = slices.AppendSeq(all, maps.Keys(wakers))
			}
		}
	}
	for _, w := range all {
		if w.asleep { // some are there several times
			s.wake(w, max(w.after, was))
		}
	}
}

func (s *sleepers) wake(w *Waker, after uint64) {
	s.remove(w)
	w.after = after
	w.c <- struct{}{} // it has room: a waker that is awake is not in the maps
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
