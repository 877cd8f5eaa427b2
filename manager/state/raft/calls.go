package raft

import (
	"context"
	"errors"
	"slices"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/mutant"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/membership"
	"holdfast/manager/state/raft/storage"
)

// call runs fn on the loop and waits for it.
func (n *Node) call(ctx context.Context, fn func(*core)) error {
	done := state.NewOutcome()
	n.calls.put(func(c *core) {
		fn(c)
		done.Set(nil)
	})
	return n.await(ctx, done, errStopped())
}

// await waits for the outcome of a call. One that is there counts, whatever else ends.
func (n *Node) await(ctx context.Context, done *state.Outcome, stopped error) error {
	n.cfg.Wait(ctx, done.Done(), n.stopped)
	if err, known := done.Known(); known {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return stopped
}

// ReadIndex implements state.Proposer. Calls that come together share one round trip.
func (n *Node) ReadIndex(ctx context.Context) error {
	if n.cfg.Planted.Has(mutant.LocalRead) {
		return nil
	}
	r := &read{ctx: ctx, done: state.NewOutcome()}
	n.calls.put(func(c *core) { c.reads.add(r) })
	return n.await(ctx, r.done, errStopped())
}

// Leading tells whether this member leads, as far as it knows.
func (n *Node) Leading() bool { return n.leads.Load() }

// LogMetrics returns the counters of the log on disk.
func (n *Node) LogMetrics() storage.Metrics { return n.log.Metrics() }

// Leader returns the leader's raft ID, as far as this member knows, or 0.
func (n *Node) Leader() uint64 { return n.lead.Load() }

// Change makes a change of membership and waits until it is applied here. It fails with
// errkind.NoLeader if nothing was done, and errkind.UnknownOutcome if it may be done yet;
// asking twice does no harm.
func (n *Node) Change(ctx context.Context, change state.ChangeType, peer holdfast.Peer) error {
	call, err := newChange(randomID(), change, peer)
	if err != nil {
		return err
	}
	n.calls.put(func(c *core) {
		if ctx.Err() == nil {
			c.startChange(call)
		}
	})
	err = n.await(ctx, call.done, errChangeLost())
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errkind.New(errkind.UnknownOutcome, "the time ran out before the change of membership was applied").
			WithHint("look at the members: ctl member ls")
	}
	return err
}

// Remove removes a member, if those that remain and can be reached are a quorum. A leader
// that is asked to remove itself hands over instead; the call fails with errkind.NoLeader and
// is for the next leader to carry out, as is one that comes to a member that does not lead.
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
	if !st.Leading {
		return errkind.New(errkind.NoLeader, "this manager does not lead").WithHint("nothing was done: try again")
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
// not lead any more. It fails with errkind.Refused if no other voter can be reached, or the
// one that was asked does not take over: then this member leads on.
func (n *Node) Transfer(ctx context.Context) error {
	done := state.NewOutcome()
	n.calls.put(func(c *core) { c.handOver(done) })
	if err := n.await(ctx, done, errStopped()); err != nil {
		return err
	}
	return n.WaitFor(ctx, func() bool { return !n.Leading() })
}
