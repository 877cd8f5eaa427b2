package raft

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"golang.org/x/sync/errgroup"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/storage"
)

// ErrRemoved ends Run of a member that was removed from the cluster.
var ErrRemoved = errors.New("this manager was removed from its cluster")

// errStopped is what calls get that come after Run has ended.
func errStopped() error {
	return errkind.New(errkind.NoLeader, "this manager is stopping").WithHint("try another manager")
}

// Node is one member of the raft group.
type Node struct {
	cfg       Config
	machine   state.Machine
	transport Transport
	identity  storage.Identity
	log       *storage.Log
	memory    *etcdraft.MemoryStorage

	core  *core           // the loop's own
	peers []holdfast.Peer // that the transport knows; the loop's own

	inbox     *workQueue[*pb.Message]
	calls     *workQueue[func(*core)]
	wake      chan struct{} // the store has transactions
	appends   *appender
	applies   *applier
	stopped   chan struct{} // closed when Run ends
	removed   chan struct{} // closed when a peer says that this member was removed
	removeOne sync.Once

	leads    atomic.Bool
	lead     atomic.Uint64
	watchers watchers

	snapshots snapshots
}

var _ state.Proposer = (*Node)(nil)

// Open reads the log, loads the snapshot that it names, and makes a node that is ready to run.
func Open(cfg Config) (*Node, error) {
	cfg.setDefaults()
	log, st, err := storage.Open(cfg.FS, cfg.Dir, storage.Options{})
	if err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, identity: st.Identity, log: log,
		inbox: newWorkQueue[*pb.Message](), calls: newWorkQueue[func(*core)](),
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
	var err error
	if n.memory, err = memoryOf(st); err != nil {
		return err
	}
	n.applies = &applier{
		machine: n.machine, fsys: n.cfg.FS, dir: n.cfg.Dir,
		queue: newWorkQueue[applyWork](), results: newWorkQueue[applied](), after: n.afterApply,
	}
	n.appends = &appender{
		log: n.log, memory: n.memory, fsys: n.cfg.FS, dir: n.cfg.Dir, keep: n.cfg.Settings, hard: st.HardState,
		queue: newWorkQueue[appendWork](), responses: newWorkQueue[[]*pb.Message](),
		installed: n.install, compacted: n.snapshotDone,
	}
	if !st.Snapshot.IsZero() {
		if err := n.applies.restore(st.Snapshot.Index, st.Snapshot.Term); err != nil {
			return err
		}
	}
	n.snapshots.last = st.Snapshot.Index
	n.core, err = newCore(n.identity.RaftID, n.cfg.ElectionTicks, n.memory, st.Snapshot.Index, n.machine,
		raftLogger{n.cfg.Logger})
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

// Identity tells who this member is, as its log says.
func (n *Node) Identity() storage.Identity { return n.identity }

// Committed tells the index that was known as committed when the log was opened.
func (n *Node) Committed() uint64 { return n.appends.hard.GetCommit() }

// Run takes part in the group until ctx ends, this member is removed (ErrRemoved), or a fault
// of the disk or of the store. It closes the log. It may be called once.
func (n *Node) Run(ctx context.Context) error {
	defer close(n.stopped)
	n.setPeers()
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.appends.run(groupCtx) })
	group.Go(func() error { return n.applies.run(groupCtx) })
	group.Go(func() error { return n.loop(groupCtx) })
	err := group.Wait()
	n.snapshots.wait()
	n.shut()
	if err != nil && !errors.Is(err, ErrRemoved) {
		return err // the log is left as it is: its end may be torn, and Close would say it is not
	}
	return errors.Join(err, n.log.Close())
}

// loop is the one goroutine that touches core.
func (n *Node) loop(ctx context.Context) error {
	ticker := time.NewTicker(n.cfg.Tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.removed:
			return ErrRemoved
		case <-ticker.C:
			n.core.tick()
		case <-n.wake:
		case <-n.inbox.wake:
		case <-n.calls.wake:
		case <-n.appends.responses.wake:
		case <-n.applies.results.wake:
		}
		if err := n.turn(); err != nil {
			return err
		}
	}
}

// turn takes all events that are there and carries out what follows from them.
func (n *Node) turn() error {
	for _, m := range n.inbox.take() {
		n.core.receive(m)
	}
	for _, responses := range n.appends.responses.take() {
		n.transport.Send(n.core.appended(responses))
	}
	for _, a := range n.applies.results.take() {
		if a.index > 0 {
			n.core.restored(a.index, a.term)
		} else if err := n.core.appliedEntries(a.entries, a.responses); err != nil {
			return err
		}
		n.setPeers()
	}
	for _, call := range n.calls.take() {
		call(n.core)
	}
	for {
		fx := n.core.ready()
		if fx.empty() {
			break
		}
		n.transport.Send(fx.messages)
		if fx.append != nil {
			n.appends.queue.put(appendWork{message: fx.append})
		}
		if fx.apply != nil {
			n.applies.queue.put(applyWork{message: fx.apply})
		}
	}
	n.leads.Store(n.core.leading)
	if old := n.lead.Swap(n.core.lead); old != n.core.lead {
		n.watchers.notify()
	}
	return nil
}

// setPeers tells the transport the membership that is applied, if it is another one.
func (n *Node) setPeers() {
	at := n.machine.Applied()
	if len(at.Peers) == len(n.peers) && (len(n.peers) == 0 || &at.Peers[0] == &n.peers[0]) {
		return // the very same list: a membership is never changed in place
	}
	n.peers = at.Peers
	n.transport.SetPeers(at.Peers)
	for _, id := range at.Removed {
		if id == n.identity.RaftID {
			n.Removed()
		}
	}
}

// install replaces the store's state by a received snapshot. It is called by the appender and
// waits for the applier.
func (n *Node) install(index, term uint64) error {
	w := &install{index: index, term: term, done: make(chan error, 1)}
	n.applies.queue.put(applyWork{install: w})
	return <-w.done
}

func (n *Node) afterApply() {
	n.takeSnapshot()
	n.watchers.notify()
}

// shut ends what still waits. The loop has ended.
func (n *Node) shut() {
	n.machine.Stop()
	for _, call := range n.calls.take() {
		call(n.core)
	}
	n.core.reads.fail(errStopped())
	for _, r := range n.core.reads.reach {
		r.done <- errStopped()
	}
	n.core.endChange(errChangeLost())
	n.leads.Store(false)
	n.lead.Store(0)
	n.watchers.notify()
}

func (fx effects) empty() bool {
	return fx.append == nil && fx.apply == nil && len(fx.messages) == 0 && !fx.reads
}

// Wake implements state.Proposer.
func (n *Node) Wake() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Receive takes messages from a peer, in order.
func (n *Node) Receive(messages []*pb.Message) {
	for _, m := range messages {
		n.inbox.put(m)
	}
}

// Removed is called when a peer says that this member was removed.
func (n *Node) Removed() { n.removeOne.Do(func() { close(n.removed) }) }

// ReportUnreachable tells that a peer could not be sent to.
func (n *Node) ReportUnreachable(raftID uint64) {
	n.calls.put(func(c *core) { c.raw.ReportUnreachable(raftID) })
}

// ReportSnapshot tells how the sending of a snapshot ended. It is called for each one.
func (n *Node) ReportSnapshot(raftID uint64, ok bool) {
	status := etcdraft.SnapshotFinish
	if !ok {
		status = etcdraft.SnapshotFailure
	}
	n.calls.put(func(c *core) { c.raw.ReportSnapshot(raftID, status) })
}
