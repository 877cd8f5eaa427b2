package raft

import (
	"slices"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/internal/errkind"
)

// A crash may lose the commit index, which is not synced: a lone voter must not answer reads
// with the one that it found.
func TestLoneVoterReadsWhatWasAcknowledged(t *testing.T) {
	l := newLab(t)
	l.voters(1, entry("a"), entry("b")) // committed, as far as the disk tells: entry 1
	m := l.members[0]
	m.must(m.steps.Apply()) // raft does not campaign before the change of membership is applied
	read := m.steps.ReadIndex()
	for range 10 {
		m.steps.Tick()
		m.turn()
		if err, ok := read.Known(); ok {
			t.Fatalf("answered with %v when entry %d is applied", err, m.ledger.at.Index)
		}
		m.must(m.steps.Append(1))
		m.turn()
	}
	l.settle()
	wantDone(t, read)
	if m.ledger.at.Index < 3 {
		t.Errorf("applied %d", m.ledger.at.Index)
	}
}

// The answer to a read index that the process before asked for is older than the new process.
func TestReadIndexOfTheProcessBefore(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	lead := l.lead(1)
	l.members[1].steps.ReadIndex()
	l.members[1].turn()
	for range 3 {
		l.deliverAll()
		for _, m := range l.members {
			m.turn()
		}
		if late := l.take(pb.MsgReadIndexResp); len(late) > 0 {
			l.members[1].kill()
			lead.write("after")
			l.members[1].start()
			l.settle()
			l.tick(1)
			l.isolate(2, true)
			lead.write("newer")
			l.isolate(2, false)
			l.net = nil
			read := l.members[1].steps.ReadIndex()
			l.members[1].turn()
			l.net = slices.Clone(late)
			l.deliverAll()
			l.members[1].turn()
			wantNone(t, read)
			return
		}
	}
	t.Fatal("the leader never answered")
}

// A read that comes while another is under way does not join it, an answer to a context that
// was given up is not taken, and one that is never answered fails when there is no leader.
func TestReads(t *testing.T) {
	l := newLab(t)
	l.voters(3)
	l.lead(1)
	m := l.members[1]
	first := m.steps.ReadIndex()
	m.turn()
	second := m.steps.ReadIndex()
	m.turn()
	asks := l.take(pb.MsgReadIndex)
	if len(asks) != 2 {
		t.Fatalf("%d read indexes for two calls", len(asks))
	}
	l.net = slices.Clone(asks[:1])
	l.settle()
	wantDone(t, first)
	wantNone(t, second)

	for range DefaultElectionTicks/2 + 1 {
		m.steps.Tick()
	}
	m.turn()
	again := l.take(pb.MsgReadIndex)
	if len(again) != 1 || string(again[0].GetEntries()[0].GetData()) == string(asks[1].GetEntries()[0].GetData()) {
		t.Fatalf("asked again with %v", again)
	}
	l.net = slices.Clone(asks[1:])
	l.settle() // the answer to the first asking
	wantNone(t, second)
	l.net = slices.Clone(again)
	l.settle()
	wantDone(t, second)

	l.isolate(2, true)
	third := m.steps.ReadIndex()
	for range 100 {
		m.steps.Tick()
	}
	m.turn()
	wantErr(t, third, errkind.NoLeader)
	if n := len(m.node.core.reads.asked); n > maxReadsInRaft {
		t.Errorf("%d are asked", n)
	}
}
