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
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"golang.org/x/sync/errgroup"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
	"holdfast/manager/state"
	"holdfast/manager/state/raft"
	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/store"
)

// network connects members of one process, and can cut one off.
type network struct {
	mu      sync.Mutex
	members map[uint64]*member
	cut     map[uint64]bool
}

// member is one node with its store.
type member struct {
	net   *network
	id    storage.Identity
	dir   string
	store *store.MemoryStore
	node  *raft.Node
	stop  func() error
}

// link is a member's transport.
type link struct {
	net  *network
	from uint64
}

func (l link) SetPeers([]holdfast.Peer) {}

func (l link) Send(messages []*pb.Message) {
	for _, m := range messages {
		l.net.mu.Lock()
		from, to := l.net.members[l.from], l.net.members[m.GetTo()]
		if l.net.cut[l.from] || l.net.cut[m.GetTo()] {
			to = nil
		}
		l.net.mu.Unlock()
		switch {
		case from == nil: // stopping
		case m.GetType() == pb.MsgSnap:
			go l.snapshot(from, to, m)
		case to != nil:
			to.node.Receive([]*pb.Message{m})
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

func (n *network) start(t testing.TB, dir string, ident storage.Identity) *member {
	t.Helper()
	m := &member{net: n, id: ident, dir: dir}
	var err error
	m.node, err = raft.Open(raft.Config{
		FS: storage.OS(), Dir: dir, Logger: testLogger(), Tick: 10 * time.Millisecond,
		Settings: func() raft.Settings { return raft.Settings{SnapshotInterval: 50, KeepEntries: 5} },
		Build: func(node *raft.Node, got storage.Identity) (state.Machine, raft.Transport, error) {
			if got != ident {
				t.Errorf("log is of %v, want %v", got, ident)
			}
			m.store, err = store.New(store.Options{
				ClusterID: ident.ClusterID, Proposer: node, Clock: time.Now, NewID: id.New, NewTxnID: txnID,
			})
			return m.store, link{n, ident.RaftID}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	n.members[ident.RaftID] = m
	n.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.node.Run(ctx) }()
	var once sync.Once
	m.stop = func() (err error) {
		once.Do(func() {
			cancel()
			err = <-done
			n.mu.Lock()
			delete(n.members, ident.RaftID)
			n.mu.Unlock()
		})
		return err
	}
	t.Cleanup(func() {
		if err := m.stop(); err != nil && !errors.Is(err, raft.ErrRemoved) {
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

func newNetwork() *network { return &network{members: map[uint64]*member{}, cut: map[uint64]bool{}} }

// cluster starts n members, the first of which was bootstrapped.
func cluster(t testing.TB, n int) (*network, []*member) {
	t.Helper()
	net := newNetwork()
	var members []*member
	for i := range n {
		ident := storage.Identity{ClusterID: "c1", NodeID: fmt.Sprint("node", i+1), RaftID: uint64(i + 1)}
		dir := filepath.Join(t.TempDir(), ident.NodeID)
		var err error
		if i == 0 {
			err = raft.Bootstrap(storage.OS(), dir, ident, "addr1", "host1")
		} else {
			err = raft.Join(storage.OS(), dir, ident)
		}
		if err != nil {
			t.Fatal(err)
		}
		m := net.start(t, dir, ident)
		if i > 0 {
			net.add(t, m)
		}
		members = append(members, m)
	}
	return net, members
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

func TestOneMember(t *testing.T) {
	net, members := cluster(t, 1)
	for i := range 200 {
		net.create(t, fmt.Sprint("s", i))
	}
	net.same(t, 200)
	if err := members[0].stop(); err != nil {
		t.Fatal(err)
	}
	net.start(t, members[0].dir, members[0].id)
	net.same(t, 200)
	net.create(t, "after")
	net.same(t, 201)
}

func TestThreeMembersLoseTheLeader(t *testing.T) {
	net, _ := cluster(t, 3)
	const writers, each = 8, 20
	var group errgroup.Group
	for w := range writers {
		group.Go(func() error {
			for i := range each {
				net.create(t, fmt.Sprintf("s%d-%d", w, i))
			}
			return nil
		})
	}
	for range 2 {
		old := net.leader(t)
		if err := old.stop(); err != nil {
			t.Fatal(err)
		}
		net.leader(t)
		net.start(t, old.dir, old.id)
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	net.same(t, writers*each)
}

func TestMemberCatchesUpBySnapshot(t *testing.T) {
	net, members := cluster(t, 3)
	var away *member
	for _, m := range members {
		if !m.node.Leading() {
			away = m
		}
	}
	if err := away.stop(); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		net.create(t, fmt.Sprint("s", i))
	}
	net.start(t, away.dir, away.id)
	net.same(t, 300)
}

func TestCutLeaderDoesNotAcknowledge(t *testing.T) {
	net, _ := cluster(t, 3)
	net.create(t, "before")
	old := net.leader(t)
	net.mu.Lock()
	net.cut[old.id.RaftID] = true
	net.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := old.store.Update(ctx, func(tx *store.Tx) error {
		_, err := store.Services.Create(tx, &api.Service{Spec: api.ServiceSpec{Annotations: api.Annotations{Name: "lost"}}})
		return err
	})
	if !errkind.Is(err, errkind.UnknownOutcome) {
		t.Errorf("write on a leader that is cut off: %v", err)
	}
	net.create(t, "after")
	net.mu.Lock()
	delete(net.cut, old.id.RaftID)
	net.mu.Unlock()
	net.create(t, "lost") // the name is free: the first one was never committed
	net.same(t, 3)
}

func TestRemovedMemberStops(t *testing.T) {
	net, members := cluster(t, 3)
	var gone *member
	for _, m := range members {
		if !m.node.Leading() {
			gone = m
		}
	}
	retry(t, func() error { return net.leader(t).node.Remove(t.Context(), gone.id.RaftID) })
	at := net.leader(t).store.Applied()
	if _, ok := at.Peer(gone.id.RaftID); ok || len(at.Removed) != 1 || at.Removed[0] != gone.id.RaftID {
		t.Errorf("members after removal: %v, removed %v", at.Peers, at.Removed)
	}
}

// testLogger shows what the nodes say if HOLDFAST_TEST_LOG is set.
func testLogger() *slog.Logger {
	if os.Getenv("HOLDFAST_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
