package raft

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"holdfast/api/holdfast"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
)

const labDir = "/raft"

// lab is a cluster that is driven step by step, over disks in memory: nothing happens that a
// test does not ask for.
type lab struct {
	t        testing.TB
	settings Settings
	members  []*labMember // that with raft ID i is at i-1
	net      []*pb.Message
	cut      map[[2]uint64]bool // one way, from and to

	truth   map[uint64]ledgerEntry // what was applied at an index, by anyone
	newest  uint64                 // index applied by anyone
	sent    int                    // snapshots
	leaders map[uint64]uint64      // by term
}

// labMember is one member; node is nil while it is down.
type labMember struct {
	lab     *lab
	id      uint64
	disk    *memfs.FS
	node    *Node
	steps   *Steps
	ledger  *ledger
	process uint64
	removed bool // it knows that it was removed
}

func newLab(t testing.TB) *lab {
	return &lab{
		t: t, settings: Settings{SnapshotInterval: 1 << 40},
		cut: map[[2]uint64]bool{}, truth: map[uint64]ledgerEntry{}, leaders: map[uint64]uint64{},
	}
}

func ident(id uint64) storage.Identity {
	return storage.Identity{ClusterID: "c", NodeID: fmt.Sprint("n", id), RaftID: id}
}

func labPeer(id uint64) holdfast.Peer {
	return holdfast.Peer{RaftID: id, NodeID: fmt.Sprint("n", id), Addr: fmt.Sprint("a", id), Hostname: fmt.Sprint("h", id)}
}

// add makes the next member's disk and starts it: the first one begins the cluster.
func (l *lab) add() *labMember {
	m := &labMember{lab: l, id: uint64(len(l.members) + 1)}
	m.disk = memfs.New(m.id)
	l.members = append(l.members, m)
	var err error
	if m.id == 1 {
		err = Bootstrap(m.disk, labDir, ident(1), "a1", "h1")
	} else {
		err = Join(m.disk, labDir, ident(m.id))
	}
	if err != nil {
		l.t.Fatal(err)
	}
	m.start()
	return m
}

// voters makes a cluster of n members that vote, with the log and the peers that they would
// have, and starts them.
func (l *lab) voters(n int, entries ...*pb.Entry) {
	var log []*pb.Entry
	for i := range n {
		call, err := newChange([]byte{byte(i)}, state.AddVoter, labPeer(uint64(i+1)))
		if err != nil {
			l.t.Fatal(err)
		}
		data, err := proto.Marshal(call.cc)
		if err != nil {
			l.t.Fatal(err)
		}
		log = append(log, &pb.Entry{Term: new(uint64(1)), Index: new(uint64(i + 1)), Type: pb.EntryConfChange.Enum(), Data: data})
	}
	commit := uint64(n)
	for _, e := range entries {
		e.Term, e.Index = new(uint64(1)), new(uint64(len(log)+1))
		log = append(log, e)
	}
	for i := range n {
		m := &labMember{lab: l, id: uint64(i + 1), disk: memfs.New(uint64(i + 1))}
		l.members = append(l.members, m)
		err := storage.Create(m.disk, labDir, ident(m.id), storage.Batch{
			HardState: &pb.HardState{Term: new(uint64(1)), Vote: new(uint64(0)), Commit: &commit}, Entries: log,
		})
		if err != nil {
			l.t.Fatal(err)
		}
		m.start()
	}
}

func (m *labMember) start() {
	m.ledger = &ledger{
		applied: func(e ledgerEntry) { m.lab.sees(m, e) },
		elect:   func(term uint64) { m.lab.elected(m, term) },
	}
	m.process++
	node, err := Open(Config{
		FS: m.disk, Dir: labDir, Logger: slog.New(slog.DiscardHandler),
		Settings: func() Settings { return m.lab.settings },
		Build: func(*Node, storage.Identity) (state.Machine, Transport, error) {
			return m.ledger, labTransport{m}, nil
		},
	})
	if err != nil {
		m.lab.t.Fatalf("member %d: %v", m.id, err)
	}
	m.node, m.steps = node, node.Steps()
	m.must(m.steps.Turn())
}

func (m *labMember) must(err error) {
	m.lab.t.Helper()
	switch {
	case errors.Is(err, ErrRemoved):
		m.removed, m.node = true, nil
	case err != nil:
		m.lab.t.Fatalf("member %d: %v", m.id, err)
	}
}

// crash is a power loss; restart begins the process after it.
func (m *labMember) crash() {
	m.node = nil
	m.disk.Crash()
}

// kill ends the process: the disk is as it was written.
func (m *labMember) kill() {
	m.node = nil
	m.disk.Restart()
}

// labTransport puts messages onto the lab's network.
type labTransport struct{ m *labMember }

func (t labTransport) SetPeers([]holdfast.Peer) {}

func (t labTransport) Process(id uint64) uint64 {
	if id > uint64(len(t.m.lab.members)) {
		return 0
	}
	return t.m.lab.members[id-1].process
}

func (t labTransport) Send(messages []*pb.Message) { t.m.lab.net = append(t.m.lab.net, messages...) }

