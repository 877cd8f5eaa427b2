package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/cockroachdb/datadriven"
	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/internal/mutant"
	"holdfast/internal/wire"
	"holdfast/manager/state/raft"
	"holdfast/manager/state/store"
)

// TestScripts runs the scripts in testdata/scripts, each on a cluster of its own. Everything
// takes as long as it may and nothing breaks by itself, so that a script says all that happens;
// the checks of the simulator hold as ever. -rewrite writes what was seen into the scripts.
//
// Several commands can stand above one "----". They are:
//
//	members n=3 [snapshot-every=N keep=N] [entry-bytes=N]   founds a cluster of voters
//	run for=2s                       lets time pass
//	write at=n1 key=1 [verb=create|set|swap|remove] [version=N] [id=w7] [async]
//	retry id=w7 at=n2 [async]        asks again, with the same request ID
//	read at=n2 key=1 [fresh=linearizable|local|min=3]
//	calls                            what async calls were answered, and which wait
//	cut n1 [n2 …] [to=n3|to=clients] [one-way]   the network; without to, from all other members
//	drop [kind=MsgApp] [from=n1] [to=n2]  messages of raft, before they are sent
//	heal                             ends all cuts and drops
//	crash n1|all [effects=2]         power is lost, now or in the middle of that effect on its disk
//	kill n1                          the process ends, the disk is as it was written
//	start n1|all                     what is down; nothing starts by itself
//	pause n1 for=1s                  the process stands still
//	refuse n1                        raft refuses the next proposal there
//	hand-over at=n1                  leadership
//	join n=4 at=n1, leave n=2 at=n1  members; one that joins gets a machine
//	snapshot-every entries=5 keep=1  from now on
//	status                           all members
//	log n=1 [from=7]                 the entries that a member has
//
// With trace=(MsgVote,MsgApp) a command shows messages of these kinds too.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		cryptotest.SetGlobalRandom(t, 1)
		s := newScript()
		defer s.stop()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			defer s.rescue(t, d.Pos)
			out := s.command(t, d)
			for _, line := range strings.Split(d.Input, "\n") {
				next := datadriven.TestData{Pos: d.Pos}
				var err error
				if next.Cmd, next.CmdArgs, err = datadriven.ParseLine(line); err != nil {
					d.Fatalf(t, "%v", err)
				}
				if next.Cmd != "" {
					out += s.command(t, &next)
				}
			}
			return out
		})
		defer s.rescue(t, path)
		s.finish()
	})
}

// newScript makes a world in which nothing breaks, and all takes a fixed time.
func newScript() *script {
	const ms = time.Millisecond
	w := newWorld(1, 1<<20)
	w.steady = true
	c := newCluster(&w, profile{
		byHand: true, loop: ms / 10, disk: ms, apply: ms, save: ms, taskDelay: ms / 10, net: 10 * ms,
		store: store.Options{MaxPending: 20, MaxLog: 100, MaxRequests: 100, MaxEntryBytes: 1 << 20},
	}, mutant.Set{})
	c.calm = true
	return &script{client: client{cluster: c, known: map[int]Seen{}}, became: map[string]bool{}}
}

// rescue makes a check that does not hold a failed test.
func (s *script) rescue(t *testing.T, at string) {
	if p := recover(); p != nil {
		f := s.failure(p)
		f.Trace = f.Trace[max(0, len(f.Trace)-60):]
		t.Fatalf("%s: %v", at, f)
	}
}

// command carries out a command, and returns what happened and what came of it.
func (s *script) command(t *testing.T, d *datadriven.TestData) string {
	s.shown = nil
	if a, ok := d.Arg("trace"); ok {
		s.shown = a.Vals
	}
	came := s.do(t, d)
	return s.news() + came
}

func (s *script) do(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "members":
		return s.found(t, d)
	case "run":
		s.pass(duration(t, d))
	case "write":
		return s.begin(t, d, s.newWrite(t, d))
	case "retry":
		return s.begin(t, d, s.named(t, d))
	case "read":
		return s.readKey(t, d)
	case "calls":
		return s.answers()
	case "cut":
		s.cutOff(t, d)
	case "drop":
		s.drop(t, d)
	case "heal":
		s.drops = nil
		clear(s.cut)
	case "crash", "kill":
		s.bringDown(t, d)
	case "start":
		s.bringUp(t, d)
	case "pause":
		m := s.machine(t, d)
		m.proc.pausedUntil = s.now + duration(t, d)
	case "refuse":
		s.machine(t, d).proc.refuses = true
	case "hand-over":
		return s.operate(t, d, Op{Verb: Hand}, "hand-over")
	case "join", "leave":
		return s.changeMembers(t, d)
	case "snapshot-every":
		d.ScanArgs(t, "entries", &s.profile.raft.SnapshotInterval)
		d.ScanArgs(t, "keep", &s.profile.raft.KeepEntries)
	case "status":
		return s.status()
	case "log":
		return s.log(t, d)
	default:
		d.Fatalf(t, "there is no command %s", d.Cmd)
	}
	return ""
}

func (s *script) found(t *testing.T, d *datadriven.TestData) string {
	d.ScanArgs(t, "n", &s.profile.members)
	s.profile.raft = raft.Settings{}
	d.MaybeScanArgs(t, "snapshot-every", &s.profile.raft.SnapshotInterval)
	d.MaybeScanArgs(t, "keep", &s.profile.raft.KeepEntries)
	d.MaybeScanArgs(t, "entry-bytes", &s.profile.store.MaxEntryBytes)
	s.assemble()
	s.news() // how they came together is the same everywhere
	return s.status()
}

