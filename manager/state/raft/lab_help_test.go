package raft

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"holdfast/internal/errkind"
	"holdfast/manager/state"
)

func entry(data string) *pb.Entry {
	return &pb.Entry{Type: pb.EntryNormal.Enum(), Data: []byte(data)}
}

// turn takes a turn at a member and nothing else.
func (m *labMember) turn() {
	m.lab.t.Helper()
	m.must(m.steps.Turn())
}

// write proposes at the leader, and settles.
func (m *labMember) write(data ...string) {
	m.lab.t.Helper()
	for _, d := range data {
		if !m.ledger.propose(d) {
			m.lab.t.Fatalf("member %d takes no %q", m.id, d)
		}
		m.lab.settle()
	}
}

// isolate cuts a member off, or heals it.
func (l *lab) isolate(id uint64, away bool) {
	for _, m := range l.members {
		if m.id != id {
			l.cut[[2]uint64{id, m.id}], l.cut[[2]uint64{m.id, id}] = away, away
		}
	}
}

// take takes the messages of a type off the network.
func (l *lab) take(typ pb.MessageType) []*pb.Message {
	var taken []*pb.Message
	l.net = slices.DeleteFunc(l.net, func(m *pb.Message) bool {
		if m.GetType() == typ {
			taken = append(taken, m)
			return true
		}
		return false
	})
	return taken
}

// deliverAll delivers what is on the network now.
func (l *lab) deliverAll() {
	for range len(l.net) {
		l.deliver(0, false)
	}
}

func wantErr(t *testing.T, done *state.Outcome, kind errkind.Kind) {
	t.Helper()
	if err, ok := done.Known(); !ok || !errkind.Is(err, kind) {
		t.Errorf("got %v (answered: %v), want kind %d", err, ok, kind)
	}
}

func wantDone(t *testing.T, done *state.Outcome) {
	t.Helper()
	if err, ok := done.Known(); !ok || err != nil {
		t.Errorf("got %v (answered: %v), want it done", err, ok)
	}
}

func wantNone(t *testing.T, done *state.Outcome) {
	t.Helper()
	if err, ok := done.Known(); ok {
		t.Errorf("got %v, want no answer yet", err)
	}
}

func members(c *core) string {
	var s []string
	c.raw.WithProgress(func(id uint64, typ etcdraft.ProgressType, _ tracker.Progress) {
		s = append(s, fmt.Sprint(id, map[etcdraft.ProgressType]string{etcdraft.ProgressTypePeer: "v", etcdraft.ProgressTypeLearner: "l"}[typ]))
	})
	return strings.Join(s, " ")
}

// work12 lets the members 1 and 2 do all that they can do with each other.
func (l *lab) work12() {
	for range 20 {
		for _, m := range l.members[:2] {
			m.work()
		}
		for i := 0; i < len(l.net); {
			if l.net[i].GetTo() > 2 {
				if l.cut[[2]uint64{l.net[i].GetFrom(), l.net[i].GetTo()}] || l.net[i].GetTo() == 9 {
					l.net = slices.Delete(l.net, i, i+1)
					continue
				}
				i++
				continue
			}
			l.deliver(i, false)
		}
	}
}
