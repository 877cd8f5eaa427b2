package membership_test

import (
	"testing"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/membership"
)

func TestCheckChange(t *testing.T) {
	const none = errkind.Kind(-1)
	for _, c := range []struct {
		name   string
		change state.ChangeType
		peer   holdfast.Peer
		needed bool
		kind   errkind.Kind
	}{
		{"new learner", state.AddLearner, holdfast.Peer{RaftID: 4, NodeID: "n4", Addr: "a4"}, true, none},
		{"learner again", state.AddLearner, holdfast.Peer{RaftID: 3, NodeID: "n3", Addr: "a3"}, false, none},
		{"voter as learner", state.AddLearner, holdfast.Peer{RaftID: 2, NodeID: "n2", Addr: "a2"}, false, none},
		{"removed ID", state.AddLearner, holdfast.Peer{RaftID: 7, NodeID: "n4", Addr: "a4"}, false, errkind.Refused},
		{"no ID", state.AddLearner, holdfast.Peer{NodeID: "n4", Addr: "a4"}, false, errkind.Invalid},
		{"ID of another node", state.AddLearner, holdfast.Peer{RaftID: 2, NodeID: "n4", Addr: "a4"}, false, errkind.Refused},
		{"node of another ID", state.AddLearner, holdfast.Peer{RaftID: 4, NodeID: "n3", Addr: "a4"}, false, errkind.NoLeader},
		{"taken address", state.AddLearner, holdfast.Peer{RaftID: 4, NodeID: "n4", Addr: "a2"}, false, errkind.Refused},
		{"promotion", state.AddVoter, holdfast.Peer{RaftID: 3, NodeID: "n3", Addr: "a3"}, true, none},
		{"promotion of a voter", state.AddVoter, holdfast.Peer{RaftID: 2, NodeID: "n2", Addr: "a2"}, false, none},
		{"promotion of nobody", state.AddVoter, holdfast.Peer{RaftID: 4, NodeID: "n4"}, false, errkind.NotFound},
		{"new address", state.UpdatePeer, holdfast.Peer{RaftID: 2, NodeID: "n2", Addr: "a9", Hostname: "h2"}, true, none},
		{"same address", state.UpdatePeer, holdfast.Peer{RaftID: 2, NodeID: "n2", Addr: "a2", Hostname: "h2"}, false, none},
		{"moved to a taken address", state.UpdatePeer, holdfast.Peer{RaftID: 2, NodeID: "n2", Addr: "a1"}, false, errkind.Refused},
		{"address of a removed one", state.UpdatePeer, holdfast.Peer{RaftID: 7, NodeID: "n7", Addr: "a7"}, false, errkind.Refused},
		{"removal", state.RemovePeer, holdfast.Peer{RaftID: 2}, true, none},
		{"removal again", state.RemovePeer, holdfast.Peer{RaftID: 7}, false, none},
		{"removal of nobody", state.RemovePeer, holdfast.Peer{RaftID: 9}, true, errkind.NotFound},
		{"nothing", state.NoChange, holdfast.Peer{RaftID: 2, NodeID: "n2"}, false, errkind.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			needed, err := membership.CheckChange(c.change, c.peer, peers(), []uint64{7}, func(uint64) bool { return true })
			if c.kind == none && (err != nil || needed != c.needed) || c.kind != none && !errkind.Is(err, c.kind) {
				t.Errorf("needed %v, %v", needed, err)
			}
		})
	}
}
