package raft

import (
	"fmt"
	"strings"
	"testing"

	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"holdfast/internal/errkind"
	"holdfast/manager/state"
)

// A lone voter is elected at once, also on a disk that needs longer than a tick.
func TestLoneVoterOnASlowDisk(t *testing.T) {
	l := newLab(t)
	l.voters(1)
	m := l.members[0]
	for i := range 30 {
		m.steps.Tick()
		m.turn()
		if i%3 == 2 {
			m.must(m.steps.Append(9))
			m.turn()
		}
		m.must(m.steps.Apply())
	}
	if !m.node.core.leading {
		t.Errorf("not elected, in term %d", m.node.core.term)
	}
}

// A leader whose disk hangs hands over. If that is lost it falls silent, whatever it is asked,
// and is voted out.
func TestLeaderWhoseDiskHangs(t *testing.T) {
	for _, handedOver := range []bool{true, false} {
		t.Run(fmt.Sprint("handed over ", handedOver), func(t *testing.T) {
			l := newLab(t)
			l.voters(3)
			lead := l.lead(1)
			lead.ledger.propose("hangs")
			own := lead.steps.ReadIndex()
			for tick := range 6 * DefaultElectionTicks {
				for _, m := range l.members {
					m.steps.Tick()
					if tick > 3*DefaultElectionTicks/2 {
						m.steps.ReadIndex()
					}
				}
				for range 4 {
					for _, m := range l.members[1:] {
						m.work()
					}
					lead.turn()
					if !handedOver {
						l.take(pb.MsgTimeoutNow)
					}
					l.deliverAll()
				}
				if other := l.leader(); other != nil && other != lead {
					break
				}
			}
			if other := l.leader(); other == nil || other == lead {
				t.Fatal("nobody else leads")
			}
			if handedOver {
				return
			}
			lead.ledger.propose("never")
			for range 3 * DefaultElectionTicks {
				lead.steps.Tick()
			}
			lead.turn()
			if err, ok := own.Known(); ok && err != nil && !errkind.Is(err, errkind.NoLeader) {
				t.Errorf("a read at it: %v", err)
			}
			l.settle()
			l.tick(2)
			if lead.node.core.leading {
				t.Error("it leads again without an election")
			}
		})
	}
}

// raft takes its marks of who is there off whenever it checks the quorum. A transfer, or a look
// at who can be reached, must not fail because of that.
func TestReachableAfterQuorumCheck(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	lead := l.lead(1)
	for range DefaultElectionTicks + 1 {
		lead.steps.Tick()
		if !lead.steps.Status().Reachable(2) {
			t.Fatal("member 2 cannot be reached")
		}
		done := state.NewOutcome()
		inactive := true
		lead.node.core.raw.WithProgress(func(id uint64, _ etcdraft.ProgressType, pr tracker.Progress) {
			inactive = inactive && (id == 1 || !pr.RecentActive)
		})
		if inactive {
			lead.node.core.handOver(done)
			if err, ok := done.Known(); ok {
				t.Fatalf("transfer: %v", err)
			}
			l.settle()
			wantDone(t, done)
			return
		}
		l.settle()
	}
	t.Fatal("raft never took its marks off")
}

// A transfer that does not come about is told, and writes go on.
func TestTransferThatFails(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	lead := l.lead(1)
	done := lead.steps.Transfer()
	lead.ledger.propose("held")
	lead.turn()
	if lead.ledger.handed != 0 {
		t.Error("an entry was proposed during the transfer")
	}
	second := lead.steps.Transfer()
	asked := 0
	for range maxTransfers * (DefaultElectionTicks + 1) {
		lead.turn()
		asked += len(l.take(pb.MsgTimeoutNow))
		l.settle()
		if asked < maxTransfers {
			wantNone(t, done)
		}
		lead.steps.Tick()
	}
	l.settle()
	if asked != maxTransfers {
		t.Errorf("a voter was asked %d times to lead", asked)
	}
	wantErr(t, done, errkind.Refused)
	wantErr(t, second, errkind.Refused)
	if !lead.node.core.leading || lead.ledger.entries[len(lead.ledger.entries)-1].Data != "held" {
		t.Errorf("leads: %v, last entry %+v", lead.node.core.leading, lead.ledger.entries[len(lead.ledger.entries)-1])
	}
	l.isolate(1, true)
	l.tick(DefaultElectionTicks * 3)
	if lead.node.core.leading {
		t.Fatal("it leads without a quorum")
	}
	wantDone(t, lead.steps.Transfer())
}

// A voter that has to apply a change of the membership first does not take over, and is asked again.
func TestTransferAsksAgain(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	lead := l.lead(1)
	done := lead.steps.Transfer()
	lead.turn()
	if n := len(l.take(pb.MsgTimeoutNow)); n != 1 {
		t.Fatalf("%d voters were asked to lead", n)
	}
	l.settle()
	wantNone(t, done)
	l.tick(DefaultElectionTicks + 1)
	wantDone(t, done)
	if lead.node.core.leading || l.leader() == nil {
		t.Error("no other leads")
	}
}

// raft refuses a proposal: the store hears of it, and nothing is counted as with raft.
func TestRefusedProposal(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	lead := l.lead(1)
	lead.node.core.raw.TransferLeader(2) // behind core's back
	lead.ledger.propose("x")
	lead.node.core.propose()
	if lead.ledger.refused != 1 || lead.node.core.inRaft != 0 {
		t.Errorf("refused %d, in raft %d", lead.ledger.refused, lead.node.core.inRaft)
	}
}

// Leadership that is lost takes what was with raft along, and the next one begins anew.
func TestEntriesOfALostTermAreNotCounted(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	lead := l.lead(1)
	l.isolate(1, true)
	for i := range 8 {
		lead.ledger.propose(fmt.Sprint("lost", i))
	}
	lead.work()
	if lead.node.core.inRaft != maxEntriesInRaft {
		t.Fatalf("%d in raft", lead.node.core.inRaft)
	}
	l.tick(3 * DefaultElectionTicks)
	l.isolate(1, false)
	l.tick(3 * DefaultElectionTicks)
	l.lead(1).write("a", "b", "c", "d", "e", "f")
	for _, e := range lead.ledger.entries {
		if strings.HasPrefix(e.Data, "lost") {
			t.Errorf("%+v was applied", e)
		}
	}
	l.check()
}
