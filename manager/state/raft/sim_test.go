package raft

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/cryptotest"

	"holdfast/internal/errkind"
	"holdfast/manager/state"
)

// simRead is a read index that was asked for when newest was applied by someone.
type simRead struct {
	member *labMember
	node   *Node
	newest uint64
	done   *state.Outcome
}

type simChange struct {
	node *Node
	done *state.Outcome
}

// sim lets anything happen to a lab, as a seed says.
type sim struct {
	*lab
	rng     *rand.Rand
	reads   []simRead
	changes []simChange
	count   map[string]int
	rates   [9]int
	names   int
}

func newSim(t testing.TB, seed uint64) *sim {
	s := &sim{lab: newLab(t), rng: rand.New(rand.NewPCG(seed, 1)), count: map[string]int{}}
	s.settings = Settings{SnapshotInterval: 8 + uint64(s.rng.IntN(30)), KeepEntries: 1 + uint64(s.rng.IntN(6))}
	for i := range s.rates { // some runs are calm and some are hell
		s.rates[i] = s.rng.IntN(4)
	}
	return s
}

func (s *sim) one() *labMember { return s.members[s.rng.IntN(len(s.members))] }

func (s *sim) did(what string) { s.count[what]++ }

// step lets one thing happen.
func (s *sim) step() {
	m := s.one()
	if m.node == nil {
		if !m.removed && s.rng.IntN(20) == 0 {
			m.start()
			s.did("start")
		}
		return
	}
	switch n := s.rng.IntN(100); {
	case n < 12:
		m.steps.Tick()
	case n < 55:
		s.receive()
		return
	case n < 70:
		s.append(m)
	case n < 82:
		m.must(m.steps.Apply())
	case n < 84:
		m.steps.Save()
	case n < 92:
		s.names++
		m.ledger.propose(fmt.Sprint("x", s.names))
	case n < 95:
		s.reads = append(s.reads, simRead{m, m.node, s.newest, m.steps.ReadIndex()})
	case n < 97:
		s.membership(m)
	case n < 99:
		s.partition(m)
	default:
		s.down(m)
		return
	}
	if m.node != nil && s.rng.IntN(4) > 0 {
		m.must(m.steps.Turn())
	}
}

// receive delivers a message: not the oldest one, it may be, or twice, or not at all.
func (s *sim) receive() {
	if len(s.net) == 0 {
		return
	}
	i := s.rng.IntN(min(len(s.net), 1+4*s.rates[0]))
	switch n := s.rng.IntN(100); {
	case n < 3*s.rates[1]:
		m := s.net[i]
		s.net = slices.Delete(s.net, i, i+1)
		s.lose(s.members[m.GetFrom()-1], m)
	case n < 5*s.rates[1]:
		s.deliver(i, true)
	default:
		s.deliver(i, false)
	}
}

// append writes the log; the power may fail in the middle of it.
func (s *sim) append(m *labMember) {
	if s.rng.IntN(400) < s.rates[2] {
		m.disk.CrashAt(1 + s.rng.IntN(4))
	}
	err := m.steps.Append(1 + s.rng.IntN(3))
	if m.disk.Crashed() {
		m.crash()
		s.did("torn")
		return
	}
	m.must(err)
	m.disk.CrashAt(0)
}

func (s *sim) down(m *labMember) {
	if s.rng.IntN(3) >= s.rates[3] {
		return
	}
	if s.rng.IntN(2) == 0 {
		m.crash()
	} else {
		m.kill()
	}
	s.did("crash")
}

func (s *sim) partition(m *labMember) {
	if s.rng.IntN(3) > s.rates[4] || s.rng.IntN(2) == 0 {
		clear(s.cut)
		return
	}
	for _, o := range s.members {
		if o != m && s.rng.IntN(3) > 0 {
			s.cut[[2]uint64{m.id, o.id}] = true
		}
		if o != m && s.rng.IntN(3) > 0 {
			s.cut[[2]uint64{o.id, m.id}] = true
		}
	}
	s.did("cut")
}

