package codec_test

import (
	"context"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/test/bufconn"

	"holdfast/api"
	"holdfast/internal/codec"
)

type control struct {
	api.UnimplementedControlServer
}

func (control) GetService(_ context.Context, r *api.GetServiceRequest) (*api.GetServiceResponse, error) {
	return &api.GetServiceResponse{Service: service(r.ServiceID)}, nil
}

// serve starts a server with our codec and returns a client of it.
func serve(t *testing.T, register func(*grpc.Server), opts ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(append(opts, grpc.ForceServerCodecV2(codec.New()))...)
	register(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.New())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// TestServer has one server speak gogo's messages and the standard ones of gRPC's services.
func TestServer(t *testing.T) {
	ctx := t.Context()
	conn := serve(t, func(s *grpc.Server) {
		api.RegisterControlServer(s, control{})
		healthpb.RegisterHealthServer(s, health.NewServer())
		reflection.RegisterV1(s)
	})

	got, err := api.NewControlClient(conn).GetService(ctx, &api.GetServiceRequest{ServiceID: "web"})
	if err != nil || got.Service.Spec.Annotations.Name != "web" {
		t.Errorf("our own service: %v, %v", got, err)
	}

	status, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil || status.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", status, err)
	}

	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
	}); err != nil {
		t.Fatal(err)
	}
	list, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list.GetListServicesResponse().GetService(), func(s *reflectionpb.ServiceResponse) bool {
		return s.GetName() == "docker.swarmkit.v1.Control"
	}) {
		t.Errorf("reflection: %v", list)
	}
}

// TestDefaultClient has a client with gRPC's own codec speak to a server with ours.
func TestDefaultClient(t *testing.T) {
	conn := serve(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, health.NewServer()) })
	_, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{},
		grpc.ForceCodecV2(encoding.GetCodecV2("proto")))
	if err != nil {
		t.Error(err)
	}
}

// TestProxy passes a call through a server that knows nothing of its messages.
func TestProxy(t *testing.T) {
	backend := serve(t, func(s *grpc.Server) { api.RegisterControlServer(s, control{}) })
	var request, reply codec.Raw
	front := serve(t, func(*grpc.Server) {}, grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		if err := s.RecvMsg(&request); err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(s)
		if err := backend.Invoke(s.Context(), method, request, &reply); err != nil {
			return err
		}
		return s.SendMsg(reply)
	}))

	got, err := api.NewControlClient(front).GetService(t.Context(), &api.GetServiceRequest{ServiceID: "web"})
	if err != nil || got.Service.Spec.Annotations.Name != "web" {
		t.Errorf("got %v, %v", got, err)
	}
	if len(request) == 0 || len(reply) == 0 {
		t.Errorf("%d bytes of request and %d of reply went through", len(request), len(reply))
	}
}
