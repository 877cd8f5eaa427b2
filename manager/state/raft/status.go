package raft

import (
	"cmp"
	"context"
	"slices"

	etcdraft "go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

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
		p := Progress{RaftID: id, Match: pr.Match, Reachable: c.reachable(id)}
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
