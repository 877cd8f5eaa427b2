package descriptors_test

import (
	"context"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/codec"
	"holdfast/internal/descriptors"
)

// serve starts a server as a manager has it and returns a client of it.
func serve(t *testing.T) *grpc.ClientConn {
	t.Helper()
	files, err := descriptors.New()
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec.New()))
	files.RegisterReflection(server)
	api.RegisterControlServer(server, api.UnimplementedControlServer{})
	holdfast.RegisterObjectsServer(server, holdfast.UnimplementedObjectsServer{})
	healthpb.RegisterHealthServer(server, health.NewServer())

	listener := bufconn.Listen(1 << 16)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
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

func TestReflection(t *testing.T) {
	stream, err := reflectionv1.NewServerReflectionClient(serve(t)).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(r *reflectionv1.ServerReflectionRequest) *reflectionv1.ServerReflectionResponse {
		t.Helper()
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
		reply, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if e := reply.GetErrorResponse(); e != nil {
			t.Fatalf("%v: %v", r, e)
		}
		return reply
	}

	list := ask(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
	var services []string
	have := map[string]bool{}
	for _, s := range list.GetListServicesResponse().GetService() {
		services = append(services, s.GetName())
		describe(t, have, s.GetName(), ask(&reflectionv1.ServerReflectionRequest{
			MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: s.GetName()},
		}))
	}
	for _, want := range []string{"docker.swarmkit.v1.Control", "holdfast.v1.Objects", "grpc.health.v1.Health"} {
		if !slices.Contains(services, want) {
			t.Errorf("%s is not listed in %v", want, services)
		}
	}

	// What gogo's own registry names otherwise.
	ask(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_FileByFilename{FileByFilename: "gogoproto/gogo.proto"},
	})
	numbers := ask(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_AllExtensionNumbersOfType{
			AllExtensionNumbersOfType: "google.protobuf.FieldOptions",
		},
	})
	if len(numbers.GetAllExtensionNumbersResponse().GetExtensionNumber()) == 0 {
		t.Error("no extensions of FieldOptions")
	}
}

// describe checks that the files in a reply have the service, and that all they import is
// there: have names the files that came before on the stream, which are not sent again.
func describe(t *testing.T, have map[string]bool, service string, reply *reflectionv1.ServerReflectionResponse) {
	t.Helper()
	var want []string
	found := false
	for _, data := range reply.GetFileDescriptorResponse().GetFileDescriptorProto() {
		var file descriptorpb.FileDescriptorProto
		if err := proto.Unmarshal(data, &file); err != nil {
			t.Fatal(err)
		}
		have[file.GetName()] = true
		want = append(want, file.GetDependency()...)
		for _, s := range file.GetService() {
			found = found || file.GetPackage()+"."+s.GetName() == service
		}
	}
	if !found {
		t.Errorf("the description of %s has not got it", service)
	}
	for _, name := range want {
		if !have[name] {
			t.Errorf("the description of %s lacks %s", service, name)
		}
	}
}

//nolint:staticcheck // v1alpha is deprecated, and older clients know nothing else
func TestReflectionV1Alpha(t *testing.T) {
	stream, err := reflectionv1alpha.NewServerReflectionClient(serve(t)).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionv1alpha.ServerReflectionRequest{
		MessageRequest: &reflectionv1alpha.ServerReflectionRequest_FileContainingSymbol{
			FileContainingSymbol: "docker.swarmkit.v1.Control",
		},
	}); err != nil {
		t.Fatal(err)
	}
	reply, err := stream.Recv()
	if err != nil || len(reply.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("got %v, %v", reply, err)
	}
}
