package raft

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/manager/state"
	"holdfast/manager/state/raft/storage"
)

// A snapshot brings a membership. Changes before it that are still being applied must not be
// put on top of that.
func TestSnapshotWaitsForWhatIsBeingApplied(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	lead := l.lead(1)
	slow := l.members[2]
	done, _ := lead.steps.Change([]byte("add"), state.AddLearner, labPeer(9))
	for range 20 { // all but slow's applies
		l.take(pb.MsgSnap)
		for _, m := range l.members {
			m.turn()
			appends, applies, _ := m.steps.Waiting()
			m.must(m.steps.Append(appends))
			if m != slow && applies > 0 {
				m.must(m.steps.Apply())
			}
			m.turn()
		}
		l.net = slices.DeleteFunc(l.net, func(m *pb.Message) bool { return m.GetTo() == 9 })
		l.deliverAll()
	}
	wantDone(t, done)
	if _, applies, _ := slow.steps.Waiting(); applies == 0 {
		t.Fatal("slow has nothing to apply")
	}
	slow.turn()

	// The others go on without it: the learner leaves again, and the log is cut.
	l.settings = Settings{SnapshotInterval: 2, KeepEntries: 1}
	waiting := slow.node.applies.queue.take()
	l.isolate(3, true)
	done, _ = lead.steps.Change([]byte("rm"), state.RemovePeer, labPeer(9))
	l.net = nil
	for range 3 {
		lead.node.core.heard[2] = lead.node.core.clock
		l.work12()
	}
	wantDone(t, done)
	for i := range 10 {
		lead.ledger.propose(fmt.Sprint("x", i))
		l.work12()
	}
	slow.node.applies.queue.work = waiting
	l.isolate(3, false)
	for range 30 { // until slow has the snapshot, before it goes on applying
		if slow.node.core.snapshot != nil {
			break
		}
		lead.steps.Tick()
		l.work12()
		l.net = slices.DeleteFunc(l.net, func(m *pb.Message) bool { return m.GetTo() == 9 })
		l.deliverAll()
		slow.turn()
		slow.must(slow.steps.Append(9))
		slow.turn()
	}
	if slow.node.core.snapshot == nil {
		t.Fatal("slow was sent no snapshot, or stepped it while it was applying")
	}
	l.settings = Settings{SnapshotInterval: 1 << 40}
	l.settle()
	if got := members(slow.node.core); got != "1v 2v 3v" {
		t.Errorf("raft's members are %s, the membership is %v", got, slow.ledger.at.Peers)
	}
}

// raft looks for changes of membership among the entries that it does not know as applied, and
// panics if they are gone.
func TestLogIsCutBelowWhatRaftKnowsAsApplied(t *testing.T) {
	l := newLab(t)
	l.voters(2)
	lead := l.lead(1)
	l.settings = Settings{SnapshotInterval: 5, KeepEntries: 1}
	m := l.members[1]
	for i := range 10 {
		lead.ledger.propose(fmt.Sprint("x", i))
	}
	for range 20 { // all goes on, and the turns in which 2 would hear of its applies do not come
		lead.work()
		l.deliverAll()
		if _, applies, _ := m.steps.Waiting(); applies == 0 {
			m.turn()
		}
		appends, _, _ := m.steps.Waiting()
		m.must(m.steps.Append(appends))
		m.turn()
		l.deliverAll()
	}
	for {
		if _, applies, _ := m.steps.Waiting(); applies == 0 {
			break
		}
		m.must(m.steps.Apply())
		m.steps.Save()
		m.must(m.steps.Append(9))
	}
	if snap, err := m.node.memory.Snapshot(); err != nil || snap.GetMetadata().GetIndex() == 0 {
		t.Fatalf("no snapshot: %v", err)
	}
	for range 3 * DefaultElectionTicks {
		m.steps.Tick()
	}
}

// A disk that lost what it acknowledged is told by the leader's heartbeat; raft would panic.
func TestLostLogIsTold(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	lead := l.lead(1)
	lead.write("a", "b")
	m := l.members[1]
	m.kill()
	other := newLab(t)
	other.voters(3)
	m.disk = other.members[1].disk // as it was before all that
	m.disk.Restart()
	m.start()
	lead.steps.Tick()
	lead.turn()
	l.deliverAll()
	if err := m.steps.Turn(); !errors.Is(err, ErrLogLost) {
		t.Errorf("got %v", err)
	}
}

