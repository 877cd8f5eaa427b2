package manager

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"holdfast/internal/errkind"
	"holdfast/internal/id"
	"holdfast/internal/token"
	"holdfast/internal/wire"
	"holdfast/manager/call"
	"holdfast/manager/proxy"
	"holdfast/manager/stackapi"
	"holdfast/manager/state"
	"holdfast/manager/state/raft"
	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/transport"
	"holdfast/manager/state/store"
)

// handoverTimeout is how long a stopping leader waits for another one.
const handoverTimeout = 3 * time.Second

// Manager is one manager. Open makes it, Run runs it once.
type Manager struct {
	cfg    Config
	dir    *stateDir
	nodeID string

	control net.Listener
	remote  net.Listener
	addr    string // at which the others reach remote
	gate    *gate
	servers []*grpc.Server
	calls   call.Drain

	node      *raft.Node
	store     *store.MemoryStore
	transport *transport.Transport
	proxy     *proxy.Proxy
	stacks    *stackapi.Server
	hashes    hashes
	began     bool // this manager began a new cluster just now
}

// Open locks the state folder and listens, begins or joins a cluster if the folder is empty,
// and loads the state. If it fails, nothing is left behind.
func Open(ctx context.Context, cfg Config) (_ *Manager, err error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m := &Manager{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	if m.dir, err = openStateDir(cfg.StateDir); err != nil {
		return nil, err
	}
	if err := m.listen(); err != nil {
		return nil, err
	}
	if m.nodeID, err = m.dir.nodeID(); err != nil {
		return nil, err
	}
	m.gate = newGate(m.nodeID)
	if err := m.found(ctx); err != nil {
		return nil, err
	}
	m.node, err = raft.Open(raft.Config{
		FS: storage.OS(), Dir: m.dir.raft(), Logger: cfg.Logger, Build: m.build, Settings: m.settings,
	})
	if err != nil {
		return nil, err
	}
	m.transport.Attach(m.node)
	return m, nil
}

func (m *Manager) listen() (err error) {
	if m.control, err = listenControl(m.cfg.Control); err != nil {
		return err
	}
	if m.remote, err = net.Listen("tcp", m.cfg.Remote); err != nil {
		return errkind.Field("--listen-remote-api", "%v", err)
	}
	m.addr = m.cfg.Advertise
	if m.addr == "" {
		m.addr = m.remote.Addr().String()
	}
	return nil
}

// found makes the log, if the state folder has none: of a new cluster, or of one to join.
func (m *Manager) found(ctx context.Context) error {
	exists, err := storage.Exists(storage.OS(), m.dir.raft())
	if err != nil {
		return err
	}
	switch {
	case exists:
		return m.checkToken()
	case m.cfg.Join != "":
		return m.join(ctx)
	}
	m.began = true
	ident := storage.Identity{ClusterID: id.New(), NodeID: m.nodeID, RaftID: randomUint64()>>1 | 1}
	m.cfg.Logger.Info("beginning a new cluster", "cluster", ident.ClusterID)
	return raft.Bootstrap(storage.OS(), m.dir.raft(), ident, m.addr, m.cfg.Hostname)
}

// checkToken refuses a join token of another cluster than the one that the state folder is of.
// It comes before the log is opened, since that writes to it.
func (m *Manager) checkToken() error {
	if m.cfg.Token == "" {
		return nil
	}
	st, err := storage.Verify(storage.OS(), m.dir.raft())
	if err != nil {
		return err
	}
	if err := token.Of(st.Identity.ClusterID, m.cfg.Token); err != nil {
		return errkind.Field("--join-token", "the state folder %s is of cluster %s: %v",
			m.cfg.StateDir, st.Identity.ClusterID, err).
			WithHint("start without --join-addr and --join-token to go on in that cluster, or use another state folder")
	}
	return nil
}

// build makes the store and the transport of the member that the log is of.
func (m *Manager) build(n *raft.Node, ident storage.Identity) (state.Machine, raft.Transport, error) {
	if ident.NodeID != m.nodeID {
		return nil, nil, errkind.Field("--state-dir", "%s holds the log of node %s, and the ID of node %s",
			m.cfg.StateDir, ident.NodeID, m.nodeID).WithHint("put the files of one node together again")
	}
	var err error
	m.store, err = store.New(store.Options{
		ClusterID: ident.ClusterID, Proposer: n, Clock: m.cfg.clock, NewID: id.New, NewTxnID: transactionID,
		MaxPending: m.cfg.MaxPending,
	})
	if err != nil {
		return nil, nil, err
	}
	m.transport = transport.New(transport.Config{
		ClusterID: ident.ClusterID, NodeID: ident.NodeID, RaftID: ident.RaftID, Addr: m.addr,
		Process: randomUint64(), Dial: dial, Logger: m.cfg.Logger,
		Position:  m.position,
		IsRemoved: m.isRemoved,
	})
	return m.store, m.transport, nil
}

func (m *Manager) isRemoved(raftID uint64) bool {
	for _, gone := range m.store.Applied().Removed {
		if gone == raftID {
			return true
		}
	}
	return false
}

// settings are the cluster's, as far as they are known.
func (m *Manager) settings() raft.Settings {
	c := store.Clusters.Get(m.store.Root(), m.node.Identity().ClusterID)
	if c == nil {
		return raft.Settings{}
	}
	return raft.Settings{
		SnapshotInterval: c.Spec.Raft.SnapshotInterval,
		KeepEntries:      c.Spec.Raft.LogEntriesForSlowFollowers,
	}
}

// Run serves until ctx ends, and then hands leadership over, finishes the calls under way, and
// stops. It returns an error if the manager cannot go on: raft.ErrRemoved, a fault of the disk
// or the store, or a listener that failed.
func (m *Manager) Run(ctx context.Context) error {
	m.proxy = proxy.New(proxy.Config{
		Leader: m.leaderAddr, Dial: func(addr string) (proxy.Conn, error) { return dial(addr) }, Self: fmt.Sprint(m.node.Identity().RaftID),
		NewRequestID: func() string { return wire.FormatRequestID(m.store.Root().Revision(), id.New()) },
	})
	if err := m.serve(); err != nil {
		return errors.Join(err, m.close())
	}
	group, groupCtx := errgroup.WithContext(ctx)
	nodeCtx, stopNode := context.WithCancel(context.WithoutCancel(ctx))
	defer stopNode()
	group.Go(func() error {
		err := m.node.Run(nodeCtx)
		if err == nil && groupCtx.Err() == nil {
			err = errors.New("raft stopped by itself")
		}
		return err
	})
	group.Go(func() error { return m.serveUntil(groupCtx, m.servers[0], m.control) })
	group.Go(func() error { return m.serveUntil(groupCtx, m.servers[1], m.remote) })
	group.Go(func() error { return m.ready(groupCtx) })
	group.Go(func() error { return m.announce(groupCtx) })
	group.Go(func() error { return m.lead(groupCtx) })
	group.Go(func() error { return m.compareHashes(groupCtx) })
	group.Go(func() error {
		<-groupCtx.Done()
		m.stop()
		stopNode()
		return nil
	})
	err := group.Wait()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, m.close())
}

