package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/raft"
	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/store"
)

// Times of joining.
const (
	joinTimeout      = 30 * time.Second
	joinRetry        = 300 * time.Millisecond
	announceInterval = time.Second
)

// join asks a member to let this node in, and makes an empty log for what it is told. The
// leader calls back at this node's address, so the listener must answer already.
func (m *Manager) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	l, err := borrow(m.remote)
	if err != nil {
		return err
	}
	s := grpc.NewServer(serverOptions()...)
	holdfast.RegisterRaftServer(s, m.gate)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	resp, err := m.askToJoin(ctx, m.cfg.Join, m.cfg.Token, "")
	s.Stop()
	if serveErr := <-served; serveErr != nil && !errors.Is(serveErr, grpc.ErrServerStopped) && err == nil {
		err = serveErr
	}
	if err != nil {
		return joinError(m.cfg.Join, err)
	}
	if err := l.giveBack(); err != nil {
		return err
	}
	m.cfg.Logger.Info("joining", "cluster", resp.ClusterID, "raft", resp.RaftID)
	return raft.Join(storage.OS(), m.dir.raft(), storage.Identity{
		ClusterID: resp.ClusterID, NodeID: m.nodeID, RaftID: resp.RaftID,
	})
}

// joinError tells through whom this manager could not join, and what to look at.
func joinError(addr string, err error) error {
	e := &errkind.Error{
		Kind: errkind.Of(err), Msg: fmt.Sprintf("join cluster through %s: %v", addr, err), Hint: errkind.Hint(err), Err: err,
	}
	if e.Hint == "" {
		e.Hint = "is a manager running at " + addr + ", and is it up to date? See: ctl member ls"
	}
	return e
}

// askToJoin calls Join until it is answered for good.
func (m *Manager) askToJoin(ctx context.Context, addr, token, clusterID string) (*api.JoinResponse, error) {
	conn, err := dial(addr)
	if err != nil {
		return nil, err
	}
	resp, err := m.askOver(ctx, api.NewRaftMembershipClient(conn), &api.JoinRequest{
		Addr: m.addr, Token: token, NodeID: m.nodeID, Hostname: m.cfg.Hostname, ClusterID: clusterID,
	})
	return resp, errors.Join(err, conn.Close())
}

func (m *Manager) askOver(ctx context.Context, c api.RaftMembershipClient, r *api.JoinRequest) (*api.JoinResponse, error) {
	for {
		resp, err := c.Join(ctx, r)
		err = errkind.FromStatus(err)
		if err == nil || ctx.Err() != nil || !errkind.Is(err, errkind.NoLeader) && !errkind.Is(err, errkind.UnknownOutcome) {
			return resp, err
		}
		m.cfg.Logger.Debug("join is tried again", "err", err)
		select {
		case <-time.After(joinRetry):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// announce tells the leader this manager's address, if the membership has another one: a
// manager may come back at a new address. It ends once they agree.
func (m *Manager) announce(ctx context.Context) error {
	ident := m.node.Identity()
	for {
		if self, ok := m.store.Applied().Peer(ident.RaftID); ok && self.Addr == m.addr {
			return nil
		}
		m.announceOnce(ctx)
		select {
		case <-time.After(announceInterval):
		case <-ctx.Done():
			return nil
		}
	}
}

// announceOnce asks the members that this one knows, one after another.
func (m *Manager) announceOnce(ctx context.Context) {
	ident := m.node.Identity()
	c := store.Clusters.Get(m.store.Root(), ident.ClusterID)
	at := m.store.Applied()
	if _, member := at.Peer(ident.RaftID); c == nil || !member {
		return // it has not caught up far enough to know
	}
	for _, p := range at.Peers {
		addr := p.Addr
		if p.RaftID == ident.RaftID {
			addr = m.addr // this manager may lead
		}
		try, cancel := context.WithTimeout(ctx, helloTimeout)
		_, err := m.askToJoin(try, addr, c.RootCA.JoinTokens.Manager, ident.ClusterID)
		cancel()
		if err == nil || ctx.Err() != nil {
			return
		}
		m.cfg.Logger.Debug("address not announced", "through", addr, "err", err)
	}
}

// borrowed lets a server use a listener that goes on to live after it.
type borrowed struct{ *net.TCPListener }

func borrow(l net.Listener) (borrowed, error) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return borrowed{}, fmt.Errorf("listener is a %T", l)
	}
	return borrowed{tcp}, nil
}

// Close ends Accept and leaves the listener open.
func (b borrowed) Close() error { return b.SetDeadline(time.Unix(1, 0)) }

func (b borrowed) giveBack() error { return b.SetDeadline(time.Time{}) }
