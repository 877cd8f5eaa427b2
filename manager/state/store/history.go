package store

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	memdb "github.com/hashicorp/go-memdb"

	"holdfast/manager/state"
)

// At returns a view of the state at a revision. It fails with errkind.OutOfRange below the
// floor and above the present. It costs nothing to open; see pastTx for what reading costs.
func (s *MemoryStore) At(revision uint64) (ReadTx, error) {
	return s.Log().At(revision)
}

// pastTx shows an earlier revision: a root, but for the objects that changed since. These tell
// by their version. One that did is looked up in the index of versions; a search goes once
// through the changes since, some tens of nanoseconds for each. It holds nothing but the root.
type pastTx struct {
	root     *root
	txn      *memdb.Txn // of the root
	revision uint64
	versions *versionIndex

	once   sync.Once
	before []state.Change // of those since, the first one of each object that was there
}

// Revision returns the revision that the view shows.
func (p *pastTx) Revision() uint64  { return p.revision }
func (p *pastTx) memdb() *memdb.Txn { return p.txn }
func (p *pastTx) past() *pastTx     { return p }
func (p *pastTx) whole() *root      { return p.root }

// shows tells whether an object has not changed since.
func (p *pastTx) shows(o state.Object) bool { return o.GetMeta().Version.Index <= p.revision }

// get returns an object that changed since as it was, or nil if it was not there.
func (p *pastTx) get(key objectKey) state.Object {
	if was, ok := p.versions.at(key, p.revision); ok {
		return was
	}
	for _, c := range p.since() {
		if c.Kind == key.kind && c.Old.GetID() == key.id {
			return c.Old
		}
	}
	return nil
}

// since collects what was there and changed since.
func (p *pastTx) since() []state.Change {
	p.once.Do(func() {
		for _, e := range p.root.log.after(p.revision) {
			for _, c := range e.changes {
				if c.Old != nil && p.shows(c.Old) {
					p.before = append(p.before, c)
				}
			}
		}
	})
	return p.before
}

// after returns the entries after a revision, which is not below the floor.
func (l changeLog) after(revision uint64) []*logEntry {
	return l.entries[min(revision-l.floor, uint64(len(l.entries))):]
}

// was yields what a search in an index finds at an earlier revision: what it finds now, without
// the objects that changed since, and these as they were, in the index's order.
func (t *Table[T]) was(p *pastTx, now iter.Seq[T], x *index[T], value string, prefix bool) iter.Seq[T] {
	return func(yield func(T) bool) {
		before := t.wasFound(p, x, value, prefix)
		for o := range now {
			if !p.shows(o) {
				continue
			}
			for len(before) > 0 && x.compare(before[0], o, value, prefix) < 0 {
				if !yield(before[0]) {
					return
				}
				before = before[1:]
			}
			if !yield(o) {
				return
			}
		}
		for _, o := range before {
			if !yield(o) {
				return
			}
		}
	}
}

// wasFound returns the objects that changed since and would have been found then, in order.
func (t *Table[T]) wasFound(p *pastTx, x *index[T], value string, prefix bool) []T {
	var found []T
	for _, c := range p.since() {
		if o, ok := c.Old.(T); ok && x.matches(o, value, prefix) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b T) int { return x.compare(a, b, value, prefix) })
	return found
}

// compare compares two objects by their place in the index: by the value that is looked for,
// then by ID.
func (x *index[T]) compare(a, b T, value string, prefix bool) int {
	return cmp.Or(cmp.Compare(x.match(a, value, prefix), x.match(b, value, prefix)), cmp.Compare(a.GetID(), b.GetID()))
}

// versionIndex finds the revisions that changed an object, in the root's log.
type versionIndex struct {
	mu    sync.RWMutex
	log   changeLog
	byKey map[objectKey][]uint64 // in order
}

// at returns an object that changed after a revision as it was there, or nil if it was not; ok
// is false if the log does not tell any more.
func (x *versionIndex) at(key objectKey, revision uint64) (was state.Object, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if revision < x.log.floor {
		return nil, false
	}
	revisions := x.byKey[key]
	i, found := slices.BinarySearch(revisions, revision)
	if found {
		i++
	}
	if i == len(revisions) {
		return nil, true // it was never there since
	}
	c, ok := change(x.log.entry(revisions[i]).changes, key)
	return c.Old, ok
}

// follow brings the index to the next root's log.
func (x *versionIndex) follow(next changeLog) {
	if n := len(next.entries); x.log.floor == next.floor && len(x.log.entries) == n {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.log.entries {
		if e.revision > next.floor {
			break
		}
		x.forget(e)
	}
	known := max(next.floor, x.log.floor+uint64(len(x.log.entries)))
	for _, e := range next.after(known) {
		x.add(e)
	}
	x.log = next
}

// replace makes the index that of another log.
func (x *versionIndex) replace(next changeLog) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.byKey, x.log = nil, next
	for _, e := range next.entries {
		x.add(e)
	}
}

func (x *versionIndex) add(e *logEntry) {
	if x.byKey == nil {
		x.byKey = map[objectKey][]uint64{}
	}
	for _, c := range e.changes {
		key := objectKey{c.Kind, c.Object().GetID()}
		x.byKey[key] = append(x.byKey[key], e.revision)
	}
}

// forget takes out an entry, which is the oldest.
func (x *versionIndex) forget(e *logEntry) {
	for _, c := range e.changes {
		key := objectKey{c.Kind, c.Object().GetID()}
		if later := x.byKey[key][1:]; len(later) > 0 {
			x.byKey[key] = later
		} else {
			delete(x.byKey, key)
		}
	}
}
