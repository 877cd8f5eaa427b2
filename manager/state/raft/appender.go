package raft

import (
	"context"
	"errors"
	"fmt"

	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/internal/mutant"
	"holdfast/manager/state/raft/storage"
)

// appendWork is one thing for the appender: a log write of raft's, or the marker of a local
// snapshot whose file is complete.
type appendWork struct {
	message  *pb.Message
	snapshot *storage.Marker
}

// appender owns the log on disk. Its methods do I/O and start no goroutine: run calls them from
// one, a simulator from its own.
type appender struct {
	log     *storage.Log
	memory  *etcdraft.MemoryStorage // raft's view of the log
	fsys    storage.FS
	dir     string
	keep    func() Settings
	planted mutant.Set

	queue     *workQueue[appendWork]
	responses *workQueue[[]*pb.Message]                              // one item for each message that was written
	install   func(ctx context.Context, marker storage.Marker) error // replace the state
	inPlace   func(marker storage.Marker)                            // the log names a snapshot
	applied   func() uint64                                          // as far as raft knows

	hard *pb.HardState // the last one written
}

// run writes what is queued, until ctx ends. What is queued together becomes one write and
// one sync. An error is final.
func (a *appender) run(ctx context.Context) error {
	for {
		work := a.queue.take()
		for len(work) > 0 && ctx.Err() == nil {
			n, err := a.write(ctx, work)
			if err != nil && errors.Is(err, ctx.Err()) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("write log: %w", err)
			}
			work = work[n:]
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.queue.wake:
		}
	}
}

// write does the first n pieces of work: all up to one with a snapshot, or that one alone.
func (a *appender) write(ctx context.Context, work []appendWork) (n int, err error) {
	switch first := work[0]; {
	case first.snapshot != nil:
		return 1, a.localSnapshot(*first.snapshot)
	case !etcdraft.IsEmptySnap(first.message.GetSnapshot()):
		return 1, a.receivedSnapshot(ctx, first.message)
	}
	var messages []*pb.Message
	for _, w := range work {
		if w.snapshot != nil || !etcdraft.IsEmptySnap(w.message.GetSnapshot()) {
			break
		}
		messages = append(messages, w.message)
	}
	return len(messages), a.writeMessages(messages)
}

// writeMessages writes messages without snapshots as one batch.
//
// raft asks for a sync whenever a message has responses. What they say is: a vote, or entries
// up to an index, is on disk. So where only the commit index went up there is nothing to wait
// for, and the next entries need not wait for a sync of it: those before were synced already,
// and a commit index that a crash loses is learned again.
func (a *appender) writeMessages(messages []*pb.Message) error {
	var batch storage.Batch
	sync := false
	for _, m := range messages {
		if err := a.memory.Append(m.GetEntries()); err != nil {
			return err
		}
		batch.Entries = merge(batch.Entries, m.GetEntries())
		if hs := hardState(m); hs != nil {
			sync = sync || hs.GetTerm() != a.hard.GetTerm() || hs.GetVote() != a.hard.GetVote()
			batch.HardState, a.hard = hs, hs
		}
		sync = sync || len(m.GetEntries()) > 0
	}
	batch.NoSync = !sync
	if err := a.log.Append(batch); err != nil {
		return err
	}
	for _, m := range messages {
		a.responses.put(m.GetResponses())
	}
	return nil
}

// merge puts entries behind or over those before them. Overwritten ones need not be written.
func merge(before, entries []*pb.Entry) []*pb.Entry {
	if len(entries) == 0 || len(before) == 0 {
		return append(before, entries...)
	}
	first := before[0].GetIndex()
	if entries[0].GetIndex() <= first {
		return append(before[:0:0], entries...)
	}
	n := min(entries[0].GetIndex()-first, uint64(len(before)))
	return append(before[:n:n], entries...)
}

// hardState returns the hard state in a message, or nil if it is as it was.
func hardState(m *pb.Message) *pb.HardState {
	if m.GetTerm() == 0 && m.GetVote() == 0 && m.GetCommit() == 0 {
		return nil
	}
	return &pb.HardState{Term: new(m.GetTerm()), Vote: new(m.GetVote()), Commit: new(m.GetCommit())}
}

