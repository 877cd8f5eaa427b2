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
}

// Plan is what follows from a Join.
type Plan int

// The plans.
const (
	Add    Plan = iota // a new learner with a new raft ID
	Keep               // it is a member already: tell it so
	Update             // it is a member with another address: note the new one
)

// CheckJoin decides on a join. A node that is a member already is one that asks again, or
// that has another address; an address that another node has is refused, since a member that
// lost its disk must be removed before its machine joins again.
func CheckJoin(j Join, peers []holdfast.Peer) (Plan, holdfast.Peer, error) {
	for _, p := range peers {
		switch {
		case p.NodeID == j.NodeID && p.Addr == j.Addr:
			return Keep, p, nil
		case p.NodeID == j.NodeID:
			if err := checkAddr(j, peers); err != nil {
				return 0, holdfast.Peer{}, err
			}
			p.Addr, p.Hostname = j.Addr, j.Hostname
			return Update, p, nil
		}
	}
	if err := checkAddr(j, peers); err != nil {
		return 0, holdfast.Peer{}, err
	}
	return Add, holdfast.Peer{NodeID: j.NodeID, Addr: j.Addr, Hostname: j.Hostname}, nil
}

func checkAddr(j Join, peers []holdfast.Peer) error {
	for _, p := range peers {
		if p.Addr == j.Addr && p.NodeID != j.NodeID {
			return errkind.New(errkind.Refused, "address %s belongs to member %d, node %s", j.Addr, p.RaftID, p.NodeID).
				WithHint("if that member is gone, remove it first: ctl member rm %d", p.RaftID)
		}
	}
	return nil
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