// sees holds what a member applies against what any other did.
func (l *lab) sees(m *labMember, e ledgerEntry) {
	if old, ok := l.truth[e.Index]; ok && old != e {
		l.t.Fatalf("member %d applies %+v; another one applied %+v there", m.id, e, old)
	}
	l.truth[e.Index] = e
	l.newest = max(l.newest, e.Index)
}

func (l *lab) elected(m *labMember, term uint64) {
	if old, ok := l.leaders[term]; ok {
		l.t.Fatalf("members %d and %d lead in term %d", old, m.id, term)
	}
	l.leaders[term] = m.id
}

// deliver takes the i-th message off the network and gives it to whom it is for.
func (l *lab) deliver(i int, twice bool) {
	m := l.net[i]
	if !twice {
		l.net = slices.Delete(l.net, i, i+1)
	}
	from, to := l.members[m.GetFrom()-1], l.members[m.GetTo()-1]
	if l.cut[[2]uint64{from.id, to.id}] || to.node == nil {
		l.lose(from, m)
		return
	}
	if slices.Contains(to.ledger.at.Removed, from.id) { // as the transport does
		if from.node != nil {
			from.node.Removed()
		}
		return
	}
	if m.GetType() != pb.MsgSnap {
		to.node.Receive([]*pb.Message{proto.Clone(m).(*pb.Message)})
		return
	}
	if from.node == nil {
		return // its process died with the file half sent
	}
	file, _, err := from.node.SnapshotFile(m)
	if err == nil {
		err = errors.Join(to.node.ReceiveSnapshot(proto.Clone(m).(*pb.Message), file), file.Close())
	}
	if err == nil {
		l.sent++
	}
	from.node.ReportSnapshot(to.id, err == nil)
}

// lose is what the transport does about a message that cannot be sent.
func (l *lab) lose(from *labMember, m *pb.Message) {
	switch {
	case from.node == nil:
	case m.GetType() == pb.MsgSnap:
		from.node.ReportSnapshot(m.GetTo(), false)
	default:
		from.node.ReportUnreachable(m.GetTo())
	}
}

// settle does all that waits, until nothing does.
func (l *lab) settle() {
	l.t.Helper()
	for i := range 10_000 {
		busy := false
		for _, m := range l.members {
			busy = m.work() || busy
		}
		for len(l.net) > 0 {
			if i > 9_990 {
				l.t.Log(describe(l.net[0]))
			}
			l.deliver(0, false)
			busy = true
		}
		if !busy {
			return
		}
	}
	l.t.Fatal("it never comes to rest")
}

// work does all that waits at one member, and tells whether there was anything.
func (m *labMember) work() bool {
	if m.node == nil {
		return false
	}
	before := len(m.lab.net)
	busy := m.node.inbox.len()+m.node.calls.len() > 0
	m.must(m.steps.Turn())
	for m.node != nil {
		appends, applies, saves := m.steps.Waiting()
		if appends+applies+saves == 0 {
			break
		}
		busy = true
		m.must(m.steps.Append(appends))
		m.must(m.steps.Apply())
		m.steps.Save()
		m.must(m.steps.Turn())
	}
	return busy || len(m.lab.net) > before
}

// tick lets time pass for all, one after another, and settles.
func (l *lab) tick(n int) {
	l.t.Helper()
	for range n {
		for _, m := range l.members {
			if m.node != nil {
				m.steps.Tick()
			}
		}
		l.settle()
	}
}

// lead makes a member the leader.
func (l *lab) lead(id uint64) *labMember {
	l.t.Helper()
	m := l.members[id-1]
	for range 50 {
		if m.node.core.leading {
			l.settle()
			return m
		}
		for range 30 { // the others do not hear of a leader for that long
			for _, o := range l.members {
				if o.node != nil && (o == m || !o.node.core.raw.HasReady()) {
					o.node.core.raw.TickQuiesced() // it moves the lease only
				}
			}
		}
		m.node.core.campaign()
		l.settle()
	}
	l.t.Fatalf("member %d does not lead", id)
	return nil
}

func (l *lab) leader() *labMember {
	for _, m := range l.members {
		if m.node != nil && m.node.core.leading && m.node.core.ownTermApplied() {
			return m
		}
	}
	return nil
}

// check looks at what must hold whenever the lab is looked at.
func (l *lab) check() {
	l.t.Helper()
	for _, m := range l.members {
		if len(m.ledger.faults) > 0 {
			l.t.Fatalf("member %d: %v", m.id, m.ledger.faults)
		}
		if m.node == nil {
			continue
		}
		c := m.node.core
		if c.inRaft < 0 || c.inRaft > maxEntriesInRaft || c.appends < 0 || c.applies < 0 || len(c.reads.asked) > maxReadsInRaft {
			l.t.Fatalf("member %d: %d entries in raft, %d appends, %d applies, %d reads asked",
				m.id, c.inRaft, c.appends, c.applies, len(c.reads.asked))
		}
	}
}

// describe is a message on one line.
func describe(m *pb.Message) string {
	return fmt.Sprintf("%d→%d %v term %d at %d/%d commit %d entries %d reject %v hint %d snapshot %d", m.GetFrom(), m.GetTo(), m.GetType(),
		m.GetTerm(), m.GetIndex(), m.GetLogTerm(), m.GetCommit(), len(m.GetEntries()), m.GetReject(), m.GetRejectHint(),
		m.GetSnapshot().GetMetadata().GetIndex())
}
