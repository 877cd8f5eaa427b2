package raft

import (
	etcdraft "go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// tick is one unit of time.
func (c *core) tick() {
	c.clock++
	if c.appends > 0 {
		c.stalled++
	} else {
		c.stalled = 0
	}
	if c.hangs() {
		if c.leading && !c.handover {
			c.transfer()
		}
	} else {
		c.raw.Tick()
		if c.alone() {
			c.campaign()
		}
	}
	c.follow()
	if c.lead == 0 || c.leading && c.hangs() {
		c.leaderless++
	} else {
		c.leaderless = 0
	}
	c.reads.tick(c.electionTicks)
	if c.leaderless > c.electionTicks {
		c.reads.fail(c.noLeader())
	}
	c.checkLearners()
}

// hangs tells whether no log write was done for an election timeout though one waits. A leader
// whose disk hangs hands over; else it, like any member, stops its clock and whatever would
// tell the others that it is there, and is voted out.
func (c *core) hangs() bool { return c.stalled > c.electionTicks }

// alone tells whether this member is the only one that votes, as far as it has applied, and
// nobody leads nor campaigns: it has nobody to wait for. A campaign is not begun over: that
// would outrun a disk that is slower than a tick.
func (c *core) alone() bool {
	st := c.raw.BasicStatus()
	if st.RaftState != etcdraft.StateFollower || st.Lead != 0 {
		return false
	}
	voters, self := 0, false
	c.raw.WithProgress(func(id uint64, typ etcdraft.ProgressType, _ tracker.Progress) {
		if typ == etcdraft.ProgressTypePeer {
			voters++
			self = self || id == c.id
		}
	})
	return voters == 1 && self
}

// campaign begins an election. raft refuses while a change of membership is not applied, and
// is asked again with the next tick.
func (c *core) campaign() {
	err := c.raw.Campaign()
	_ = err
}

// reachable tells whether a member was heard of within an election timeout. raft's own mark
// does not tell: it is taken off each time that raft checks the quorum.
func (c *core) reachable(id uint64) bool { return id == c.id || c.heardWithin(id, c.electionTicks) }

func (c *core) heardWithin(id uint64, ticks int) bool {
	at, ok := c.heard[id]
	return ok && c.clock-at <= ticks
}
