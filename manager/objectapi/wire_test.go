package objectapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"holdfast/api/holdfast"
	"holdfast/internal/codec"
)

// dial serves a fixture and returns a client of it, and how each stream ended.
func dial(t *testing.T, f *fixture) (holdfast.ObjectsClient, <-chan error) {
	t.Helper()
	ended := make(chan error, 10)
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec.New()), grpc.StreamInterceptor(
		func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			err := handle(srv, stream)
			ended <- err
			return err
		}))
	holdfast.RegisterObjectsServer(server, f.Server)
	listener := bufconn.Listen(1 << 16)
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
	return holdfast.NewObjectsClient(conn), ended
}

// Over the wire a Scan comes whole, and ends for the server when the client goes.
func TestScanOverTheWire(t *testing.T) {
	f := newFixture(t)
	var operations []*holdfast.Operation
	for i := range 400 {
		operations = append(operations, create(service(fmt.Sprint("s", i), "pad="+strings.Repeat("x", 900))))
	}
	f.txn(operations...)
	client, ended := dial(t, f)
	r := &holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, Limit: 1, Sort: holdfast.Sort_SORT_NAME}
	stream, err := client.Scan(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen += len(m.Objects)
	}
	if err := <-ended; err != nil || seen != 400 {
		t.Errorf("%d objects, %v", seen, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if stream, err = client.Scan(ctx, r); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil { // more does not fit into the connection's window
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the scan went on to its end")
	}
}
