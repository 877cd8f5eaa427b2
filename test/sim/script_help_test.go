package sim

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/wire"
	"holdfast/manager/state"
)

// script is a cluster that does what it is told.
type script struct {
	client
	ctx    context.Context //nolint:containedctx // of the task that runs
	writes []*scriptWrite
	told   int             // lines of the trace that were looked at
	became map[string]bool // changes of membership that were told
	shown  []string        // kinds of messages
}

// scriptWrite is a write of a script, with all tries.
type scriptWrite struct {
	attempt
	what  string    // "w1 set k1 at n2", of the last try
	waits bool      // a try is not answered
	known *answered // the outcome, if it is done and that is known
	ended bool      // its error is final, such as that the object exists
	news  []string  // answers that were not shown
}

// ask has a task of the clients done, while time passes.
func (s *script) ask(do func()) {
	done := false
	s.start(func() {
		do()
		done = true
	})
	s.until("a call is answered", func() bool { return done })
}

func (s *script) start(do func()) {
	s.clients.start(context.Background(), "script", func(ctx context.Context) {
		s.ctx = ctx
		do()
	})
}

// until lets time pass until something is so.
func (s *script) until(what string, so func() bool) {
	for limit := s.now + time.Minute; !so(); {
		if !s.step(limit) {
			s.fail(what, "not in a minute: %s", s.describe())
		}
	}
}

func (s *script) pass(d time.Duration) {
	for until := s.now + d; s.step(until); {
	}
}

// finish heals what a script broke: all must come to rest, with the outcomes that were told.
func (s *script) finish() {
	s.drops = nil
	clear(s.cut)
	for _, m := range s.machines {
		m.disk.CrashAt(0)
		if m.proc == nil {
			m.start()
		}
	}
	s.until("all calls are answered", func() bool { return len(s.clients.tasks) == 0 })
	for _, w := range s.writes {
		if w.known == nil && w.open && !w.ended {
			s.failed(w.attempt, "")
		}
	}
	s.end()
}

// newWrite makes a write that is named by its ID.
func (s *script) newWrite(t *testing.T, d *datadriven.TestData) *scriptWrite {
	op := Op{ID: fmt.Sprint("w", len(s.writes)+1), Verb: Create}
	d.ScanArgs(t, "key", &op.Key)
	var verb string
	if d.MaybeScanArgs(t, "verb", &verb) {
		op.Verb = Verb(verb)
	}
	d.MaybeScanArgs(t, "id", &op.ID)
	if op.Verb == Swap {
		op.Version = s.known[op.Key].Version
		d.MaybeScanArgs(t, "version", &op.Version)
	}
	w := &scriptWrite{attempt: attempt{
		op: op, began: s.hist.tick(), floor: s.truth.told,
		request: wire.FormatRequestID(s.seen, fmt.Sprintf("%016s", op.ID)),
	}}
	s.writes = append(s.writes, w)
	return w
}

func (s *script) named(t *testing.T, d *datadriven.TestData) *scriptWrite {
	var id string
	d.ScanArgs(t, "id", &id)
	i := slices.IndexFunc(s.writes, func(w *scriptWrite) bool { return w.op.ID == id })
	if i < 0 || s.writes[i].waits || s.writes[i].ended {
		d.Fatalf(t, "%s cannot be tried again: it was not begun, is not answered, or failed for good", id)
	}
	return s.writes[i]
}

// begin tries a write, and waits for the answer if it is not async.
func (s *script) begin(t *testing.T, d *datadriven.TestData, w *scriptWrite) string {
	at := s.memberArg(t, d, "at")
	w.what, w.waits = fmt.Sprintf("%s %s %s at n%d", w.op.ID, w.op.Verb, keyID(w.op.Key), at), true
	delete(s.truth.forbidden, w.op.ID) // it is tried again, and may be done now
	s.start(func() {
		w.last = s.hist.tick()
		a := s.askAt(s.ctx, at, methodWrite, w.op, metadata.Pairs(wire.RequestID, w.request))
		s.answered(w, a)
	})
	if d.HasArg("async") {
		return ""
	}
	s.until("a call is answered", func() bool { return !w.waits })
	return w.take()
}

// answered takes an answer: it must be the first outcome, if there was one.
func (s *script) answered(w *scriptWrite, a answered) {
	w.waits = false
	w.news = append(w.news, w.what+": "+outcomeText(a))
	switch {
	case w.known != nil && a.err == nil:
		if !a.reply.Replayed || a.reply.Revision != w.known.reply.Revision {
			s.fail("a retry gets the first outcome", "%s made revision %d, and is told %+v", w.op.ID, w.known.reply.Revision, a.reply)
		}
	case w.known != nil && !maybe(a.err) && !notDone(a.err):
		s.fail("a retry gets the first outcome", "%s made revision %d, and is told %v", w.op.ID, w.known.reply.Revision, a.err)
	case w.known != nil:
	case a.err == nil:
		w.known = &a
		s.outcome(w.attempt, a)
	case maybe(a.err):
		w.open = true
	case notDone(a.err):
		if !w.open {
			s.failed(w.attempt, a.err.Error())
		}
	default:
		w.ended = true
		s.outcome(w.attempt, a)
	}
}

// take returns what was answered since.
func (w *scriptWrite) take() string {
	out := ""
	for _, line := range w.news {
		out += line + "\n"
	}
	w.news = nil
	return out
}

