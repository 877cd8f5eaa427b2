package raft

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"golang.org/x/sync/errgroup"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/mutant"
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

	core      *core           // the loop's own
	peers     []holdfast.Peer // that the transport knows; the loop's own
	committed uint64          // when the log was opened
	torn      int64           // bytes of a torn end that were dropped then

	inbox     inbox
	calls     *workQueue[func(*core)]
	wake      chan struct{} // the store has transactions
	appends   *appender
	applies   *applier
	stopped   chan struct{} // closed when Run ends
	removed   chan struct{} // closed when a peer says that this member was removed
	removeOne sync.Once

	leads    atomic.Bool
	lead     atomic.Uint64
	applied  atomic.Uint64 // index up to which raft knows that entries are applied
	watchers watchers

	snapshots snapshots
}

var _ state.Proposer = (*Node)(nil)

// Identity tells who this member is, as its log says.
func (n *Node) Identity() storage.Identity { return n.identity }

// Committed tells the index that was known as committed when the log was opened.
func (n *Node) Committed() uint64 { return n.committed }

// Torn tells how many bytes of a torn end the log had when it was opened: what a crash left of
// a write that was not synced.
func (n *Node) Torn() int64 { return n.torn }

// Run takes part in the group until ctx ends, this member is removed (ErrRemoved), or a fault
// of the disk or of the store. It closes the log. It may be called once.
func (n *Node) Run(ctx context.Context) error {
	defer close(n.stopped)
	n.setPeers()
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.appends.run(groupCtx) })
	group.Go(func() error { return n.applies.run(groupCtx) })
	group.Go(func() error { return n.loop(groupCtx) })
	group.Go(func() error {
		n.saver(groupCtx)
		return nil
	})
	err := group.Wait()
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
		if err := n.core.receive(m); err != nil {
			return err
		}
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
		n.applied.Store(n.core.applied)
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
			if n.cfg.Planted.Has(mutant.SentBeforeSync) {
				n.transport.Send(n.core.deliver(takeAnswers(fx.append)))
			}
			n.appends.queue.put(appendWork{message: fx.append})
		}
		if fx.apply != nil {
			n.applies.queue.put(applyWork{message: fx.apply})
		}
		if fx.snapshot {
			n.applies.queue.put(applyWork{snapshot: true})
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
	if slices.Contains(at.Removed, n.identity.RaftID) {
		n.Removed()
	}
}

// install replaces the store's state by a received snapshot. It is called by the appender and
// waits for the applier, which ends with ctx.
func (n *Node) install(ctx context.Context, marker storage.Marker) error {
	w := &install{marker: marker, done: make(chan error, 1)}
	n.applies.queue.put(applyWork{install: w})
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// afterApply is called by the applier after each piece of its work.
func (n *Node) afterApply(w applyWork) {
	n.takeSnapshot(w.snapshot)
	n.watchers.notify()
}

// shut tells that nothing goes on. The calls that wait end with stopped.
func (n *Node) shut() {
	n.machine.Stop()
	n.leads.Store(false)
	n.lead.Store(0)
	n.watchers.notify()
}

// Wake implements state.Proposer.
func (n *Node) Wake() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Receive takes messages from a peer, in order. What the loop has no room for is dropped.
func (n *Node) Receive(messages []*pb.Message) {
	if dropped := n.inbox.put(messages); dropped > 0 {
		n.cfg.Logger.Warn("raft messages dropped: too many wait", "dropped", dropped)
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
