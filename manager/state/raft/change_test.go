package raft

import (
	"errors"
	"slices"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/internal/errkind"
	"holdfast/manager/state"
)

// change makes a change at a member, without settling.
func (m *labMember) change(id string, change state.ChangeType, peer uint64) *state.Outcome {
	m.lab.t.Helper()
	done, err := m.steps.Change([]byte(id), change, labPeer(peer))
	if err != nil {
		m.lab.t.Fatal(err)
	}
	return done
}

// Asking again does no harm: raft would make a voter a learner again, and let a removed member
// in.
func TestChangeAskedTwice(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	lead := l.lead(1)
	l.add()
	added := lead.change("1", state.AddLearner, 4)
	l.settle()
	wantDone(t, added)
	l.tick(4 * learnerCheckTicks)
	if p, _ := lead.ledger.at.Peer(4); p.Learner {
		t.Fatal("the learner got no vote")
	}
	index := lead.ledger.at.Index
	again := lead.change("2", state.AddLearner, 4)
	l.settle()
	wantDone(t, again)
	if lead.ledger.at.Index != index || members(lead.node.core) != "1v 2v 3v 4v" {
		t.Errorf("%d entries more, members %s", lead.ledger.at.Index-index, members(lead.node.core))
	}

	for range 2 {
		removed := lead.change("3", state.RemovePeer, 4)
		l.settle()
		wantDone(t, removed)
	}
	wantErr(t, lead.change("4", state.AddLearner, 4), errkind.Refused)
	wantErr(t, lead.change("5", state.AddVoter, 5), errkind.NotFound)
	if members(lead.node.core) != "1v 2v 3v" {
		t.Errorf("members %s", members(lead.node.core))
	}
}

// Two members are removed at once: each may go, and not both. The rules are looked at when the
// change is proposed.
func TestRemovalsAreCheckedOneAfterAnother(t *testing.T) {
	l := newLab(t)
	l.voters(4)
	lead := l.lead(1)
	l.members[3].kill()
	l.tick(2 * DefaultElectionTicks)
	first, second := lead.change("1", state.RemovePeer, 2), lead.change("2", state.RemovePeer, 3)
	wantErr(t, second, errkind.NoLeader) // one at a time
	l.settle()
	wantDone(t, first)
	wantErr(t, lead.change("3", state.RemovePeer, 3), errkind.Refused)
}

// raft panics, on all members, when the last voter is removed.
func TestLastVoterStays(t *testing.T) {
	l := newLab(t)
	l.voters(1)
	l.tick(3)
	wantErr(t, l.members[0].change("1", state.RemovePeer, 1), errkind.Refused)
}

// No change is proposed before an entry of the own term is applied, nor during a transfer, nor
// by one that does not lead.
func TestChangeNeedsALeaderThatKnows(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	l.lead(1)
	wantErr(t, l.members[1].change("1", state.UpdatePeer, 2), errkind.NoLeader)

	m := l.members[1]
	l.members[0].steps.Transfer()
	wantErr(t, l.members[0].change("2", state.RemovePeer, 3), errkind.NoLeader)
	for !m.node.core.leading {
		for _, o := range l.members {
			o.turn()
			o.must(o.steps.Append(9))
			o.turn()
		}
		l.deliverAll()
	}
	wantErr(t, m.change("3", state.RemovePeer, 3), errkind.NoLeader)
	l.settle()
	done := m.change("4", state.RemovePeer, 3)
	l.settle()
	wantDone(t, done)
}

// raft puts an empty entry in the place of a change that it refuses.
func TestRefusedChange(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	lead := l.lead(1)
	other, err := newChange([]byte("other"), state.RemovePeer, labPeer(3))
	if err != nil {
		t.Fatal(err)
	}
	if err := lead.node.core.raw.ProposeConfChange(other.cc); err != nil { // behind core's back
		t.Fatal(err)
	}
	done := lead.change("mine", state.RemovePeer, 2)
	lead.turn()
	wantErr(t, done, errkind.NoLeader)
	l.settle()
	if members(lead.node.core) != "1v 2v" {
		t.Errorf("members %s", members(lead.node.core))
	}
}

// The outcome of a change is unknown once leadership is lost.
func TestChangeAndLostLeadership(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	lead := l.lead(1)
	l.isolate(1, true)
	done := lead.change("1", state.RemovePeer, 3)
	lead.turn()
	wantNone(t, done)
	l.tick(3 * DefaultElectionTicks)
	wantErr(t, done, errkind.UnknownOutcome)
	l.isolate(1, false)
	l.tick(3 * DefaultElectionTicks)
	next := l.lead(1).change("2", state.RemovePeer, 3)
	l.settle()
	wantDone(t, next)
}

