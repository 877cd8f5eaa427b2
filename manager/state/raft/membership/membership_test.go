package membership_test

import (
	"strings"
	"testing"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/raft/membership"
)

func peers() []holdfast.Peer {
	return []holdfast.Peer{
		{RaftID: 1, NodeID: "n1", Addr: "a1", Hostname: "h1"},
		{RaftID: 2, NodeID: "n2", Addr: "a2", Hostname: "h2"},
		{RaftID: 3, NodeID: "n3", Addr: "a3", Hostname: "h3", Learner: true},
	}
}

func TestCheckJoin(t *testing.T) {
	for _, c := range []struct {
		name string
		join membership.Join
		plan membership.Plan
		raft uint64
		err  string
	}{
		{"new", membership.Join{NodeID: "n4", Addr: "a4"}, membership.Add, 0, ""},
		{"member asks again", membership.Join{NodeID: "n2", Addr: "a2", HasState: true}, membership.Keep, 2, ""},
		{"member moved", membership.Join{NodeID: "n2", Addr: "a9", HasState: true}, membership.Update, 2, ""},
		{"learner moved", membership.Join{NodeID: "n3", Addr: "a9", HasState: true}, membership.Update, 3, ""},
		{"join was cut short", membership.Join{NodeID: "n3", Addr: "a3"}, membership.Replace, 3, ""},
		{"voter lost its log", membership.Join{NodeID: "n2", Addr: "a2"}, 0, 0, "ctl member rm 2"},
		{"address taken", membership.Join{NodeID: "n4", Addr: "a2"}, 0, 0, "ctl member rm 2"},
		{"moved to a taken address", membership.Join{NodeID: "n1", Addr: "a2", HasState: true}, 0, 0, "ctl member rm 2"},
		{"was removed", membership.Join{NodeID: "n5", Addr: "a5", HasState: true}, 0, 0, "empty its state folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, peer, err := membership.CheckJoin(c.join, peers())
			if c.err != "" {
				if !errkind.Is(err, errkind.Refused) || !strings.Contains(errkind.Hint(err), c.err) {
					t.Errorf("got %v, hint %q", err, errkind.Hint(err))
				}
				return
			}
			if err != nil || plan != c.plan || peer.RaftID != c.raft {
				t.Errorf("got plan %v of %v, %v", plan, peer, err)
			}
			if plan == membership.Update && peer.Addr != c.join.Addr {
				t.Errorf("address is %s", peer.Addr)
			}
		})
	}
}

func TestCheckRemove(t *testing.T) {
	for _, c := range []struct {
		name      string
		target    uint64
		reachable []uint64
		kind      errkind.Kind
		ok        bool
	}{
		{"all there", 1, []uint64{1, 2, 3}, 0, true},
		{"one that is gone", 2, []uint64{1}, 0, true},
		{"the one that is there", 1, []uint64{1}, errkind.Refused, false},
		{"a learner", 3, []uint64{1, 2}, 0, true},
		{"a learner while a voter is away", 3, []uint64{1}, errkind.Refused, false},
		{"unknown", 9, []uint64{1, 2, 3}, errkind.NotFound, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := membership.CheckRemove(c.target, peers(), func(id uint64) bool {
				for _, r := range c.reachable {
					if r == id {
						return true
					}
				}
				return false
			})
			if (err == nil) != c.ok || err != nil && !errkind.Is(err, c.kind) {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := membership.CheckRemove(1, peers()[:1], func(uint64) bool { return true }); !errkind.Is(err, errkind.Refused) {
		t.Errorf("last voter: %v", err)
	}
}

func TestNewRaftIDIsNew(t *testing.T) {
	next := []uint64{0, 1, 2, 4, 14, 16, 40}
	id := membership.NewRaftID(func() uint64 {
		n := next[0]
		next = next[1:]
		return n
	}, peers(), []uint64{7})
	if id != 8 {
		t.Errorf("got %d", id)
	}
}
