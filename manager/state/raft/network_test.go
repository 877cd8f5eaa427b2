package raft_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
	"holdfast/manager/state"
	"holdfast/manager/state/raft"
	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
	"holdfast/manager/state/store"
)

const raftDir = "/raft"

// network connects members of one process, and can cut one off.
type network struct {
	mu      sync.Mutex
	members map[uint64]*member
	cut     map[uint64]bool

	machine func(*store.MemoryStore) state.Machine // what raft is given for a store
	faulty  bool                                   // members end with errors
}

// member is one node with its store.
type member struct {
	net   *network
	id    storage.Identity
	disk  *memfs.FS
	store *store.MemoryStore
	node  *raft.Node
	stop  func() error
	done  chan struct{} // closed when Run has ended
	err   error         // of Run
}

// link is a member's transport.
type link struct {
	net  *network
	from uint64
}

func (l link) SetPeers([]holdfast.Peer) {}

func (l link) Process(uint64) uint64 { return 0 }

func (l link) Send(messages []*pb.Message) {
	for _, m := range messages {
		l.net.mu.Lock()
		from, to := l.net.members[l.from], l.net.members[m.GetTo()]
		if l.net.cut[l.from] || l.net.cut[m.GetTo()] {
			to = nil
		}
		l.net.mu.Unlock()
		if to != nil && from != nil && slices.Contains(to.store.Applied().Removed, l.from) {
			from.node.Removed()
			continue
		}
		switch {
		case from == nil: // stopping
		case m.GetType() == pb.MsgSnap:
			go l.snapshot(from, to, m)
		case to != nil:
			to.node.Receive([]*pb.Message{proto.Clone(m).(*pb.Message)})
		}
	}
}

func (l link) snapshot(from, to *member, m *pb.Message) {
	err := errors.New("peer is away")
	if to != nil {
		var file io.ReadCloser
		if file, _, err = from.node.SnapshotFile(m); err == nil {
			err = errors.Join(to.node.ReceiveSnapshot(m, file), file.Close())
		}
	}
	from.node.ReportSnapshot(m.GetTo(), err == nil)
}