// member reads an argument such as n2, or at=n2: it is 0 for clients.
func (s *script) member(t *testing.T, d *datadriven.TestData, text string) uint64 {
	if text == "clients" {
		return 0
	}
	var id uint64
	if n, err := fmt.Sscanf(text, "n%d", &id); n != 1 || err != nil {
		d.Fatalf(t, "%s is no member", text)
	}
	return id
}

func (s *script) memberArg(t *testing.T, d *datadriven.TestData, key string) uint64 {
	var text string
	d.ScanArgs(t, key, &text)
	return s.member(t, d, text)
}

// machine is that of the first argument; its process runs.
func (s *script) machine(t *testing.T, d *datadriven.TestData) *machine {
	m := s.machineOf(s.member(t, d, d.CmdArgs[0].Key))
	if m == nil || m.proc == nil {
		d.Fatalf(t, "%s is down", d.CmdArgs[0].Key)
	}
	return m
}

func duration(t *testing.T, d *datadriven.TestData) time.Duration {
	var text string
	d.ScanArgs(t, "for", &text)
	length, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return length
}

func (s *script) cutOff(t *testing.T, d *datadriven.TestData) {
	var group, others []uint64
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 && a.Key != "one-way" {
			group = append(group, s.member(t, d, a.Key))
		}
	}
	if d.HasArg("to") {
		others = []uint64{s.memberArg(t, d, "to")}
	} else {
		for _, m := range s.machines {
			others = append(others, m.id)
		}
	}
	for _, id := range group {
		for _, o := range others {
			if !slices.Contains(group, o) {
				s.cut[link{id, o}], s.cut[link{o, id}] = true, s.cut[link{o, id}] || !d.HasArg("one-way")
			}
		}
	}
}

// drop adds to what is dropped.
func (s *script) drop(t *testing.T, d *datadriven.TestData) {
	var kind string
	var from, to uint64
	d.MaybeScanArgs(t, "kind", &kind)
	if d.HasArg("from") {
		from = s.memberArg(t, d, "from")
	}
	if d.HasArg("to") {
		to = s.memberArg(t, d, "to")
	}
	before := s.drops
	s.drops = func(sender uint64, m *pb.Message) bool {
		return before != nil && before(sender, m) || (kind == "" || kind == m.GetType().String()) &&
			(from == 0 || from == sender) && (to == 0 || to == m.GetTo())
	}
}

// bringDown ends one process or all.
func (s *script) bringDown(t *testing.T, d *datadriven.TestData) {
	down := s.live()
	if !d.HasArg("all") {
		down = []*machine{s.machine(t, d)}
	}
	effects := 0
	d.MaybeScanArgs(t, "effects", &effects)
	for _, m := range down {
		switch {
		case d.Cmd == "kill":
			s.tell("n%d is killed", m.id)
			m.kill()
		case effects > 0:
			m.disk.CrashAt(effects)
		default:
			s.tell("n%d loses power", m.id)
			m.powerLoss()
		}
	}
}

func (s *script) bringUp(t *testing.T, d *datadriven.TestData) {
	id := uint64(0)
	if !d.HasArg("all") {
		id = s.member(t, d, d.CmdArgs[0].Key)
	}
	for _, m := range s.machines {
		if id == 0 || id == m.id {
			m.start()
		}
	}
}

func (s *script) readKey(t *testing.T, d *datadriven.TestData) string {
	op := Op{ID: "read", Verb: Get}
	d.ScanArgs(t, "key", &op.Key)
	at, fresh := s.memberArg(t, d, "at"), ""
	d.MaybeScanArgs(t, "fresh", &fresh)
	f, err := wire.ParseFreshness(fresh)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	var a answered
	s.ask(func() { a = s.readAt(s.ctx, at, op, f) })
	what := fmt.Sprintf("read %s at n%d: ", keyID(op.Key), at)
	switch {
	case a.err != nil:
		return what + outcomeText(a) + "\n"
	case a.reply.Seen[0].Version == 0:
		return what + fmt.Sprintf("not there at revision %d\n", a.reply.Revision)
	default:
		return what + fmt.Sprintf("%s of revision %d, at revision %d\n", a.reply.Seen[0].Op, a.reply.Seen[0].Version, a.reply.Revision)
	}
}

// operate has an operation on the cluster done by a member.
func (s *script) operate(t *testing.T, d *datadriven.TestData, op Op, what string) string {
	at := s.memberArg(t, d, "at")
	var a answered
	s.ask(func() { a = s.askAt(s.ctx, at, methodWrite, op, nil) })
	if op.Verb == Join && a.err == nil && !slices.ContainsFunc(s.machines, func(m *machine) bool { return m.id == op.Member }) {
		s.used[op.Member] = true
		s.join(op.Member)
	}
	return fmt.Sprintf("%s at n%d: %s\n", what, at, outcomeText(a))
}

func (s *script) changeMembers(t *testing.T, d *datadriven.TestData) string {
	op := Op{Verb: Join}
	if d.Cmd == "leave" {
		op.Verb = Drop
	}
	d.ScanArgs(t, "n", &op.Member)
	return s.operate(t, d, op, fmt.Sprintf("%s n%d", d.Cmd, op.Member))
}
