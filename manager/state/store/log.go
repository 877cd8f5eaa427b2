package store

import (
	"iter"
	"slices"

	"holdfast/api/holdfast"
	"holdfast/manager/state"
)

// Log is a view of the log of changes: that of one root, up to one revision. It stays valid, and
// stays the same, however long it is kept and whatever is compacted meanwhile. Nothing of it
// waits for raft. What it gives is the log's own and is never changed.
type Log struct {
	root     *root
	revision uint64
}

// Log returns a view of the log up to the last committed revision.
func (s *MemoryStore) Log() Log {
	r := s.root.Load()
	return Log{root: r, revision: r.revision}
}

// LogOf returns the log that a view has been made from, up to the revision that it shows. ok is
// false for a transaction under way: HEAD has no log.
func LogOf(tx ReadTx) (l Log, ok bool) {
	r := tx.whole()
	if r == nil {
		return Log{}, false
	}
	return Log{root: r, revision: tx.Revision()}, true
}

// Revision returns the last revision that the view shows.
func (l Log) Revision() uint64 { return l.revision }

// Floor returns the oldest revision whose state the view can show. The first one whose changes
// it has comes after it.
func (l Log) Floor() uint64 { return l.root.log.floor }

// Check tells why the view cannot show the state at a revision, or nil: errkind.OutOfRange as
// MemoryStore.At gives it.
func (l Log) Check(revision uint64) error { return l.root.log.check(revision, l.revision) }

// At returns the state at a revision. It fails as Check does.
func (l Log) At(revision uint64) (ReadTx, error) {
	if err := l.Check(revision); err != nil {
		return nil, err
	}
	return l.root.view(revision), nil
}

// entries returns the entries of the revisions after one and up to another. Both are within
// the view.
func (l Log) entries(after, upTo uint64) []*logEntry {
	log := l.root.log
	after = max(after, log.floor)
	if after >= upTo {
		return nil
	}
	return log.entries[after-log.floor : upTo-log.floor]
}

// Get returns one revision; ok is false if the view does not have it.
func (l Log) Get(revision uint64) (r Revision, ok bool) {
	e := l.root.log.entry(revision)
	if e == nil || revision > l.revision {
		return Revision{}, false
	}
	return e.public(), true
}

// Between yields the revisions after one and up to another, oldest first, as far as the view
// has them.
func (l Log) Between(after, upTo uint64) iter.Seq[Revision] {
	return func(yield func(Revision) bool) {
		for _, e := range l.entries(after, min(upTo, l.revision)) {
			if !yield(e.public()) {
				return
			}
		}
	}
}

// Back yields all revisions, newest first.
func (l Log) Back() iter.Seq[Revision] {
	return func(yield func(Revision) bool) {
		for _, e := range slices.Backward(l.entries(0, l.revision)) {
			if !yield(e.public()) {
				return
			}
		}
	}
}

// Of yields the revisions that changed one object, oldest first, each with what it did to the
// object. It looks at no others, but for those that were compacted since the view was taken.
func (l Log) Of(kind holdfast.Kind, id string) iter.Seq2[Revision, state.Change] {
	return func(yield func(Revision, state.Change) bool) {
		key := objectKey{kind, id}
		known, floor := l.root.versions.of(key, l.revision)
		for _, e := range l.entries(0, min(floor, l.revision)) {
			if c, ok := change(e.changes, key); ok && !yield(e.public(), c) {
				return
			}
		}
		for _, revision := range known {
			e := l.root.log.entry(revision)
			if e == nil {
				continue
			}
			if c, ok := change(e.changes, key); ok && !yield(e.public(), c) {
				return
			}
		}
	}
}

// of returns the revisions that changed an object, up to one, and the floor below which the
// index knows none.
func (x *versionIndex) of(key objectKey, upTo uint64) (revisions []uint64, floor uint64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := x.byKey[key]
	n, found := slices.BinarySearch(all, upTo)
	if found {
		n++
	}
	return slices.Clone(all[:n]), x.log.floor
}