// start opens a member on its disk, and runs it until the test ends, or stop.
func (n *network) start(t testing.TB, disk *memfs.FS, ident storage.Identity) *member {
	t.Helper()
	m := &member{net: n, id: ident, disk: disk}
	var err error
	m.node, err = raft.Open(raft.Config{
		FS: disk, Dir: raftDir, Logger: testLogger(),
		Settings: func() raft.Settings { return raft.Settings{SnapshotInterval: 50, KeepEntries: 5} },
		Build: func(node *raft.Node, got storage.Identity) (state.Machine, raft.Transport, error) {
			if got != ident {
				t.Errorf("log is of %v, want %v", got, ident)
			}
			m.store, err = store.New(store.Options{
				ClusterID: ident.ClusterID, Proposer: node, Clock: time.Now, NewID: id.New, NewTxnID: txnID,
			})
			return n.machine(m.store), link{n, ident.RaftID}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	n.members[ident.RaftID] = m
	n.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	m.done = make(chan struct{})
	go func() {
		defer close(m.done)
		m.err = m.node.Run(ctx)
		n.mu.Lock()
		if n.members[ident.RaftID] == m {
			delete(n.members, ident.RaftID)
		}
		n.mu.Unlock()
		if err := m.store.Close(); err != nil {
			t.Error(err)
		}
	}()
	m.stop = func() error {
		cancel()
		<-m.done
		return m.err
	}
	t.Cleanup(func() {
		if err := m.stop(); err != nil && !errors.Is(err, raft.ErrRemoved) && !n.faulty {
			t.Errorf("member %d: %v", ident.RaftID, err)
		}
	})
	return m
}

func txnID() []byte {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		panic(err)
	}
	return b
}

func newNetwork() *network {
	return &network{
		members: map[uint64]*member{}, cut: map[uint64]bool{},
		machine: func(s *store.MemoryStore) state.Machine { return s },
	}
}

// cluster starts n members, the first of which was bootstrapped.
func cluster(t testing.TB, n int) (*network, []*member) {
	t.Helper()
	net := newNetwork()
	var members []*member
	for i := range n {
		m := net.fresh(t, uint64(i+1))
		if i > 0 {
			net.add(t, m)
		}
		members = append(members, m)
	}
	return net, members
}

// fresh starts a member with a new log. It is to be added yet, unless it is the first.
func (n *network) fresh(t testing.TB, raftID uint64) *member {
	t.Helper()
	ident := storage.Identity{ClusterID: "c1", NodeID: fmt.Sprint("node", raftID), RaftID: raftID}
	disk := memfs.New(raftID)
	var err error
	if raftID == 1 {
		err = raft.Bootstrap(disk, raftDir, ident, "addr1", "host1")
	} else {
		err = raft.Join(disk, raftDir, ident)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n.start(t, disk, ident)
}

func (n *network) add(t testing.TB, m *member) {
	t.Helper()
	peer := holdfast.Peer{RaftID: m.id.RaftID, NodeID: m.id.NodeID, Addr: fmt.Sprint("addr", m.id.RaftID)}
	retry(t, func() error { return n.leader(t).node.Change(t.Context(), state.AddLearner, peer) })
	if err := m.node.WaitFor(t.Context(), func() bool {
		p, ok := m.store.Applied().Peer(m.id.RaftID)
		return ok && !p.Learner
	}); err != nil {
		t.Fatal(err)
	}
}

// leader waits for the member that leads and takes writes.
func (n *network) leader(t testing.TB) *member {
	t.Helper()
	for {
		n.mu.Lock()
		for _, m := range n.members {
			if m.node.Leading() && !n.cut[m.id.RaftID] {
				n.mu.Unlock()
				return m
			}
		}
		n.mu.Unlock()
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("no leader")
		}
	}
}

func retry(t testing.TB, fn func() error) {
	t.Helper()
	for {
		err := fn()
		if err == nil {
			return
		}
		if !errkind.Is(err, errkind.NoLeader) && !errkind.Is(err, errkind.UnknownOutcome) {
			t.Fatal(err)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(err)
		}
	}
}

func (n *network) away(m *member, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[m.id.RaftID] = cut
}

func follower(members []*member) *member {
	return members[slices.IndexFunc(members, func(m *member) bool { return !m.node.Leading() })]
}

func (n *network) create(t testing.TB, name string) store.Result {
	t.Helper()
	ctx := state.WithRequest(t.Context(), state.Request{ID: "0." + id.New()})
	var res store.Result
	retry(t, func() (err error) {
		res, err = n.leader(t).store.Update(ctx, func(tx *store.Tx) error {
			_, err := store.Services.Create(tx, &api.Service{
				Spec: api.ServiceSpec{Annotations: api.Annotations{Name: name}},
			})
			return err
		})
		return err
	})
	return res
}

// same waits until every member has applied what the leader has, and compares the state.
func (n *network) same(t testing.TB, want int) {
	t.Helper()
	retry(t, func() error { return n.leader(t).node.ReadIndex(t.Context()) })
	lead := n.leader(t).store.Applied()
	n.mu.Lock()
	members := slices.Collect(maps.Values(n.members))
	n.mu.Unlock()
	for _, m := range members {
		if err := m.node.WaitFor(t.Context(), func() bool { return m.store.Applied().Revision >= lead.Revision }); err != nil {
			t.Fatal(err)
		}
		if got := m.store.Applied(); got.Revision != lead.Revision || string(got.Hash) != string(lead.Hash) {
			t.Errorf("member %d: revision %d hash %x, leader has %d %x", m.id.RaftID, got.Revision, got.Hash, lead.Revision, lead.Hash)
		}
		all, err := store.Services.FindAll(m.store.Root(), store.All())
		if err != nil || len(all) != want {
			t.Errorf("member %d: %d services, %v; want %d", m.id.RaftID, len(all), err, want)
		}
	}
}

// testLogger shows what the nodes say if HOLDFAST_TEST_LOG is set.
func testLogger() *slog.Logger {
	if os.Getenv("HOLDFAST_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
