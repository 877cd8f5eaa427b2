package raft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/internal/mutant"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/storage"
)

// snapshots is the state of snapshot taking; one is written at a time.
type snapshots struct {
	mu      sync.Mutex
	last    uint64 // index of the newest one that the log names
	writing bool
	queue   *workQueue[state.Image]
}

// takeSnapshot begins a snapshot if enough was applied since the last one, or anything and one
// is wanted. It is called between two calls of Apply, so the image is the state at one index.
func (n *Node) takeSnapshot(wanted bool) {
	s := &n.snapshots
	s.mu.Lock()
	defer s.mu.Unlock()
	since := n.machine.Applied().Index - s.last
	if s.writing || since < n.cfg.Settings().SnapshotInterval && !(wanted && since > 0) {
		return
	}
	s.writing = true
	s.queue.put(n.machine.Image())
}

// saver writes snapshots, until ctx ends.
func (n *Node) saver(ctx context.Context) {
	for ctx.Err() == nil {
		for _, image := range n.snapshots.queue.take() {
			n.saveSnapshot(image)
		}
		select {
		case <-ctx.Done():
		case <-n.snapshots.queue.wake:
		}
	}
}

// saveSnapshot writes a snapshot file, and hands its marker to the appender.
func (n *Node) saveSnapshot(image state.Image) {
	marker, err := save(n.cfg.FS, n.cfg.Dir, image)
	if err != nil {
		// The log goes on growing, and nothing is lost: it is tried again after as many
		// entries more.
		n.cfg.Logger.Error("snapshot failed", "index", marker.Index, "err", err)
		n.snapshotDone(marker)
		return
	}
	if n.cfg.Planted.Has(mutant.SnapshotConfState) {
		marker.ConfState = confState(n.machine.Applied().Peers)
	}
	n.appends.queue.put(appendWork{snapshot: &marker})
}

// snapshotDone is called when a snapshot is the one to load, or is not needed.
func (n *Node) snapshotDone(marker storage.Marker) {
	s := &n.snapshots
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, marker.Index)
	if !marker.Received {
		s.writing = false
	}
	n.cfg.Logger.Debug("snapshot is in place", "index", marker.Index, "received", marker.Received)
}

// SnapshotFile opens the file of the snapshot that a message names, to be sent to a peer.
func (n *Node) SnapshotFile(m *pb.Message) (io.ReadCloser, int64, error) {
	meta := m.GetSnapshot().GetMetadata()
	return storage.OpenSnapshotFile(n.cfg.FS, n.cfg.Dir, meta.GetIndex(), meta.GetTerm())
}

// ReceiveSnapshot reads the file of a snapshot that a peer sends, checks it, makes it durable,
// and only then hands the message to raft.
func (n *Node) ReceiveSnapshot(m *pb.Message, file io.Reader) error {
	meta := m.GetSnapshot().GetMetadata()
	w, err := storage.ReceiveSnapshot(n.cfg.FS, n.cfg.Dir, meta.GetIndex(), meta.GetTerm())
	if err != nil {
		return fmt.Errorf("receive snapshot at entry %d: %w", meta.GetIndex(), err)
	}
	if _, err := io.Copy(w, file); err != nil {
		return errors.Join(fmt.Errorf("receive snapshot at entry %d: %w", meta.GetIndex(), err), w.Abort())
	}
	if err := w.Commit(); err != nil {
		return fmt.Errorf("receive snapshot at entry %d: %w", meta.GetIndex(), err)
	}
	n.Receive([]*pb.Message{m})
	return nil
}