// membership asks the member for a change, as a leader would be.
func (s *sim) membership(m *labMember) {
	if s.rng.IntN(3) >= s.rates[5] || !m.node.core.leading {
		return
	}
	var done *state.Outcome
	var err error
	s.names++
	id := fmt.Appendf(nil, "%016d", s.names)
	switch s.rng.IntN(4) {
	case 0:
		done = m.steps.Transfer()
	case 1:
		if len(s.members) > 6 {
			return
		}
		joiner := s.add()
		done, err = m.steps.Change(id, state.AddLearner, labPeer(joiner.id))
	case 2: // one that is there or was removed
		done, err = m.steps.Change(id, state.AddLearner, labPeer(s.one().id))
	case 3:
		if len(m.ledger.at.Peers) < 4 {
			return
		}
		done, err = m.steps.Change(id, state.RemovePeer, labPeer(s.one().id))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.changes = append(s.changes, simChange{m.node, done})
	s.did("change")
}

// answers holds what calls were told against what was true.
func (s *sim) answers() {
	s.reads = slices.DeleteFunc(s.reads, func(r simRead) bool {
		err, ok := r.done.Known()
		switch {
		case r.member.node != r.node:
			return true // its process died
		case !ok:
			return false
		case err == nil && r.member.ledger.at.Index < r.newest:
			s.t.Fatalf("member %d: a read that began when entry %d was applied is answered at entry %d",
				r.member.id, r.newest, r.member.ledger.at.Index)
		case err == nil:
			s.did("read")
		case !errkind.Is(err, errkind.NoLeader):
			s.t.Fatal(err)
		}
		return true
	})
}

// heal lets everything come to an end: all are up, and nothing is in the way.
func (s *sim) heal() *labMember {
	clear(s.cut)
	s.rates = [9]int{}
	for _, m := range s.members {
		m.disk.CrashAt(0)
		if m.node == nil && !m.removed {
			m.start()
		}
	}
	for range 200 {
		s.tick(1)
		if s.leader() != nil && s.quiet() {
			break
		}
	}
	lead := s.leader()
	if lead == nil {
		s.t.Fatal("no leader though all are up")
	}
	if !lead.ledger.propose("last") {
		s.t.Fatal("the leader takes nothing")
	}
	last := lead.steps.ReadIndex()
	s.tick(20)
	if err, ok := last.Known(); !ok || err != nil {
		s.t.Fatalf("the last read: %v, %v", err, ok)
	}
	return lead
}

// quiet tells whether all members that the leader knows have caught up, and may vote.
func (s *sim) quiet() bool {
	for _, p := range s.leader().ledger.at.Peers {
		if p.Learner || s.members[p.RaftID-1].ledger.at.Index < s.newest {
			return false
		}
	}
	return true
}

// end looks at what must hold in the end.
func (s *sim) end(lead *labMember) {
	s.answers()
	s.check()
	if lead.ledger.entries[len(lead.ledger.entries)-1].Data != "last" {
		s.t.Fatalf("the last entry is %+v", lead.ledger.entries[len(lead.ledger.entries)-1])
	}
	for _, p := range lead.ledger.at.Peers {
		m := s.members[p.RaftID-1]
		if m.node == nil {
			s.t.Fatalf("member %d has ended", m.id)
		}
		c := m.node.core
		if !slices.Equal(m.ledger.entries, lead.ledger.entries) {
			s.t.Fatalf("member %d applied %d entries, the leader %d, and they differ", m.id, len(m.ledger.entries), len(lead.ledger.entries))
		}
		if p.Learner || c.inRaft != 0 || c.appends != 0 || c.applies != 0 || c.change != nil || c.snapshot != nil ||
			len(c.transfers)+len(c.reads.asked)+len(c.reads.waiting)+len(c.reads.reach) != 0 {
			s.t.Fatalf("member %d does not rest: learner %v, %d in raft, %d appends, %d applies, change %v, snapshot %v, %d transfers, reads %+v",
				m.id, p.Learner, c.inRaft, c.appends, c.applies, c.change, c.snapshot, len(c.transfers), c.reads)
		}
	}
	for _, ch := range s.changes {
		if err, ok := ch.done.Known(); !ok && slices.ContainsFunc(s.members, func(m *labMember) bool { return m.node == ch.node }) {
			s.t.Fatalf("a change of membership was never answered: %v", err)
		}
	}
	for _, id := range lead.ledger.at.Removed {
		if m := s.members[id-1]; m.node != nil {
			s.t.Errorf("member %d was removed and does not know", id)
		}
	}
}

func runSim(t testing.TB, seed uint64, steps int) *sim {
	s := newSim(t, seed)
	s.voters(1 + s.rng.IntN(4))
	for range steps {
		s.step()
		s.answers()
		s.check()
	}
	s.end(s.heal())
	return s
}

// TestAnythingHappens runs seeds: one of them that fails is run alone with -run and its number.
func TestAnythingHappens(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 10
	}
	if n, err := strconv.Atoi(os.Getenv("HOLDFAST_SIM_SEEDS")); err == nil {
		seeds = n
	}
	total := map[string]int{}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, uint64(seed)) // raft's election timeouts come from there
			s := runSim(t, uint64(seed), 3000)
			for k, v := range s.count {
				total[k] += v
			}
			total["entries"] += int(s.newest)
			total["terms"] += len(s.leaders)
			total["snapshots"] += s.sent
		})
	}
	t.Log(total)
	for _, what := range []string{"crash", "torn", "cut", "change", "read", "entries", "terms", "snapshots"} {
		if total[what] == 0 && !t.Failed() {
			t.Errorf("never seen: %s", what)
		}
	}
}

// A seed tells everything that happens.
func TestSeedReplays(t *testing.T) {
	var before []ledgerEntry
	for range 2 {
		t.Run("run", func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 7)
			s := runSim(t, 7, 1500)
			now := s.leader().ledger.entries
			if before != nil && !slices.Equal(before, now) {
				t.Error("two runs of one seed differ")
			}
			before = now
		})
	}
}
