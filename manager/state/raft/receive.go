package raft

import (
	"errors"
	"fmt"

	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// ErrLogLost ends Run of a member whose log has less in it than it once acknowledged: what it
// said counted for a quorum, so it must not go on as if it had never said it.
var ErrLogLost = errors.New("entries that this manager acknowledged are gone from its log: " +
	"remove it from the cluster, and let it join again with an empty state folder")

// receive takes a message from a peer. What only a member says to itself is dropped, and so are
// proposals, since a follower forwards none. An error means that this member must not go on.
func (c *core) receive(m *pb.Message) error {
	if m.GetTo() != c.id || m.GetFrom() == c.id || !wellFormed(m) {
		return nil
	}
	c.heard[m.GetFrom()] = c.clock
	switch m.GetType() {
	case pb.MsgSnap:
		// raft takes over the snapshot's membership as soon as it is stepped. Changes that are
		// still being applied are older, and would be put on top of it.
		c.snapshot = m
		return nil
	case pb.MsgReadIndex:
		if c.follow(); !c.mayAsk() {
			return nil // it is asked again
		}
	case pb.MsgHeartbeat:
		// The commit index in it is one that this member has acknowledged.
		if last, err := c.log.LastIndex(); err != nil || m.GetTerm() >= c.term && m.GetCommit() > last {
			return errors.Join(err, fmt.Errorf("the leader knows of entries up to %d, and the log ends at entry %d: %w",
				m.GetCommit(), last, ErrLogLost))
		}
	}
	c.step(m)
	return nil
}

// stepSnapshot steps a snapshot that waits, once nothing is being applied.
func (c *core) stepSnapshot() {
	if m := c.snapshot; m != nil && c.applies == 0 {
		c.snapshot = nil
		c.step(m)
	}
}

// step ignores raft's errors: they say that a message does not fit the state, such as one
// from a peer that was removed.
func (c *core) step(m *pb.Message) {
	err := c.raw.Step(m)
	_ = err
}

// wellFormed tells whether a message is one that a peer may send, and has the parts that raft
// takes for granted in it.
func wellFormed(m *pb.Message) bool {
	switch typ := m.GetType(); {
	case etcdraft.IsLocalMsg(typ), etcdraft.IsLocalMsgTarget(m.GetFrom()), m.GetFrom() == 0:
		return false
	case typ == pb.MsgProp, typ == pb.MsgTransferLeader, typ == pb.MsgForgetLeader:
		return false
	case typ == pb.MsgReadIndex: // it has no term
		return len(m.GetEntries()) == 1
	case m.GetTerm() == 0: // raft would take it for one of its own
		return false
	case typ == pb.MsgSnap:
		meta := m.GetSnapshot().GetMetadata()
		return meta.GetIndex() > 0 && meta.GetTerm() > 0 && meta.GetTerm() <= m.GetTerm()
	case typ == pb.MsgApp:
		index, term := m.GetIndex(), m.GetLogTerm()
		for _, e := range m.GetEntries() {
			if e.GetIndex() != index+1 || e.GetTerm() < term || e.GetTerm() > m.GetTerm() {
				return false
			}
			index, term = e.GetIndex(), e.GetTerm()
		}
	}
	return true
}
