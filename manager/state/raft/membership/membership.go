// Package membership holds the rules by which members enter and leave a cluster: pure
// functions of what the leader knows, so that every case stands in a table.
package membership

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
)

// Join is what a manager that wants to join says of itself.
type Join struct {
	NodeID   string
	Addr     string
	Hostname string
	HasState bool // it has a log of this cluster
}

// Plan is what follows from a Join.
type Plan int

// The plans.
const (
	Add     Plan = iota // a new learner with a new raft ID
	Keep                // it is a member already: tell it so
	Update              // it is a member with another address: note the new one
	Replace             // it began to join before and has nothing: remove that learner, and add it anew
)

// CheckJoin decides on a join. Identity decides, not the address: a node with a log of this
// cluster is the member that it was, at whatever address. One without a log is new, even at
// an old member's address, and a voter that lost its log must be removed first, since what it
// had acknowledged counted for a quorum.
func CheckJoin(j Join, peers []holdfast.Peer) (Plan, holdfast.Peer, error) {
	for _, p := range peers {
		if p.Addr == j.Addr && p.NodeID != j.NodeID {
			return 0, holdfast.Peer{}, errAddrTaken(p)
		}
	}
	for _, p := range peers {
		if p.NodeID != j.NodeID {
			continue
		}
		switch {
		case !j.HasState && p.Learner:
			return Replace, p, nil
		case !j.HasState:
			return 0, holdfast.Peer{}, errkind.New(errkind.Refused,
				"node %s is voter %d already, and has lost its log", p.NodeID, p.RaftID).
				WithHint("remove it first: ctl member rm %d", p.RaftID)
		case p.Addr == j.Addr:
			return Keep, p, nil
		}
		p.Addr, p.Hostname = j.Addr, j.Hostname
		return Update, p, nil
	}
	if j.HasState {
		return 0, holdfast.Peer{}, errkind.New(errkind.Refused, "node %s is not a member any more", j.NodeID).
			WithHint("empty its state folder to let the machine join again")
	}
	return Add, holdfast.Peer{}, nil
}

// NewRaftID picks a raft ID that no member has or had, from a source of random numbers.
func NewRaftID(random func() uint64, peers []holdfast.Peer, removed []uint64) uint64 {
	for {
		id := random() >> 1 // the top of the range is raft's own
		if id == 0 || slices.Contains(removed, id) ||
			slices.ContainsFunc(peers, func(p holdfast.Peer) bool { return p.RaftID == id }) {
			continue
		}
		return id
	}
}

// CheckRemove decides whether a member may be removed: those voters that remain and can be
// reached must be a quorum of those that remain.
func CheckRemove(target uint64, peers []holdfast.Peer, reachable func(raftID uint64) bool) error {
	found := false
	voters, online := 0, 0
	var away []string
	for _, p := range peers {
		switch {
		case p.RaftID == target:
			found = true
		case p.Learner:
		case reachable(p.RaftID):
			voters++
			online++
		default:
			voters++
			away = append(away, fmt.Sprintf("%s (%s)", p.Hostname, p.Addr))
		}
	}
	switch {
	case !found:
		return errkind.New(errkind.NotFound, "is not a member").On("member", fmt.Sprint(target)).
			WithHint("see the members with: ctl member ls")
	case voters == 0:
		return errkind.New(errkind.Refused, "is the last voter: without it there is no cluster").
			On("member", fmt.Sprint(target))
	case online < voters/2+1:
		return errkind.New(errkind.Refused,
			"removing it would break the quorum: of the %d voters that would remain, %d can be reached, and %d are needed; not reached: %s",
			voters, online, voters/2+1, strings.Join(away, ", ")).
			On("member", fmt.Sprint(target)).
			WithHint("bring a member back first, or remove one that is gone")
	}
	return nil
}
