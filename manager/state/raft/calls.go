package raft

import (
	"cmp"
	"context"
	"slices"
	"sync"

	etcdraft "go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/membership"
)

// call runs fn on the loop and waits for it.
func (n *Node) call(ctx context.Context, fn func(*core)) error {
	done := make(chan struct{})
	n.calls.put(func(c *core) {
		fn(c)
		close(done)
	})
	return n.wait(ctx, done)
}

func (n *Node) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-n.stopped:
		return errStopped()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ReadIndex implements state.Proposer. Calls that come together share one round trip.
func (n *Node) ReadIndex(ctx context.Context) error {
	r := &read{ctx: ctx, done: make(chan error, 1)}
	n.calls.put(func(c *core) { c.reads.add(r) })
	select {
	case err := <-r.done:
		return err
	case <-n.stopped:
		return errStopped()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leading tells whether this member leads, as far as it knows.
func (n *Node) Leading() bool { return n.leads.Load() }

// Leader returns the leader's raft ID, as far as this member knows, or 0.
func (n *Node) Leader() uint64 { return n.lead.Load() }

// WaitFor blocks until ok returns true, which is asked again whenever entries are applied or
// the leader changes. It fails with ctx, and when the node stops.
func (n *Node) WaitFor(ctx context.Context, ok func() bool) error {
	for {
		changed := n.watchers.wait()
		if ok() {
			return nil
		}
		if err := n.wait(ctx, changed); err != nil {
			return err
		}
	}
}

// watchers wakes those that wait for a change.
type watchers struct {
	mu      sync.Mutex
	changed chan struct{}
}

func (w *watchers) wait() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.changed
}

func (w *watchers) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// Change makes a change of membership and waits until it is applied here. It fails with
// errkind.NoLeader if nothing was done, and errkind.UnknownOutcome if it may be done yet;
// asking twice does no harm.
func (n *Node) Change(ctx context.Context, change state.ChangeType, peer holdfast.Peer) error {
	call, err := newChange(randomID(), change, peer)
	if err != nil {
		return err
	}
	n.calls.put(func(c *core) { c.startChange(call) })
	select {
	case err := <-call.done:
		return err
	case <-n.stopped:
		return errChangeLost()
	case <-ctx.Done():
		return errkind.New(errkind.UnknownOutcome, "the time ran out before the change of membership was applied").
			WithHint("look at the members: ctl member ls")
	}
}

// Remove removes a member, if those that remain and can be reached are a quorum. A leader
// that is asked to remove itself hands over instead; the call fails with errkind.NoLeader and
// is for the next leader to carry out.
func (n *Node) Remove(ctx context.Context, raftID uint64) error {
	if err := n.ReadIndex(ctx); err != nil {
		return err
	}
	st, err := n.Status(ctx)
	if err != nil {
		return err
	}
	at := n.machine.Applied()
	if slices.Contains(at.Removed, raftID) {
		return nil // it is done: asking twice does no harm
	}
	if err := membership.CheckRemove(raftID, at.Peers, st.Reachable); err != nil {
		return err
	}
	if raftID == n.identity.RaftID {
		if err := n.Transfer(ctx); err != nil {
			return err
		}
		return errkind.New(errkind.NoLeader, "leadership was handed over, so that this manager can be removed").
			WithHint("nothing was removed yet: try again")
	}
	peer, _ := at.Peer(raftID)
	return n.Change(ctx, state.RemovePeer, peer)
}

// Transfer hands leadership to the voter that is furthest, and returns when this member does
// not lead any more. It fails with errkind.Refused if no other voter can be reached.
func (n *Node) Transfer(ctx context.Context) error {
	began := true
	if err := n.call(ctx, func(c *core) { began = !c.leading || c.transfer(0) }); err != nil {
		return err
	}
	if !began {
		return errkind.New(errkind.Refused, "no other voter can be reached to lead")
	}
	return n.WaitFor(ctx, func() bool { return !n.Leading() })
}

// Progress is how far a peer is, as the leader knows.
type Progress struct {
	RaftID    uint64
	Match     uint64 // newest entry that it has on disk
	State     string // "probe", "replicate" or "snapshot"
	Reachable bool   // heard of within an election timeout
}

// Status is a look at the node.
type Status struct {
	RaftID    uint64
	Term      uint64
	Leader    uint64
	Leading   bool
	Commit    uint64
	Applied   uint64
	Followers []Progress // only on the leader
}

// Reachable tells whether the leader hears of a peer.
func (s Status) Reachable(raftID uint64) bool {
	if raftID == s.RaftID {
		return true
	}
	i := slices.IndexFunc(s.Followers, func(p Progress) bool { return p.RaftID == raftID })
	return i >= 0 && s.Followers[i].Reachable
}

// Status asks the loop.
func (n *Node) Status(ctx context.Context) (Status, error) {
	var s Status
	err := n.call(ctx, func(c *core) { s = c.status() })
	return s, err
}

func (c *core) status() Status {
	b := c.raw.BasicStatus()
	s := Status{
		RaftID: c.id, Term: b.GetTerm(), Leader: b.Lead, Leading: c.leading,
		Commit: b.GetCommit(), Applied: c.applied,
	}
	if !c.leading {
		return s
	}
	c.raw.WithProgress(func(id uint64, _ etcdraft.ProgressType, pr tracker.Progress) {
		p := Progress{RaftID: id, Match: pr.Match, Reachable: pr.RecentActive || id == c.id}
		switch pr.State {
		case tracker.StateProbe:
			p.State = "probe"
		case tracker.StateReplicate:
			p.State = "replicate"
		case tracker.StateSnapshot:
			p.State = "snapshot"
		}
		s.Followers = append(s.Followers, p)
	})
	slices.SortFunc(s.Followers, func(a, b Progress) int { return cmp.Compare(a.RaftID, b.RaftID) })
	return s
}
