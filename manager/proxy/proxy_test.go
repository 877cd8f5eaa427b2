package proxy_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"holdfast/api"
	"holdfast/internal/codec"
	"holdfast/internal/errkind"
	"holdfast/internal/wire"
	"holdfast/manager/proxy"
)

// leader answers as the test tells it to, and notes what came.
type leader struct {
	api.UnimplementedControlServer
	err  error
	got  *api.CreateServiceRequest
	meta metadata.MD
}

func (l *leader) CreateService(ctx context.Context, r *api.CreateServiceRequest) (*api.CreateServiceResponse, error) {
	l.got = r
	l.meta, _ = metadata.FromIncomingContext(ctx)
	if err := grpc.SetTrailer(ctx, metadata.Pairs(wire.Revision, "1/9")); err != nil {
		return nil, err
	}
	if l.err != nil {
		return nil, l.err
	}
	return &api.CreateServiceResponse{Service: &api.Service{ID: "made"}}, nil
}

// serve runs a server and returns how to dial it.
func serve(t *testing.T, register func(*grpc.Server), o ...grpc.ServerOption) func(string) (proxy.Conn, error) {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	s := grpc.NewServer(append(o, grpc.ForceServerCodecV2(codec.New()))...)
	register(s)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func(string) (proxy.Conn, error) {
		return grpc.NewClient("passthrough:///leader",
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.New())))
	}
}

// follower is a manager that passes every call on to l, and a client of it.
func follower(t *testing.T, l *leader, addr string) api.ControlClient {
	t.Helper()
	p := proxy.New(proxy.Config{
		Leader: func() string { return addr }, Self: "7", NewRequestID: func() string { return "1.made-by-the-follower" },
		Dial: serve(t, func(s *grpc.Server) { api.RegisterControlServer(s, l) }),
	})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	pass := func(ctx context.Context, r any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
		reply, err := p.Forward(ctx, info.FullMethod, r)
		if err != nil {
			return nil, errkind.Status(err).Err()
		}
		return reply, nil
	}
	conn, err := serve(t, func(s *grpc.Server) { api.RegisterControlServer(s, api.UnimplementedControlServer{}) },
		grpc.UnaryInterceptor(pass))("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return api.NewControlClient(conn)
}

func request() *api.CreateServiceRequest {
	return &api.CreateServiceRequest{Spec: &api.ServiceSpec{Annotations: api.Annotations{Name: "web"}}}
}

func TestCallGoesThroughUnchanged(t *testing.T) {
	l := &leader{}
	c := follower(t, l, "leader")
	ctx := metadata.AppendToOutgoingContext(t.Context(),
		wire.RequestID, "3.of-the-client-itself", wire.Message, "why", "other", "x")
	var trailer metadata.MD
	resp, err := c.CreateService(ctx, request(), grpc.Trailer(&trailer))
	if err != nil || resp.Service.GetID() != "made" || !l.got.Equal(request()) {
		t.Errorf("got %v, %v; the leader got %v", resp, err, l.got)
	}
	for key, want := range map[string]string{
		wire.RequestID: "3.of-the-client-itself", wire.Message: "why", wire.Forwarded: "7", "other": "",
	} {
		if got := strings.Join(l.meta.Get(key), " "); got != want {
			t.Errorf("%s: the leader got %q, want %q", key, got, want)
		}
	}
	if got := trailer.Get(wire.Revision); len(got) != 1 || got[0] != "1/9" {
		t.Errorf("revision: %v", got)
	}
	if _, err := c.CreateService(t.Context(), request()); err != nil || l.meta.Get(wire.RequestID)[0] != "1.made-by-the-follower" {
		t.Errorf("a call without a request ID: %v, the leader got %v", err, l.meta)
	}
}

func TestWhatALeaderThatFailsMeans(t *testing.T) {
	refused := (&errkind.Error{Kind: errkind.Exists, Msg: "taken", Hint: "choose another"}).On("service", "web")
	for name, c := range map[string]struct {
		err  error
		addr string
		meta []string
		want errkind.Kind
	}{
		"its own error":    {errkind.Status(refused).Err(), "leader", nil, errkind.Exists},
		"broke off":        {status.Error(codes.Unavailable, "connection reset"), "leader", nil, errkind.UnknownOutcome},
		"is not known":     {nil, "", nil, errkind.NoLeader},
		"was passed to us": {nil, "leader", []string{wire.Forwarded, "8"}, errkind.NoLeader},
	} {
		t.Run(name, func(t *testing.T) {
			l := &leader{err: c.err}
			_, err := follower(t, l, c.addr).CreateService(metadata.AppendToOutgoingContext(t.Context(), c.meta...), request())
			if err = errkind.FromStatus(err); !errkind.Is(err, c.want) {
				t.Errorf("got %v of kind %v, want kind %v", err, errkind.Of(err), c.want)
			}
			if c.want == errkind.NoLeader && l.got != nil {
				t.Error("the leader got the call all the same")
			}
			if c.want == errkind.Exists && err.Error() != refused.Error() {
				t.Errorf("the leader said %q, and the client got %q", refused, err)
			}
		})
	}
}
