package sim

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/anishathalye/porcupine"
	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/internal/mutant"
	"holdfast/manager/state/raft"
)

// Stats counts what happened.
type Stats struct {
	Seeds, Failures                                                      int
	Ops, Unknown, Revisions                                              int
	Crashes, Torn, Elections, Snapshots, ConfChanges, Compactions        int
	DiskFaults, ApplyFaults, Refusals, Leftovers, Cuts, Pauses, Stranded int
	Simulated                                                            time.Duration
}

type count struct {
	what  string
	count int
}

// seen is what a number of seeds must have seen.
func (s Stats) seen() []count {
	return []count{
		{"seeds", s.Seeds},
		{"ops", s.Ops},
		{"crashes", s.Crashes},
		{"elections", s.Elections},
		{"snapshots", s.Snapshots},
		{"confchanges", s.ConfChanges},
		{"torn", s.Torn},
		{"compactions", s.Compactions},
		{"unknown", s.Unknown},
		{"revisions", s.Revisions},
		{"diskfaults", s.DiskFaults},
		{"applyfaults", s.ApplyFaults},
		{"refusals", s.Refusals},
		{"leftovers", s.Leftovers},
		{"cuts", s.Cuts},
		{"pauses", s.Pauses},
		{"stranded", s.Stranded},
	}
}

// String is the line that a run of many seeds ends with.
func (s Stats) String() string {
	line := "sim:"
	for i, c := range s.seen() {
		line += fmt.Sprintf(" %s=%d", c.what, c.count)
		if i == 0 {
			line += fmt.Sprintf(" hours=%.1f", s.Simulated.Hours())
		}
	}
	return line + fmt.Sprintf(" failures=%d", s.Failures)
}

// Add adds the counts of another run.
func (s *Stats) Add(o Stats) {
	for _, c := range []struct {
		to *int
		n  int
	}{
		{&s.Seeds, o.Seeds},
		{&s.Failures, o.Failures},
		{&s.Ops, o.Ops},
		{&s.Unknown, o.Unknown},
		{&s.Revisions, o.Revisions},
		{&s.Crashes, o.Crashes},
		{&s.Torn, o.Torn},
		{&s.Elections, o.Elections},
		{&s.Snapshots, o.Snapshots},
		{&s.Compactions, o.Compactions},
		{&s.ConfChanges, o.ConfChanges},
		{&s.DiskFaults, o.DiskFaults},
		{&s.ApplyFaults, o.ApplyFaults},
		{&s.Refusals, o.Refusals},
		{&s.Leftovers, o.Leftovers},
		{&s.Cuts, o.Cuts},
		{&s.Pauses, o.Pauses},
		{&s.Stranded, o.Stranded},
	} {
		*c.to += c.n
	}
	s.Simulated += o.Simulated
}

// cluster is a whole run.
type cluster struct {
	*world
	profile  profile
	planted  mutant.Set
	truth    *truth
	machines []*machine
	used     map[uint64]bool // raft IDs that a machine has or had
	cut      map[link]bool
	clients  group
	hist     history
	stats    Stats
	calm     bool          // nothing breaks now
	ending   bool          // clients begin nothing any more
	hush     time.Duration // until then clients begin nothing
	counted  struct{ least, most int }

	// drops tells which messages of raft a script drops; nil: none.
	drops func(from uint64, m *pb.Message) bool
}

// Options says how a seed is run.
type Options struct {
	Seed    uint64
	Planted mutant.Set
	Keep    int // lines of the trace that a failure shows
}

// Result is what came of a run.
type Result struct {
	Stats   Stats
	Trace   uint64 // hash of everything that happened
	Failure *Failure
}

// Run runs a seed. The process's random source must have been seeded, since raft draws its
// election timeouts from it.
func Run(o Options) (res Result) {
	w := newWorld(o.Seed, o.Keep)
	c := newCluster(&w, newProfile(&w), o.Planted)
	defer func() {
		if p := recover(); p != nil {
			res.Failure = c.failure(p)
		}
		c.stop()
		c.stats.Seeds, c.stats.Simulated = 1, c.now
		c.stats.Revisions = len(c.truth.revisions)
		res.Stats, res.Trace = c.stats, c.sum
	}()
	c.begin()
	for c.step(c.profile.length) {
	}
	c.end()
	return res
}

func newCluster(w *world, p profile, planted mutant.Set) *cluster {
	return &cluster{
		world: w, profile: p, planted: planted, truth: newTruth(w), used: map[uint64]bool{}, cut: map[link]bool{},
		clients: group{w: w, delay: time.Millisecond, ran: func() {}},
		hist:    history{calls: map[string][]porcupine.Operation{}},
	}
}

// stop ends all that is under way.
func (c *cluster) stop() {
	c.clients.kill()
	for _, m := range c.machines {
		if m.proc != nil {
			m.proc.calls.kill()
		}
	}
}

