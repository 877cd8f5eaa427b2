package store

import (
	"context"
	"slices"
	"time"

	"holdfast/internal/errkind"
	"holdfast/manager/state"
)

// compaction is one that was asked for and is not applied yet.
type compaction struct {
	revision uint64
	handed   bool // to raft
	outcome  *state.Outcome
}

// Compact has every member forget the history below a revision, and returns the oldest revision
// that can be read then; 0 means the present revision. It is for the leader, and blocks until
// it is applied here. It fails with errkind.OutOfRange for a revision that is not there yet,
// and errkind.NoLeader or errkind.UnknownOutcome as Update does; asking twice does no harm.
func (s *MemoryStore) Compact(ctx context.Context, revision uint64) (floor uint64, err error) {
	if err := s.opts.Proposer.ReadIndex(ctx); err != nil { // or a deposed leader would not know it
		return 0, err
	}
	for {
		r := s.root.Load()
		if revision == 0 {
			revision = r.revision
		}
		if revision > r.revision {
			return 0, r.check(revision)
		}
		if r.log.floor >= revision {
			return r.log.floor, nil
		}
		outcome, err := s.queue.askCompaction(revision)
		if err != nil {
			return 0, err
		}
		s.opts.Proposer.Wake()
		s.opts.Wait(ctx, outcome.Done(), nil)
		switch err, known := outcome.Known(); {
		case !known:
			return 0, errCompaction("the time ran out before it was applied", ctx.Err())
		case err != nil:
			return 0, err
		}
	}
}

func errCompaction(why string, cause error) error {
	return &errkind.Error{
		Kind: errkind.UnknownOutcome, Msg: "history may not be compacted yet: " + why, Err: cause,
		Hint: "ask again: asking twice does no harm",
	}
}

// askCompaction notes a compaction for Next. What is with raft already is waited for first.
func (q *queue) askCompaction(revision uint64) (*state.Outcome, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.leadsLocked(q.opened) {
		return nil, errNotLeading("this manager does not lead")
	}
	if q.compact == nil {
		q.compact = &compaction{outcome: state.NewOutcome()}
	}
	if !q.compact.handed {
		q.compact.revision = max(q.compact.revision, revision)
	}
	return q.compact.outcome, nil
}

// takeCompaction hands a compaction to raft: the revision, or 0.
func (q *queue) takeCompaction() uint64 {
	if q.compact == nil || q.compact.handed {
		return 0
	}
	q.compact.handed = true
	return q.compact.revision
}

// endCompaction tells how the one under way ended.
func (q *queue) endCompaction(err error) {
	if q.compact != nil {
		q.compact.outcome.Set(err)
		q.compact = nil
	}
}

// compacted tells that history is compacted up to a floor.
func (s *MemoryStore) compacted(floor uint64) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.queue.compact != nil && s.queue.compact.revision <= floor {
		s.queue.endCompaction(nil)
	}
}

// compact returns the log without what is below a revision: without what led to it.
func (l changeLog) compact(revision uint64) changeLog {
	if revision <= l.floor {
		return l
	}
	n := 0
	for n < len(l.entries) && l.entries[n].revision <= revision {
		l.bytes -= l.entries[n].size
		n++
	}
	l.entries, l.floor = slices.Clone(l.entries[n:]), revision // or the array would keep the others alive
	return l
}

// Retention is how much history is kept. A zero field keeps all.
type Retention struct {
	Revisions int
	Bytes     int // of changes
	Age       time.Duration
}

// Excess returns the revision below which history is more than is to be kept, or 0. It says so
// only when a twentieth more is there, so that not every write is followed by a compaction.
func (s *MemoryStore) Excess(keep Retention, now time.Time) uint64 {
	log := s.root.Load().log
	over := func(n, limit int) bool { return limit > 0 && n > limit+limit/20 }
	old := func(e *logEntry, age time.Duration) bool { return keep.Age > 0 && now.Sub(e.time()) > age }
	if len(log.entries) == 0 || !over(len(log.entries), keep.Revisions) && !over(log.bytes, keep.Bytes) &&
		!old(log.entries[0], keep.Age+keep.Age/20) {
		return 0
	}
	bytes := log.bytes
	// The first entry that stays: those before it are too many, too big or too old.
	i := slices.IndexFunc(log.entries, func(e *logEntry) bool {
		left := int(log.entries[len(log.entries)-1].revision - e.revision + 1) //nolint:gosec // entries
		stays := (keep.Revisions == 0 || left <= keep.Revisions) && (keep.Bytes == 0 || bytes <= keep.Bytes) && !old(e, keep.Age)
		bytes -= e.size
		return stays
	})
	if i < 0 {
		i = len(log.entries) // all of it is too old, or the last one too big
	}
	if i == 0 {
		return 0
	}
	return log.entries[i-1].revision
}
