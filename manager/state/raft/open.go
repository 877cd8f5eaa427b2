package raft

import (
	"encoding/binary"
	"errors"
	"fmt"

	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/manager/state"
	"holdfast/manager/state/raft/storage"
)

// Open reads the log, loads the snapshot that it names, and makes a node that is ready to run.
func Open(cfg Config) (*Node, error) {
	cfg.setDefaults()
	log, st, err := storage.Open(cfg.FS, cfg.Dir, storage.Options{SegmentSize: cfg.SegmentSize, Planted: cfg.Planted})
	if err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, identity: st.Identity, log: log, committed: st.HardState.GetCommit(), torn: st.Dropped,
		inbox: newInbox(), calls: newWorkQueue[func(*core)](),
		wake: make(chan struct{}, 1), stopped: make(chan struct{}), removed: make(chan struct{}),
	}
	if n.machine, n.transport, err = cfg.Build(n, st.Identity); err == nil {
		err = n.load(st)
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return n, nil
}

func (n *Node) load(st *storage.State) error {
	// What a crash left half done must not be in the way: nothing is in the making yet.
	if err := storage.RemoveSnapshots(n.cfg.FS, n.cfg.Dir, st.Snapshot); err != nil {
		return err
	}
	var err error
	if n.memory, err = memoryOf(st); err != nil {
		return err
	}
	n.applies = &applier{
		machine: n.machine, fsys: n.cfg.FS, dir: n.cfg.Dir, planted: n.cfg.Planted,
		queue: newWorkQueue[applyWork](), results: newWorkQueue[applied](), after: n.afterApply,
	}
	n.appends = &appender{
		log: n.log, memory: n.memory, fsys: n.cfg.FS, dir: n.cfg.Dir, keep: n.cfg.Settings, hard: st.HardState,
		queue: newWorkQueue[appendWork](), responses: newWorkQueue[[]*pb.Message](),
		install: n.install, inPlace: n.snapshotDone, applied: n.applied.Load,
		planted: n.cfg.Planted,
	}
	if !st.Snapshot.IsZero() {
		if err := n.applies.restore(st.Snapshot); err != nil {
			return err
		}
	}
	n.snapshots.last, n.snapshots.queue = st.Snapshot.Index, newWorkQueue[state.Image]()
	n.applied.Store(st.Snapshot.Index)
	n.core, err = newCore(coreConfig{
		id: n.identity.RaftID, electionTicks: n.cfg.ElectionTicks, storage: n.memory,
		applied: st.Snapshot.Index, appliedTerm: st.Snapshot.Term, machine: n.machine,
		process: binary.BigEndian.Uint64(randomID()), peerProcess: n.transport.Process,
		logger: raftLogger{n.cfg.Logger}, planted: n.cfg.Planted,
	})
	return err
}

// memoryOf gives raft's view of the log that was read.
func memoryOf(st *storage.State) (*etcdraft.MemoryStorage, error) {
	m := etcdraft.NewMemoryStorage()
	before := st.FirstIndex - 1
	if before > 0 {
		first := &pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: new(before), Term: new(st.PrevTerm), ConfState: st.Snapshot.ConfState,
		}}
		if err := m.ApplySnapshot(first); err != nil {
			return nil, fmt.Errorf("load log: %w", err)
		}
	}
	if err := m.Append(st.Entries); err != nil {
		return nil, fmt.Errorf("load log: %w", err)
	}
	if st.Snapshot.Index > before {
		if _, err := m.CreateSnapshot(st.Snapshot.Index, st.Snapshot.ConfState, nil); err != nil {
			return nil, fmt.Errorf("load log: %w", err)
		}
	}
	return m, m.SetHardState(st.HardState)
}
