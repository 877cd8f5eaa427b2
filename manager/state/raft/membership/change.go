package membership

import (
	"fmt"
	"slices"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
)

// CheckChange decides on a change at the moment in which the leader proposes it. needed is
// false if it is done already, so that asking twice does no harm; raft itself would make a
// voter that is added as a learner a learner again, and panics at the last voter's removal.
func CheckChange(change state.ChangeType, peer holdfast.Peer, peers []holdfast.Peer, removed []uint64,
	reachable func(raftID uint64) bool,
) (needed bool, err error) {
	i := slices.IndexFunc(peers, func(p holdfast.Peer) bool { return p.RaftID == peer.RaftID })
	gone := slices.Contains(removed, peer.RaftID)
	if change == state.RemovePeer {
		if i < 0 && gone {
			return false, nil
		}
		return true, CheckRemove(peer.RaftID, peers, reachable)
	}
	switch {
	case peer.RaftID == 0:
		return false, errkind.Field("raft_id", "is empty")
	case gone:
		return false, errkind.New(errkind.Refused, "was removed, and its ID is never used again").
			On("member", fmt.Sprint(peer.RaftID)).
			WithHint("empty its state folder to let the machine join again")
	case i >= 0 && peers[i].NodeID != peer.NodeID:
		return false, errkind.New(errkind.Refused, "is node %s, not %s", peers[i].NodeID, peer.NodeID).
			On("member", fmt.Sprint(peer.RaftID))
	case i < 0 && change != state.AddLearner:
		return false, errkind.New(errkind.NotFound, "is not a member").On("member", fmt.Sprint(peer.RaftID)).
			WithHint("a manager joins as a learner first")
	}
	if err := checkFree(peer, peers); err != nil {
		return false, err
	}
	switch change {
	case state.AddLearner:
		return i < 0, nil // a voter stays one
	case state.AddVoter:
		return peers[i].Learner, nil
	case state.UpdatePeer:
		return peers[i].Addr != peer.Addr || peers[i].Hostname != peer.Hostname, nil
	case state.NoChange, state.RemovePeer:
	}
	return false, errkind.New(errkind.Internal, "change of membership of the unknown kind %d", change)
}

// checkFree refuses a peer whose node or address is another member's.
func checkFree(peer holdfast.Peer, peers []holdfast.Peer) error {
	for _, p := range peers {
		switch {
		case p.RaftID == peer.RaftID:
		case p.NodeID == peer.NodeID:
			// Two calls of one node that joins came together: the next one finds it a member.
			return errkind.New(errkind.NoLeader, "node %s became member %d meanwhile", p.NodeID, p.RaftID).
				WithHint("nothing was done: try again")
		case p.Addr == peer.Addr && peer.Addr != "":
			return errAddrTaken(p)
		}
	}
	return nil
}

func errAddrTaken(p holdfast.Peer) error {
	return errkind.New(errkind.Refused, "address %s belongs to member %d, node %s", p.Addr, p.RaftID, p.NodeID).
		WithHint("if that member is gone, remove it first: ctl member rm %d", p.RaftID)
}
