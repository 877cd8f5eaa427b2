package raft

import (
	"context"
	"errors"
	"fmt"

	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/manager/state/raft/storage"
)

// appendWork is one thing for the appender: a log write of raft's, or the marker of a local
// snapshot whose file is complete.
type appendWork struct {
	message  *pb.Message
	snapshot *storage.Marker
}

// appender owns the log on disk.
type appender struct {
	log    *storage.Log
	memory *etcdraft.MemoryStorage // raft's view of the log
	fsys   storage.FS
	dir    string
	keep   func() Settings

	queue     *workQueue[appendWork]
	responses *workQueue[[]*pb.Message] // one item for each message that was written
	installed func(index, term uint64) error
	compacted func(marker storage.Marker)

	hard *pb.HardState // the last one written
}

// run writes what is queued, until ctx ends. What is queued together becomes one write and
// one sync. An error is final.
func (a *appender) run(ctx context.Context) error {
	for {
		work := a.queue.take()
		for len(work) > 0 {
			n, err := a.write(work)
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
func (a *appender) write(work []appendWork) (n int, err error) {
	switch first := work[0]; {
	case first.snapshot != nil:
		return 1, a.localSnapshot(*first.snapshot)
	case first.message.GetSnapshot().GetMetadata().GetIndex() > 0:
		return 1, a.receivedSnapshot(first.message)
	}
	var batch storage.Batch
	var messages []*pb.Message
	for _, w := range work {
		if w.snapshot != nil || w.message.GetSnapshot().GetMetadata().GetIndex() > 0 {
			break
		}
		messages = append(messages, w.message)
	}
	sync := false
	for _, m := range messages {
		if err := a.memory.Append(m.GetEntries()); err != nil {
			return 0, err
		}
		batch.Entries = merge(batch.Entries, m.GetEntries())
		if hs := hardState(m); hs != nil {
			sync = sync || hs.GetTerm() != a.hard.GetTerm() || hs.GetVote() != a.hard.GetVote()
			batch.HardState, a.hard = hs, hs
		}
		sync = sync || len(m.GetEntries()) > 0
	}
	batch.NoSync = !sync
	if batch.HardState != nil || len(batch.Entries) > 0 {
		if err := a.log.Append(batch); err != nil {
			return 0, err
		}
	}
	for _, m := range messages {
		a.responses.put(m.GetResponses())
	}
	return len(messages), nil
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

// receivedSnapshot makes a snapshot from the leader the beginning of the log. Its file is
// complete and durable. The state is replaced before raft hears of it, since raft takes what
// it hears for applied.
func (a *appender) receivedSnapshot(m *pb.Message) error {
	meta := m.GetSnapshot().GetMetadata()
	if hs := hardState(m); hs != nil {
		a.hard = hs
	}
	a.hard = atLeast(a.hard, meta.GetIndex())
	marker := storage.Marker{
		Index: meta.GetIndex(), Term: meta.GetTerm(), ConfState: meta.GetConfState(), Received: true,
	}
	err := a.log.Append(storage.Batch{HardState: a.hard, Entries: m.GetEntries(), Snapshot: &marker})
	if err != nil {
		return err
	}
	if err := a.memory.ApplySnapshot(m.GetSnapshot()); err != nil && !errors.Is(err, etcdraft.ErrSnapOutOfDate) {
		return err
	}
	if err := a.memory.Append(m.GetEntries()); err != nil {
		return err
	}
	if err := a.installed(marker.Index, marker.Term); err != nil {
		return err
	}
	if err := a.tidy(marker); err != nil {
		return err
	}
	a.responses.put(m.GetResponses())
	return nil
}

// localSnapshot makes a snapshot of this member's the one to load, and then cuts the log.
func (a *appender) localSnapshot(marker storage.Marker) error {
	switch _, err := a.memory.CreateSnapshot(marker.Index, marker.ConfState, nil); {
	case errors.Is(err, etcdraft.ErrSnapOutOfDate):
		return a.tidy(storage.Marker{}) // one from the leader came before
	case err != nil:
		return err
	}
	a.hard = atLeast(a.hard, marker.Index)
	if err := a.log.Append(storage.Batch{HardState: a.hard, Snapshot: &marker}); err != nil {
		return err
	}
	keepFrom := a.keepFrom(marker.Index)
	if err := a.memory.Compact(keepFrom); err != nil && !errors.Is(err, etcdraft.ErrCompacted) {
		return err
	}
	if err := a.log.Compact(keepFrom); err != nil {
		return err
	}
	return a.tidy(marker)
}

// keepFrom returns the index up to which the log is cut after a snapshot: it keeps entries for
// slow followers, a number of them and of their bytes at most.
func (a *appender) keepFrom(snapshot uint64) uint64 {
	s := a.keep()
	first, err := a.memory.FirstIndex()
	if err != nil || first > snapshot {
		return snapshot
	}
	low := max(first, snapshot-min(snapshot, s.KeepEntries)+1)
	bytes := uint64(0)
	for i := snapshot; i >= low; i-- {
		e, err := a.memory.Entries(i, i+1, 0)
		if err != nil || len(e) == 0 {
			return i
		}
		if bytes += uint64(len(e[0].GetData())); bytes > s.KeepBytes {
			return i
		}
	}
	return low - 1
}

// tidy removes the files of snapshots that the log does not name any more. A zero marker only
// tells that a file of this member's was not needed.
func (a *appender) tidy(marker storage.Marker) error {
	snap, err := a.memory.Snapshot()
	if err != nil {
		return err
	}
	if err := storage.RemoveOldSnapshots(a.fsys, a.dir, snap.GetMetadata().GetIndex()); err != nil {
		return fmt.Errorf("remove old snapshots: %w", err)
	}
	a.compacted(marker)
	return nil
}
