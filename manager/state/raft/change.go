package raft

import (
	"bytes"
	"fmt"

	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
)

// changeCall is a change of membership under way; there is one at a time.
type changeCall struct {
	id       []byte
	cc       *pb.ConfChange
	proposed bool
	done     chan error
}

// round is the catching up of a learner: it may vote once it has what was committed when the
// round began.
type round struct {
	id     uint64
	commit uint64
}

// newChange makes a change of one peer. id is 16 random bytes.
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
		id: id, done: make(chan error, 1),
		cc: &pb.ConfChange{Type: typ.Enum(), NodeId: new(peer.RaftID), Context: ctx},
	}, nil
}

// startChange proposes a change. Its outcome comes through done: nil once it is applied.
func (c *core) startChange(call *changeCall) {
	c.follow()
	switch {
	case !c.leading || c.handover:
		call.done <- c.noLeader()
		return
	case !c.ownTermApplied():
		call.done <- errkind.New(errkind.NoLeader, "the leader was elected just now and is not ready").
			WithHint("nothing was done: try again")
		return
	case c.change != nil:
		call.done <- errkind.New(errkind.NoLeader, "another change of membership is under way").
			WithHint("nothing was done: try again")
		return
	}
	if err := c.raw.ProposeConfChange(call.cc); err != nil {
		call.done <- errkind.New(errkind.NoLeader, "raft did not take the change of membership: %v", err)
		return
	}
	c.change = call
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
		c.change.done <- err
		c.change = nil
	}
}

func errChangeLost() error {
	return errkind.New(errkind.UnknownOutcome, "leadership was lost before the change of membership was applied").
		WithHint("look at the members, and ask again if it was not done: asking twice does no harm")
}

// checkLearners gives a learner its vote once it has caught up with what was committed when
// the round before began, and is heard of.
func (c *core) checkLearners() {
	if !c.ownTermApplied() || c.change != nil {
		return
	}
	commit := c.raw.BasicStatus().GetCommit()
	var rounds []round
	var promote uint64
	c.raw.WithProgress(func(id uint64, typ etcdraft.ProgressType, pr tracker.Progress) {
		if typ != etcdraft.ProgressTypeLearner || promote != 0 {
			return
		}
		for _, r := range c.rounds {
			if r.id != id {
				continue
			}
			if !pr.RecentActive || pr.Match < r.commit {
				rounds = append(rounds, r)
				return
			}
			promote = id
			return
		}
		rounds = append(rounds, round{id: id, commit: commit})
	})
	c.rounds = rounds
	if promote == 0 {
		return
	}
	peer, ok := c.machine.Applied().Peer(promote)
	if !ok {
		return
	}
	// The ID only tells this change from others, and a promotion is the same by whomever.
	call, err := newChange(fmt.Appendf(nil, "promote-%016x", promote), state.AddVoter, peer)
	if err != nil { // it is a Peer that was decoded before
		return
	}
	c.startChange(call)
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
