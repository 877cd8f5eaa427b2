package descriptors

import (
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
)

// RegisterReflection adds gRPC's reflection service to a server, in its present and its older
// version, so that tools can list the server's services and call them. The services are read
// when a client asks, so those registered later are seen.
func (f *Files) RegisterReflection(s reflection.GRPCServer) {
	opts := reflection.ServerOptions{
		Services:           s,
		DescriptorResolver: f,
		ExtensionResolver:  f,
	}
	reflectionv1.RegisterServerReflectionServer(s, reflection.NewServerV1(opts))
	reflectionv1alpha.RegisterServerReflectionServer(s, reflection.NewServer(opts))
}