func TestOnlyWellFormedMessagesAreStepped(t *testing.T) {
	e := func(index, term uint64) *pb.Entry { return &pb.Entry{Index: &index, Term: &term} }
	app := func(entries ...*pb.Entry) *pb.Message {
		return &pb.Message{Type: pb.MsgApp.Enum(), Term: new(uint64(3)), Index: new(uint64(5)), LogTerm: new(uint64(2)), Entries: entries}
	}
	snap := func(index, term uint64) *pb.Message {
		return &pb.Message{Type: pb.MsgSnap.Enum(), Term: new(uint64(3)), Snapshot: &pb.Snapshot{
			Metadata: &pb.SnapshotMetadata{Index: &index, Term: &term},
		}}
	}
	for _, c := range []struct {
		name string
		m    *pb.Message
		ok   bool
	}{
		{"heartbeat", &pb.Message{Type: pb.MsgHeartbeat.Enum(), Term: new(uint64(1))}, true},
		{"without a term", &pb.Message{Type: pb.MsgHeartbeat.Enum()}, false},
		{"proposal", &pb.Message{Type: pb.MsgProp.Enum(), Term: new(uint64(1))}, false},
		{"transfer", &pb.Message{Type: pb.MsgTransferLeader.Enum(), Term: new(uint64(1))}, false},
		{"forget leader", &pb.Message{Type: pb.MsgForgetLeader.Enum(), Term: new(uint64(1))}, false},
		{"election of one's own", &pb.Message{Type: pb.MsgHup.Enum(), Term: new(uint64(1))}, false},
		{"storage response", &pb.Message{Type: pb.MsgStorageAppendResp.Enum(), Term: new(uint64(1))}, false},
		{"quorum check", &pb.Message{Type: pb.MsgCheckQuorum.Enum(), Term: new(uint64(1)), From: new(etcdraft.LocalAppendThread)}, false},
		{"read index", &pb.Message{Type: pb.MsgReadIndex.Enum(), Entries: []*pb.Entry{{}}}, true},
		{"read index without context", &pb.Message{Type: pb.MsgReadIndex.Enum()}, false},
		{"append", app(e(6, 2), e(7, 3)), true},
		{"append nothing", app(), true},
		{"append with a gap", app(e(7, 2)), false},
		{"append with a hole", app(e(6, 2), e(8, 2)), false},
		{"append of an older term", app(e(6, 1)), false},
		{"append of a later term", app(e(6, 4)), false},
		{"append of falling terms", app(e(6, 3), e(7, 2)), false},
		{"snapshot", snap(7, 3), true},
		{"snapshot of nothing", snap(0, 0), false},
		{"snapshot of a later term", snap(7, 4), false},
	} {
		if c.m.From == nil {
			c.m.From = new(uint64(2))
		}
		if got := wellFormed(c.m); got != c.ok {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// What a crash left of a snapshot that was on its way, or in the making, is not in the way.
func TestHalfSnapshotsAreRemoved(t *testing.T) {
	l := newLab(t)
	l.voters(1)
	m := l.members[0]
	l.tick(2)
	w, err := storage.ReceiveSnapshot(m.disk, labDir, 9, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	m.kill()
	m.start()
	if w, err = storage.ReceiveSnapshot(m.disk, labDir, 9, 1); err != nil {
		t.Fatalf("the snapshot cannot be received again: %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
}

func TestInboxIsBounded(t *testing.T) {
	q := newInbox()
	one := &pb.Message{Entries: []*pb.Entry{{Data: make([]byte, 1<<20)}}}
	dropped := 0
	for range 2 * maxInboxBytes >> 20 {
		dropped += q.put([]*pb.Message{one})
	}
	if n := len(q.take()); n == 0 || n > maxInboxBytes>>20 || dropped == 0 {
		t.Errorf("%d are taken, %d dropped", n, dropped)
	}
	if q.put(make([]*pb.Message, maxInbox+1)) != 1 {
		t.Error("the number has no bound")
	}
}
