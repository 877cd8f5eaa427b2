package raft

import (
	"fmt"
	"slices"

	etcdraft "go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	"holdfast/manager/state"
)

// round is one look at a learner: it may vote if at the next look it has what was committed at
// this one.
type round struct {
	id      uint64
	commit  uint64
	process uint64 // of the learner
}

// checkLearners looks at the learners, every few ticks, and gives one its vote that has kept
// up: it has what was committed at the look before, was heard since, and is the process that it
// was, so that what it has acknowledged is not of a log that it lost since. A vote for one that
// is away could cost the quorum.
func (c *core) checkLearners() {
	if c.clock%learnerCheckTicks != 0 {
		return
	}
	if c.hangs() || c.mayChange() != nil {
		c.rounds = nil // the next look must not be compared with one long ago
		return
	}
	commit := c.raw.BasicStatus().GetCommit()
	var rounds []round
	var promote uint64
	c.raw.WithProgress(func(id uint64, typ etcdraft.ProgressType, pr tracker.Progress) {
		if typ != etcdraft.ProgressTypeLearner {
			return
		}
		now := round{id: id, commit: commit, process: c.peerProcess(id)}
		i := slices.IndexFunc(c.rounds, func(r round) bool { return r.id == id })
		if promote == 0 && i >= 0 && c.heardWithin(id, learnerCheckTicks) &&
			pr.Match >= c.rounds[i].commit && now.process == c.rounds[i].process {
			promote = id
		}
		rounds = append(rounds, now)
	})
	c.rounds = rounds
	if promote != 0 {
		c.promote(promote)
	}
}

func (c *core) promote(id uint64) {
	peer, ok := c.machine.Applied().Peer(id)
	if !ok {
		return
	}
	// The ID only tells this change from others, and a promotion is the same by whomever.
	call, err := newChange(fmt.Appendf(nil, "promote-%016x", id), state.AddVoter, peer)
	if err != nil { // it is a Peer that was decoded before
		return
	}
	c.startChange(call)
}
