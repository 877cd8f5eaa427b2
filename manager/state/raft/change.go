package raft

import (
	"bytes"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/mutant"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/membership"
)

// changeCall is a change of membership under way; there is one at a time.
type changeCall struct {
	change   state.ChangeType
	peer     holdfast.Peer
	cc       *pb.ConfChange
	proposed bool
	done     *state.Outcome
}

// newChange makes a change of one peer. id tells it from others: 16 random bytes.
func newChange(id []byte, change state.ChangeType, peer holdfast.Peer) (*changeCall, error) {
	peer.Learner = change == state.AddLearner
	ctx, err := (&holdfast.PeerChange{ID: id, Peer: peer}).Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode change of membership: %w", err)
	}
	typ := pb.ConfChangeAddNode
	switch change {
	case state.AddLearner:
		typ = pb.ConfChangeAddLearnerNode
	case state.RemovePeer:
		typ = pb.ConfChangeRemoveNode
	case state.UpdatePeer:
		typ = pb.ConfChangeUpdateNode
	case state.AddVoter, state.NoChange:
	}
	return &changeCall{
		change: change, peer: peer, done: state.NewOutcome(),
		cc: &pb.ConfChange{Type: typ.Enum(), NodeId: new(peer.RaftID), Context: ctx},
	}, nil
}

// startChange proposes a change. Its outcome comes through done: nil once it is applied.
func (c *core) startChange(call *changeCall) {
	c.follow()
	if err := c.mayChange(); err != nil {
		call.done.Set(err)
		return
	}
	// The rules are looked at here, and not by who asks: between asking and proposing another
	// change may have come into force.
	at := c.machine.Applied()
	if c.planted.Has(mutant.RemovedIDUsed) {
		at.Removed = nil
	}
	needed, err := membership.CheckChange(call.change, call.peer, at.Peers, at.Removed, c.reachable)
	if err != nil || !needed {
		call.done.Set(err)
		return
	}
	if err := c.raw.ProposeConfChange(call.cc); err != nil {
		call.done.Set(errkind.New(errkind.NoLeader, "raft did not take the change of membership: %v", err))
		return
	}
	c.change = call
}

// mayChange tells why no change of membership can begin now.
func (c *core) mayChange() error {
	switch {
	case !c.leading || c.handover:
		return c.noLeader()
	case !c.ownTermApplied():
		return errkind.New(errkind.NoLeader, "the leader was elected just now and is not ready").
			WithHint("nothing was done: try again")
	case c.change != nil:
		return errkind.New(errkind.NoLeader, "another change of membership is under way").
			WithHint("nothing was done: try again")
	}
	return nil
}

// checkChange looks for a change just proposed among the entries that raft appended. raft puts
// an empty entry in the place of one that it refuses.
func (c *core) checkChange(entries []*pb.Entry) {
	if c.change == nil || c.change.proposed {
		return
	}
	for _, e := range entries {
		if cc, err := decodeChange(e); err == nil && cc != nil && bytes.Equal(cc.GetContext(), c.change.cc.GetContext()) {
			c.change.proposed = true
			return
		}
	}
	c.endChange(errkind.New(errkind.NoLeader, "raft refused the change of membership").
		WithHint("nothing was done: try again"))
}

// changed takes a change that was applied.
func (c *core) changed(cc *pb.ConfChange) {
	if c.change != nil && bytes.Equal(cc.GetContext(), c.change.cc.GetContext()) {
		c.endChange(nil)
	}
}

func (c *core) endChange(err error) {
	if c.change != nil {
		c.change.done.Set(err)
		c.change = nil
	}
}

func errChangeLost() error {
	return errkind.New(errkind.UnknownOutcome, "leadership was lost before the change of membership was applied").
		WithHint("look at the members, and ask again if it was not done: asking twice does no harm")
}

// decodeChange returns the change of membership in an entry, or nil.
func decodeChange(e *pb.Entry) (*pb.ConfChange, error) {
	switch e.GetType() {
	case pb.EntryConfChange:
		cc := &pb.ConfChange{}
		if err := proto.Unmarshal(e.GetData(), cc); err != nil {
			return nil, fmt.Errorf("decode change of membership at entry %d: %w", e.GetIndex(), err)
		}
		return cc, nil
	case pb.EntryConfChangeV2:
		return nil, fmt.Errorf("entry %d: joint changes of membership are not of this version", e.GetIndex())
	}
	return nil, nil //nolint:nilnil // no change, and no error
}

// committed turns raft's entries into what the store applies.
func committed(entries []*pb.Entry) ([]state.Committed, error) {
	out := make([]state.Committed, 0, len(entries))
	for _, e := range entries {
		s := state.Committed{Index: e.GetIndex(), Term: e.GetTerm()}
		cc, err := decodeChange(e)
		if err != nil {
			return nil, err
		}
		if cc == nil {
			s.Data = e.GetData()
			out = append(out, s)
			continue
		}
		var p holdfast.PeerChange
		if err := p.Unmarshal(cc.GetContext()); err != nil {
			return nil, fmt.Errorf("decode change of membership at entry %d: %w", e.GetIndex(), err)
		}
		s.Peer = p.Peer
		s.Peer.RaftID = cc.GetNodeId()
		switch cc.GetType() {
		case pb.ConfChangeAddNode:
			s.Change = state.AddVoter
		case pb.ConfChangeAddLearnerNode:
			s.Change = state.AddLearner
		case pb.ConfChangeRemoveNode:
			s.Change = state.RemovePeer
		case pb.ConfChangeUpdateNode:
			s.Change = state.UpdatePeer
		default:
			return nil, fmt.Errorf("entry %d: change of membership of the unknown type %v", e.GetIndex(), cc.GetType())
		}
		out = append(out, s)
	}
	return out, nil
}

// confState gives raft's view of a membership.
func confState(peers []holdfast.Peer) *pb.ConfState {
	cs := &pb.ConfState{AutoLeave: new(false)}
	for _, p := range peers {
		if p.Learner {
			cs.Learners = append(cs.Learners, p.RaftID)
		} else {
			cs.Voters = append(cs.Voters, p.RaftID)
		}
	}
	return cs
}