// failure makes a failure of a panic: of a check, or of the code under test.
func (c *cluster) failure(p any) *Failure {
	if f, ok := p.(*Failure); ok {
		return f
	}
	return &Failure{
		Check: "nothing panics", Text: fmt.Sprintf("%v\n%s", p, debug.Stack()),
		Trace: c.trace(),
	}
}

// assemble makes the first members, in peace, and returns their operator.
func (c *cluster) assemble() *operator {
	c.calm = true
	for id := uint64(1); id <= uint64(c.profile.members); id++ {
		c.used[id] = true
		c.join(id)
	}
	op := &operator{client: client{cluster: c, number: -1, known: map[int]Seen{}}}
	c.clients.start(context.Background(), "found", op.found)
	for deadline := time.Minute; len(c.clients.tasks) > 0; {
		if !c.step(deadline) {
			c.fail("it goes on when nothing breaks", "no cluster of %d members after %v", c.profile.members, c.now)
		}
	}
	return op
}

// begin makes the first members, and then the clients.
func (c *cluster) begin() {
	op := c.assemble()
	c.calm = false
	for i := range c.profile.clients {
		cl := &client{cluster: c, number: i, known: map[int]Seen{}}
		work := cl.run
		switch i {
		case 0:
			work = cl.openBank
		case 1:
			work = cl.watch
		}
		c.clients.start(context.Background(), fmt.Sprint("client ", i), work)
	}
	c.clients.start(context.Background(), "operator", op.run)
	c.trouble()
}

// join makes the machine of a member and starts it.
func (c *cluster) join(id uint64) {
	m := c.newMachine(id)
	calm := c.calm
	c.calm = true // a disk that fails now is another machine's story
	defer func() { c.calm = calm }()
	var err error
	if id == 1 {
		err = raft.Bootstrap(m.disk, dir, identity(id), peer(id).Addr, peer(id).Hostname)
	} else {
		err = raft.Join(m.disk, dir, identity(id))
	}
	if err != nil {
		c.fail("a member starts", "n%d: %v", id, err)
	}
	m.start()
}

// settleTime is how long a cluster in which nothing breaks may take for anything.
const settleTime = 2 * time.Minute

// end lets nothing break any more: all must heal, and all that was said must have been true.
func (c *cluster) end() {
	c.tell("nothing breaks from here on")
	c.calm, c.ending = true, true
	clear(c.cut)
	for _, m := range c.machines {
		m.disk.CrashAt(0)
		if m.proc != nil {
			m.proc.pausedUntil = 0
		}
	}
	last := &client{cluster: c, number: -2, known: map[int]Seen{}}
	c.clients.start(context.Background(), "last", last.last)
	until := c.now + settleTime
	for len(c.clients.tasks) > 0 || !c.settled() {
		if !c.step(until) {
			c.fail("it goes on when nothing breaks", "after %v: %s wait; %s", settleTime, c.clients.describe(), c.describe())
		}
	}
	for until = c.now + 3*time.Second; c.step(until); {
	}
	c.final()
}

// settled tells whether all members are up and have what the leader has.
func (c *cluster) settled() bool {
	var lead *process
	for _, m := range c.machines {
		if m.proc != nil && m.proc.node.Leading() {
			lead = m.proc
		}
	}
	if lead == nil {
		return false
	}
	at := lead.store.Applied()
	for _, peer := range at.Peers {
		m := c.machineOf(peer.RaftID)
		if m == nil {
			continue // it was let in, and its machine never heard of it
		}
		if m.proc == nil || peer.Learner || m.proc.store.Applied().Index != at.Index {
			return false
		}
	}
	return true
}

// describe tells where all members are.
func (c *cluster) describe() string {
	s := ""
	for _, m := range c.machines {
		switch {
		case m.gone:
		case m.proc == nil:
			s += fmt.Sprintf("n%d down; ", m.id)
		default:
			st := m.proc.steps.Status()
			s += fmt.Sprintf("n%d term %d leader %d commit %d applied %d pending %d; ",
				m.id, st.Term, st.Leader, st.Commit, st.Applied, m.proc.store.Status().Pending)
		}
	}
	return s
}

// final looks at what can only be said at the end.
func (c *cluster) final() {
	if about := c.hist.check(c.truth.made); about != "" {
		c.fail("calls are linearizable", "the history of %s is not: %s", about, c.hist.describe(about))
	}
	counter := c.truth.at(counterID, c.truth.newestRevision())
	if n := counter.number(); n < c.counted.least || n > c.counted.most {
		c.fail("batches are done once", "the counter is at %d; %d were acknowledged, and %d may be", n, c.counted.least, c.counted.most)
	}
	for _, m := range c.machines {
		if m.proc == nil {
			continue
		}
		if st := m.proc.store.Status(); st.Pending > 0 {
			c.fail("nothing waits for ever", "%d transactions wait at n%d", st.Pending, m.id)
		}
		if n := len(m.proc.calls.tasks); n > 0 {
			c.fail("nothing waits for ever", "%d calls wait at n%d: %s", n, m.id, m.proc.calls.describe())
		}
	}
}