// stop hands leadership over and lets the calls under way finish.
func (m *Manager) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), handoverTimeout)
	defer cancel()
	if m.node.Leading() && len(m.store.Applied().Peers) > 1 {
		if err := m.node.Transfer(ctx); err != nil {
			m.cfg.Logger.Warn("leadership was not handed over", "err", err)
		}
	}
	m.stopServers(ctx)
	m.transport.Stop()
}

// close gives back what Open took.
func (m *Manager) close() error {
	var errs []error
	for _, s := range m.servers {
		s.Stop()
	}
	if m.proxy != nil {
		errs = append(errs, m.proxy.Close())
	}
	if m.transport != nil {
		m.transport.Stop()
	}
	if m.store != nil {
		errs = append(errs, m.store.Close())
	}
	for _, l := range []net.Listener{m.control, m.remote} {
		if l != nil {
			if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	if m.dir != nil {
		errs = append(errs, m.dir.close())
	}
	return errors.Join(errs...)
}

// ready waits until this manager has applied what was committed when it started.
func (m *Manager) ready(ctx context.Context) error {
	committed := m.node.Committed()
	ident := m.node.Identity()
	wait, cancel := context.WithTimeout(ctx, m.cfg.ReadyTimeout)
	defer cancel()
	err := m.node.WaitFor(wait, func() bool {
		at := m.store.Applied()
		self, member := at.Peer(ident.RaftID)
		if at.Index < committed || !member || self.Learner {
			return false
		}
		return !m.began || store.Nodes.Get(m.store.Root(), ident.NodeID) != nil
	})
	switch {
	case err == nil && m.cfg.Releases.Alone && len(m.store.Applied().Peers) > 1:
		return m.cfg.Releases.alone(fmt.Sprintf("this one has %d", len(m.store.Applied().Peers)))
	case err == nil:
		m.cfg.Ready(Ready{NodeID: ident.NodeID, Control: m.cfg.Control, Remote: m.addr})
		return nil
	case ctx.Err() != nil:
		return nil
	}
	return fmt.Errorf("not ready after %v: applied entry %d of %d: %w", m.cfg.ReadyTimeout, m.store.Applied().Index, committed, err)
}

// Counters are what a benchmark looks at.
type Counters struct {
	Log   storage.Metrics
	Store store.Status
}

// Counters returns the counters as they are now.
func (m *Manager) Counters() Counters {
	return Counters{Log: m.node.LogMetrics(), Store: m.store.Status()}
}

// Leading tells whether this manager leads, as far as it knows.
func (m *Manager) Leading() bool { return m.node.Leading() }

// leaderAddr returns the leader's address, or "".
func (m *Manager) leaderAddr() string {
	p, ok := m.store.Applied().Peer(m.node.Leader())
	if !ok {
		return ""
	}
	return p.Addr
}

func randomUint64() uint64 { return binary.BigEndian.Uint64(randomBytes(8)) }

func transactionID() []byte { return randomBytes(16) }

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}
