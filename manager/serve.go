package manager

import (
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/codec"
	"holdfast/internal/descriptors"
	"holdfast/internal/errkind"
	"holdfast/internal/wire"
	"holdfast/manager/call"
	"holdfast/manager/clusterapi"
	"holdfast/manager/controlapi"
	"holdfast/manager/objectapi"
	"holdfast/manager/stackapi"
	"holdfast/manager/state/raft/transport"
	"holdfast/manager/watchapi"
)

// Bounds of a connection. A batch of raft messages may hold an entry of a whole transaction.
const (
	maxRaftMessage    = 16 << 20
	maxReplyBytes     = 64 << 20
	streamWorkers     = 64
	maxStreams        = 1000
	connectionTimeout = 10 * time.Second
	helloTimeout      = 3 * time.Second
	digestKey         = 32
)

// gate is the Raft service before there is a member: it only says which node answers.
type gate struct {
	holdfast.UnimplementedRaftServer
	nodeID string
	server atomic.Pointer[transport.Server]
}

func newGate(nodeID string) *gate { return &gate{nodeID: nodeID} }

func (g *gate) opened() (*transport.Server, error) {
	if s := g.server.Load(); s != nil {
		return s, nil
	}
	return nil, errkind.New(errkind.NoLeader, "this manager is joining and takes no raft messages yet").WithHint("try again")
}

// Messages implements holdfast.RaftServer.
func (g *gate) Messages(stream grpc.ClientStreamingServer[holdfast.Batch, holdfast.BatchEnd]) error {
	s, err := g.opened()
	if err != nil {
		return err
	}
	return s.Messages(stream)
}

// Snapshot implements holdfast.RaftServer.
func (g *gate) Snapshot(stream grpc.ClientStreamingServer[holdfast.SnapshotChunk, holdfast.SnapshotEnd]) error {
	s, err := g.opened()
	if err != nil {
		return err
	}
	return s.Snapshot(stream)
}

// Hello implements holdfast.RaftServer.
func (g *gate) Hello(ctx context.Context, r *holdfast.HelloRequest) (*holdfast.HelloResponse, error) {
	if s := g.server.Load(); s != nil {
		return s.Hello(ctx, r)
	}
	return &holdfast.HelloResponse{NodeID: g.nodeID}, nil
}

// serve makes the two servers, one for each listener. Both serve the same; only the remote one
// is for managers too.
func (m *Manager) serve() error {
	files, err := descriptors.New()
	if err != nil {
		return err
	}
	icept := &call.Interceptor{
		Classes: classes(), Leads: m.node.Leading, Forward: m.proxy, Calls: &m.calls, Logger: m.cfg.Logger,
		Revision: func() string {
			return wire.FormatRevision(m.store.Position())
		},
	}
	m.gate.server.Store(transport.NewServer(m.transport))
	reads := call.Reader{Node: m.node, Store: m.store}
	m.stacks = stackapi.New(stackapi.Config{
		Store: m.store, Reader: reads, Files: files, Logger: m.cfg.Logger, Key: randomBytes(digestKey),
		Archive: m.cfg.Releases.Driver, Namespace: "stacks-" + m.node.Identity().ClusterID,
	})
	watches := watchapi.New(watchapi.Config{
		Store: m.store, Reader: reads,
		HasLeader: func() bool { return m.node.Leader() != 0 },
	})
	for range 2 {
		s := grpc.NewServer(serverOptions(
			grpc.ChainUnaryInterceptor(icept.Unary), grpc.ChainStreamInterceptor(icept.Stream),
		)...)
		m.register(s, files, watches)
		files.RegisterReflection(s)
		m.servers = append(m.servers, s)
	}
	holdfast.RegisterRaftServer(m.servers[1], m.gate)
	return nil
}

func serverOptions(more ...grpc.ServerOption) []grpc.ServerOption {
	return append([]grpc.ServerOption{
		grpc.ForceServerCodecV2(codec.New()),
		grpc.MaxRecvMsgSize(maxRaftMessage), grpc.MaxSendMsgSize(maxReplyBytes),
		grpc.NumStreamWorkers(streamWorkers), grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(connectionTimeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	}, more...)
}

func (m *Manager) register(s *grpc.Server, files *descriptors.Files, watches *watchapi.Server) {
	reads := call.Reader{Node: m.node, Store: m.store}
	ident := m.node.Identity()
	cluster := clusterapi.Config{
		Node: m.node, Store: m.store, ClusterID: ident.ClusterID, RaftID: ident.RaftID,
		AppliedRevision: func(raftID uint64) uint64 {
			h, _ := m.transport.Heard(raftID)
			return h.Revision
		},
		StateHash: m.hashes.of, Hello: hello, RandomID: randomUint64,
	}
	if m.cfg.Releases.Alone {
		cluster.Alone = m.cfg.Releases.alone("this one's manager keeps its releases there")
	}
	api.RegisterControlServer(s, controlapi.New(m.store, reads))
	api.RegisterRaftMembershipServer(s, clusterapi.NewMembership(cluster))
	api.RegisterHealthServer(s, healthServer{})
	holdfast.RegisterObjectsServer(s, objectapi.New(m.store, reads, files))
	holdfast.RegisterStacksServer(s, m.stacks)
	holdfast.RegisterClusterServer(s, clusterapi.New(cluster))
	holdfast.RegisterWatchServer(s, watches)
	api.RegisterWatchServer(s, watchapi.NewSwarm(watches))
	healthpb.RegisterHealthServer(s, health.NewServer())
}

// serveUntil serves a listener until ctx ends; then stop ends the server.
func (m *Manager) serveUntil(ctx context.Context, s *grpc.Server, l net.Listener) error {
	if err := s.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	<-ctx.Done() // Serve returns when the server is stopped
	return nil
}

// stopServers takes no new calls, and lets those under way finish until ctx ends.
func (m *Manager) stopServers(ctx context.Context) {
	var group sync.WaitGroup
	for _, s := range m.servers {
		group.Go(s.GracefulStop)
	}
	m.calls.Wait(ctx)
	for _, s := range m.servers {
		s.Stop() // ends the streams of other managers, and with them GracefulStop
	}
	group.Wait()
}

// dial opens a connection to another manager.
func dial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient(addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(codec.New()),
			grpc.MaxCallRecvMsgSize(maxReplyBytes), grpc.MaxCallSendMsgSize(math.MaxInt32),
		),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
	)
}

// hello asks who answers at an address.
func hello(ctx context.Context, addr string) (_ *holdfast.HelloResponse, err error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	conn, err := dial(addr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	resp, err := holdfast.NewRaftClient(conn).Hello(ctx, &holdfast.HelloRequest{})
	return resp, errkind.FromStatus(err)
}

// healthServer is SwarmKit's health service: who answers, serves.
type healthServer struct{ api.UnimplementedHealthServer }

// Check implements api.HealthServer.
func (healthServer) Check(context.Context, *api.HealthCheckRequest) (*api.HealthCheckResponse, error) {
	return &api.HealthCheckResponse{Status: api.HealthCheckResponse_SERVING}, nil
}