// atLeast returns a hard state whose commit covers an index: what was applied is committed,
// even if the message that says so is still queued.
func atLeast(hs *pb.HardState, index uint64) *pb.HardState {
	return &pb.HardState{Term: new(hs.GetTerm()), Vote: new(hs.GetVote()), Commit: new(max(hs.GetCommit(), index))}
}

// name writes the marker of a snapshot: with the hard state hs, if that changes too, and in any
// case one that says that the snapshot is committed.
func (a *appender) name(marker *storage.Marker, hs *pb.HardState, entries []*pb.Entry) error {
	if a.planted.Has(mutant.SnapshotWithoutHardState) {
		return a.log.Append(storage.Batch{Entries: entries, Snapshot: marker})
	}
	if hs != nil {
		a.hard = hs
	}
	a.hard = atLeast(a.hard, marker.Index)
	return a.log.Append(storage.Batch{HardState: a.hard, Entries: entries, Snapshot: marker})
}

// receivedSnapshot makes a snapshot from the leader the beginning of the log. Its file is
// complete and durable. The state is replaced before raft hears of it, since raft takes what
// it hears for applied.
func (a *appender) receivedSnapshot(ctx context.Context, m *pb.Message) error {
	meta := m.GetSnapshot().GetMetadata()
	marker := storage.Marker{
		Index: meta.GetIndex(), Term: meta.GetTerm(), ConfState: meta.GetConfState(), Received: true,
	}
	if err := a.name(&marker, hardState(m), m.GetEntries()); err != nil {
		return err
	}
	if err := a.memory.ApplySnapshot(m.GetSnapshot()); err != nil {
		return err
	}
	if err := a.memory.Append(m.GetEntries()); err != nil {
		return err
	}
	if err := a.install(ctx, marker); err != nil {
		return err
	}
	if err := a.removeOld(); err != nil {
		return err
	}
	a.inPlace(marker)
	a.responses.put(m.GetResponses())
	return nil
}

// localSnapshot makes a snapshot of this member's the one to load, and then cuts the log. One
// from the leader that came before it is newer: then it is given up.
func (a *appender) localSnapshot(marker storage.Marker) error {
	switch _, err := a.memory.CreateSnapshot(marker.Index, marker.ConfState, nil); {
	case errors.Is(err, etcdraft.ErrSnapOutOfDate):
		err := a.removeOld()
		a.inPlace(marker)
		return err
	case err != nil:
		return err
	}
	if err := a.name(&marker, nil, nil); err != nil {
		return err
	}
	keepFrom := a.keepFrom(marker.Index)
	if err := a.memory.Compact(keepFrom); err != nil && !errors.Is(err, etcdraft.ErrCompacted) {
		return err
	}
	if err := a.log.Compact(keepFrom); err != nil {
		return err
	}
	if err := a.removeOld(); err != nil {
		return err
	}
	a.inPlace(marker)
	return nil
}

// keepFrom returns the index up to which the log is cut after a snapshot: it keeps entries for
// slow followers, a number of them and of their bytes at most. It keeps those too that raft does
// not know as applied yet, since raft looks for changes of membership among them.
func (a *appender) keepFrom(snapshot uint64) uint64 {
	s := a.keep()
	last := min(snapshot, a.applied())
	first, err := a.memory.FirstIndex()
	if err != nil || first > last {
		return last
	}
	low := max(first, snapshot-min(snapshot, s.KeepEntries)+1)
	bytes := uint64(0)
	for i := snapshot; i >= low; i-- {
		e, err := a.memory.Entries(i, i+1, 0)
		if err != nil || len(e) == 0 {
			return min(i, last)
		}
		if bytes += uint64(len(e[0].GetData())); bytes > s.KeepBytes {
			return min(i, last)
		}
	}
	return min(low-1, last)
}

// removeOld removes the files of snapshots that the log does not name any more. Newer ones
// may be on their way.
func (a *appender) removeOld() error {
	snap, err := a.memory.Snapshot()
	if err != nil {
		return err
	}
	if err := storage.RemoveOldSnapshots(a.fsys, a.dir, snap.GetMetadata().GetIndex()); err != nil {
		return fmt.Errorf("remove old snapshots: %w", err)
	}
	return nil
}