func (s *script) answers() string {
	out := ""
	for _, w := range s.writes {
		out += w.take()
		if w.waits {
			out += w.what + ": not answered yet\n"
		}
	}
	return out
}

// outcomeText is an answer for people.
func outcomeText(a answered) string {
	switch {
	case a.err == nil && a.reply.Replayed:
		return fmt.Sprintf("revision %d, done before", a.reply.Revision)
	case a.err == nil && a.reply.Revision > 0:
		return fmt.Sprint("revision ", a.reply.Revision)
	case a.err == nil:
		return "done"
	case notDone(a.err):
		return "nothing was done: " + a.err.Error()
	case maybe(a.err):
		return "unknown outcome: " + strings.TrimPrefix(a.err.Error(), "unknown outcome: ")
	case errkind.Is(a.err, errkind.Refused):
		return "refused: " + a.err.Error()
	default:
		return a.err.Error()
	}
}

// news returns what happened since and matters, one line each; a change of membership only when
// the first member applies it.
func (s *script) news() string {
	noise := regexp.MustCompile(`: <nil>$|(?: at 0/0| commit 0| entries 0| reject false)\b`)
	power := regexp.MustCompile(`loses power: \d+$`)
	out := ""
	for _, line := range s.lines[s.told:] {
		_, line, _ = strings.Cut(strings.TrimSpace(line), " ") // without the time
		if !s.matters(line) {
			continue
		}
		line = power.ReplaceAllString(line, "loses power")
		if strings.Contains(line, "→") {
			line = noise.ReplaceAllString(line, "")
		}
		if _, change, ok := strings.Cut(line, " applies: "); ok {
			if s.became[change] {
				continue
			}
			s.became[change] = true
			line = change
		}
		out += line + "\n"
	}
	s.told = len(s.lines)
	return out
}

// matters tells whether a line of the trace is shown. Of messages, it is the snapshots that
// arrived, and those that were asked for.
func (s *script) matters(line string) bool {
	fields := strings.Fields(line)
	switch {
	case len(fields) < 2 || fields[0] == "client" || fields[1] == "applied":
		return false
	case strings.Contains(fields[0], "→") && fields[1] != "snapshot":
		return slices.Contains(s.shown, fields[1])
	default:
		return true
	}
}

// status has a line for every member.
func (s *script) status() string {
	out := ""
	for _, m := range s.machines {
		if m.gone {
			out += fmt.Sprintf("n%d gone\n", m.id)
			continue
		}
		if m.proc == nil {
			out += fmt.Sprintf("n%d down\n", m.id)
			continue
		}
		st, at := m.proc.steps.Status(), m.proc.store.Applied()
		role, leader, voters, learners := "follows", "nobody", "", ""
		if st.Leader != 0 {
			leader = fmt.Sprint("n", st.Leader)
		}
		for _, p := range at.Peers {
			if p.Learner {
				learners += fmt.Sprintf(" n%d", p.RaftID)
			} else {
				voters += fmt.Sprintf(" n%d", p.RaftID)
			}
		}
		if role += " " + leader; st.Leading {
			role = "leads"
		}
		if voters = "voters" + voters; len(at.Peers) == 0 {
			voters = "knows no members"
		}
		if learners != "" {
			learners = " learners" + learners
		}
		out += fmt.Sprintf("n%d %s in term %d: commit %d applied %d revision %d; %s%s\n",
			m.id, role, st.Term, st.Commit, st.Applied, at.Revision, voters, learners)
	}
	return out
}

// log has a line for every entry that a member has, and who wrote it.
func (s *script) log(t *testing.T, d *datadriven.TestData) string {
	var id uint64
	d.ScanArgs(t, "n", &id)
	m := s.machineOf(id)
	if m == nil || m.proc == nil {
		return fmt.Sprintf("n%d down\n", id)
	}
	log := m.proc.steps.Log()
	first, err := log.FirstIndex()
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	last, err := log.LastIndex()
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	d.MaybeScanArgs(t, "from", &first)
	if last < first {
		return fmt.Sprintf("nothing after %d\n", last)
	}
	entries, err := log.Entries(first, last+1, 1<<40)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	out := ""
	for _, e := range entries {
		out += fmt.Sprintf("%d term %d: %s\n", e.GetIndex(), e.GetTerm(), entryText(t, e))
	}
	return out
}

func entryText(t *testing.T, e *pb.Entry) string {
	if e.GetType() != pb.EntryNormal {
		var cc pb.ConfChange
		if err := proto.Unmarshal(e.GetData(), &cc); err != nil {
			t.Fatal(err)
		}
		change := map[pb.ConfChangeType]state.ChangeType{
			pb.ConfChangeAddNode: state.AddVoter, pb.ConfChangeAddLearnerNode: state.AddLearner,
			pb.ConfChangeRemoveNode: state.RemovePeer, pb.ConfChangeUpdateNode: state.UpdatePeer,
		}[cc.GetType()]
		return fmt.Sprintf("n%d %s", cc.GetNodeId(), became(change))
	}
	var raw holdfast.RawEntry
	if err := raw.Unmarshal(e.GetData()); err != nil {
		t.Fatal(err)
	}
	if len(raw.Transactions) == 0 {
		return "empty"
	}
	var all []string
	for _, data := range raw.Transactions {
		var txn holdfast.RawTransaction
		if err := txn.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(txn.RequestID, ".")
		all = append(all, fmt.Sprintf("%s for revision %d", strings.TrimLeft(name, "0"), txn.Revision))
	}
	return strings.Join(all, ", ")
}