// A leader that is removed steps down, and it and whoever else is removed learns of it: from
// its log, or from those that it asks for votes.
func TestRemovedMembersEnd(t *testing.T) {
	l := newLab(t)
	l.voters(4)
	lead := l.lead(1)
	done := lead.change("1", state.RemovePeer, 1)
	l.settle()
	wantDone(t, done)
	if !lead.removed || lead.node != nil {
		t.Error("the leader goes on after it was removed")
	}
	l.isolate(4, true)
	next := l.lead(2)
	next.node.core.heard[4] = next.node.core.clock
	done = next.change("2", state.RemovePeer, 4)
	l.settle()
	wantDone(t, done)
	gone := l.members[3]
	l.tick(3 * DefaultElectionTicks)
	if gone.removed {
		t.Fatal("it cannot know yet")
	}
	l.isolate(4, false)
	l.tick(3 * DefaultElectionTicks)
	if !gone.removed {
		t.Error("it was never told that it was removed")
	}
	gone.removed = false
	gone.disk.Restart()
	gone.start() // and it does not know from its log: it is told again
	l.tick(3 * DefaultElectionTicks)
	if !gone.removed {
		t.Error("it was not told after a restart")
	}
}

// A member whose log tells that it was removed ends at once.
func TestRemovedMemberEndsAtStart(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	lead := l.lead(1)
	done := lead.change("1", state.RemovePeer, 1)
	l.settle()
	wantDone(t, done)
	lead.disk.Restart()
	lead.start()
	for range 3 {
		if lead.node != nil {
			lead.work()
		}
	}
	if lead.node != nil {
		t.Error("it goes on")
	}
}

// A log that was cut can let a new member in: it needs a snapshot in which it is a member, and
// the newest one may be older.
func TestJoinAfterTheLogWasCut(t *testing.T) {
	l := newLab(t)
	l.voters(1)
	l.settings = Settings{SnapshotInterval: 10, KeepEntries: 1}
	l.tick(3)
	lead := l.members[0]
	for range 25 {
		lead.write("x")
	}
	l.settings.SnapshotInterval = 1 << 40
	l.add()
	done := lead.change("1", state.AddLearner, 2)
	l.settle()
	wantDone(t, done)
	l.tick(4 * learnerCheckTicks)
	if p, ok := l.members[1].ledger.at.Peer(2); !ok || p.Learner {
		t.Errorf("it is no voter: %v", l.members[1].ledger.at)
	}
	if !slices.Equal(lead.ledger.entries, l.members[1].ledger.entries) {
		t.Error("it has another state")
	}
}

// A learner gets a vote when it has kept up between two looks, as one process.
func TestPromotion(t *testing.T) {
	setup := func(t *testing.T) (*lab, *labMember, *labMember) {
		l := newLab(t)
		l.voters(1)
		l.tick(3)
		lead := l.members[0]
		for lead.node.core.clock%learnerCheckTicks != 0 {
			l.tick(1)
		}
		m := l.add()
		done := lead.change("1", state.AddLearner, 2)
		l.settle()
		wantDone(t, done)
		return l, lead, m
	}
	learns := func(lead *labMember) bool {
		p, ok := lead.ledger.at.Peer(2)
		return ok && p.Learner
	}
	t.Run("keeps up", func(t *testing.T) {
		l, lead, _ := setup(t)
		l.tick(learnerCheckTicks)
		if !learns(lead) {
			t.Error("after one look")
		}
		l.tick(learnerCheckTicks)
		if learns(lead) {
			t.Error("not after two looks")
		}
	})
	t.Run("began anew", func(t *testing.T) {
		l, lead, m := setup(t)
		l.tick(learnerCheckTicks)
		m.kill()
		m.start()
		l.tick(learnerCheckTicks)
		if !learns(lead) {
			t.Error("it is another process than at the look before")
		}
		l.tick(learnerCheckTicks)
		if learns(lead) {
			t.Error("never")
		}
	})
	t.Run("always two looks behind", func(t *testing.T) {
		l, lead, m := setup(t)
		var held [12][]*pb.Message
		for i := range held {
			lead.ledger.propose("x")
			for range learnerCheckTicks {
				lead.steps.Tick()
				for range 3 {
					lead.work()
					held[i] = append(held[i], l.take(pb.MsgApp)...)
					l.deliverAll()
					m.work()
				}
			}
			if !learns(lead) {
				t.Fatal("it has a vote and is behind")
			}
			if i >= 2 {
				l.net = append(l.net, held[i-2]...)
			}
		}
		l.settle()
		l.tick(2 * learnerCheckTicks)
		if learns(lead) {
			t.Error("it has caught up")
		}
	})
	t.Run("away", func(t *testing.T) {
		l, lead, m := setup(t)
		m.kill()
		l.tick(10 * learnerCheckTicks)
		if !learns(lead) {
			t.Error("it is away")
		}
		m.start()
		l.tick(4 * learnerCheckTicks)
		if learns(lead) {
			t.Error("it is back")
		}
	})
}

func TestDamagedChangeIsAFault(t *testing.T) {
	for _, e := range []*pb.Entry{
		{Type: pb.EntryConfChange.Enum(), Data: []byte{0xff}},
		{Type: pb.EntryConfChangeV2.Enum()},
	} {
		if _, err := committed([]*pb.Entry{e}); err == nil {
			t.Errorf("%v is taken", e)
		}
		if err := (&core{}).appliedEntries([]*pb.Entry{e}, nil); err == nil || errors.Is(err, ErrRemoved) {
			t.Errorf("%v: %v", e, err)
		}
	}
}
