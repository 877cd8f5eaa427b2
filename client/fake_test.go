package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/codec"
	"holdfast/internal/errkind"
	"holdfast/internal/wire"
)

// fake is a number of managers in memory. One handler answers all calls.
type fake struct {
	api.UnimplementedControlServer
	api.UnimplementedHealthServer

	handle func(m *manager, c received) (any, error)
	watch  watchFunc

	mu       sync.Mutex
	managers map[string]*manager
	calls    []received
}

// manager is one of them.
type manager struct {
	name     string
	listener *bufconn.Listener
	server   *grpc.Server

	mu    sync.Mutex
	conns []net.Conn
	dead  bool
}

// received is a call as a manager got it.
type received struct {
	manager   string
	method    string
	requestID string
	freshness string
	message   string
	request   any
}

// watchFunc serves a stream of the Watch service.
type watchFunc func(*manager, holdfast.Watch_WatchServer) error

// watchServer is the Watch service of one manager.
type watchServer struct {
	holdfast.UnimplementedWatchServer
	m     *manager
	watch watchFunc
}

func (s watchServer) Watch(stream holdfast.Watch_WatchServer) error { return s.watch(s.m, stream) }

func newFake(t *testing.T, names []string, handle func(*manager, received) (any, error)) *fake {
	t.Helper()
	return startFake(t, names, &fake{handle: handle})
}

// newWatchFake returns managers that can only be watched.
func newWatchFake(t *testing.T, names []string, watch watchFunc) *fake {
	t.Helper()
	return startFake(t, names, &fake{watch: watch})
}

func startFake(t *testing.T, names []string, f *fake) *fake {
	t.Helper()
	f.managers = make(map[string]*manager)
	for _, name := range names {
		m := &manager{name: name, listener: bufconn.Listen(1 << 16)}
		m.server = grpc.NewServer(
			grpc.ForceServerCodecV2(codec.New()),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}), // as managers do
			grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
				return f.answer(ctx, m, info.FullMethod, req)
			}),
			grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
				if err := s.SendMsg(created("from " + m.name)); err != nil {
					return err
				}
				s.SetTrailer(metadata.Pairs(wire.Revision, wire.FormatRevision(1, 43)))
				return errkind.Status(errkind.New(errkind.OutOfRange, "compacted")).Err()
			}))
		api.RegisterControlServer(m.server, f)
		api.RegisterHealthServer(m.server, f)
		holdfast.RegisterObjectsServer(m.server, holdfast.UnimplementedObjectsServer{}) // answered by handle
		if f.watch != nil {
			holdfast.RegisterWatchServer(m.server, watchServer{m: m, watch: f.watch})
		}
		f.managers[name] = m
		done := make(chan error, 1)
		go func() { done <- m.server.Serve(m.listener) }()
		t.Cleanup(func() {
			m.server.Stop()
			if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
				t.Error(err)
			}
		})
	}
	return f
}

func (f *fake) answer(ctx context.Context, m *manager, method string, req any) (any, error) {
	c := received{
		manager: m.name, method: method[strings.LastIndexByte(method, '/')+1:], request: req,
		requestID: wire.Incoming(ctx, wire.RequestID),
		freshness: wire.Incoming(ctx, wire.Read),
		message:   wire.Incoming(ctx, wire.Message),
	}
	f.mu.Lock()
	f.calls = append(f.calls, c)
	f.mu.Unlock()
	if err := grpc.SetTrailer(ctx, metadata.Pairs(wire.Revision, wire.FormatRevision(1, 42))); err != nil {
		return nil, err
	}
	if c.method == "Check" {
		return &api.HealthCheckResponse{}, nil
	}
	reply, err := f.handle(m, c)
	if err != nil {
		return nil, errkind.Status(err).Err()
	}
	return reply, nil
}

// received returns the calls to a method, in order.
func (f *fake) received(method string) []received {
	f.mu.Lock()
	defer f.mu.Unlock()
	var calls []received
	for _, c := range f.calls {
		if c.method == method {
			calls = append(calls, c)
		}
	}
	return calls
}

func (f *fake) dial(ctx context.Context, name string) (net.Conn, error) {
	m := f.managers[strings.TrimPrefix(name, "unix:///")]
	if m == nil {
		return nil, errors.New("nobody there")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil, errors.New("connection refused")
	}
	conn, err := m.listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	m.conns = append(m.conns, conn)
	return conn, nil
}

// kill breaks all connections to the manager and lets it take no new ones.
func (m *manager) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	for _, c := range m.conns {
		c.Close() //nolint:errcheck,gosec // it is to break
	}
}

func (f *fake) client(t *testing.T, opts client.Options) *client.Client {
	t.Helper()
	opts.Dial = f.dial
	if opts.Endpoints == nil {
		opts.Endpoints = []string{"unix:///a", "unix:///b", "unix:///c"}
	}
	c, err := client.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func created(name string) *api.CreateServiceResponse {
	return &api.CreateServiceResponse{Service: &api.Service{ID: name}}
}
