package raft

import (
	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"holdfast/internal/errkind"
	"holdfast/manager/state"
)

// propose hands the store's transactions to raft, a few entries at a time, so that those that
// wait are packed together.
func (c *core) propose() {
	if c.handover || c.hangs() { // raft would drop them; they would be lost with the leadership
		return
	}
	for c.leading && c.inRaft < maxEntriesInRaft {
		data := c.machine.Next(c.term)
		if data == nil {
			return
		}
		if err := c.raw.Propose(data); err != nil {
			c.machine.Refused(c.term)
			return
		}
		c.inRaft++
	}
}

// countCommitted counts this leader's entries that are committed.
func (c *core) countCommitted(entries []*pb.Entry) {
	for _, e := range entries {
		if c.leading && e.GetTerm() == c.term && e.GetType() == pb.EntryNormal && len(e.GetData()) > 0 {
			c.inRaft = max(c.inRaft-1, 0)
		}
	}
}

// maxTransfers is how often a voter is asked to lead. One that still has to apply a change of the
// membership does not campaign, and raft does not ask again.
const maxTransfers = 2

// handOver hands leadership over. done gets nil once this member does not lead, and an error
// if nobody took over: then it leads on.
func (c *core) handOver(done *state.Outcome) {
	c.follow()
	switch {
	case !c.leading:
		done.Set(nil)
	case c.handover:
		c.transfers = append(c.transfers, done)
	case c.transfer():
		c.transfers, c.asked = append(c.transfers, done), 1
		c.follow()
	default:
		done.Set(errkind.New(errkind.Refused, "no other voter can be reached to lead").
			WithHint("see which managers cannot be reached with: ctl member ls"))
	}
}

// notTakenOver asks once more after raft has given a transfer up, or ends it.
func (c *core) notTakenOver() {
	if c.asked < maxTransfers && c.transfer() {
		c.asked++
		return
	}
	c.endTransfers(errkind.New(errkind.Refused, "the voter that was asked to lead did not take over in time").
		WithHint("try again"))
}

func (c *core) endTransfers(err error) {
	for _, done := range c.transfers {
		done.Set(err)
	}
	c.transfers = nil
}

// transfer begins to hand leadership to the voter that is furthest, of those that are heard
// of. It returns false if there is none.
func (c *core) transfer() bool {
	var best, match uint64
	c.raw.WithProgress(func(id uint64, typ etcdraft.ProgressType, pr tracker.Progress) {
		if id == c.id || typ != etcdraft.ProgressTypePeer || !c.reachable(id) {
			return
		}
		if best == 0 || pr.Match > match { // the lowest ID of equals: they come in order
			best, match = id, pr.Match
		}
	})
	if best == 0 {
		return false
	}
	c.raw.TransferLeader(best)
	c.handover = true
	return true
}
