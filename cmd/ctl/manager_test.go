package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/codec"
	"holdfast/internal/descriptors"
	"holdfast/internal/errkind"
	"holdfast/internal/wire"
	"holdfast/manager/controlapi"
	"holdfast/manager/objectapi"
	"holdfast/manager/stackapi"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
	"holdfast/manager/watchapi"
)

// TestManagerScripts runs the scripts of testdata/manager against a manager's real services,
// over a store that commits by itself.
func TestManagerScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "manager"),
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			socket := filepath.Join(e.WorkDir, "m.sock")
			stop, err := serve(storetest.New(t), socket)
			if err != nil {
				return err
			}
			e.Defer(stop)
			e.Setenv("CTL_SOCKET", "unix://"+socket)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"ctl": cmdCtl, "exits": exits},
	})
}

// committed gives services what is committed to read.
type committed struct{ *store.MemoryStore }

func (c committed) Read(ctx context.Context) (store.ReadTx, error) {
	f, err := wire.ParseFreshness(wire.Incoming(ctx, wire.Read))
	if err == nil && f.Mode == wire.At {
		return c.At(f.Revision)
	}
	return c.Root(), err
}

func (c committed) Newest(context.Context) (store.ReadTx, error) { return c.Root(), nil }

// serve serves the store on a unix socket until stop is called.
func serve(s *store.MemoryStore, socket string) (stop func(), err error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	files, err := descriptors.New()
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec.New()), grpc.UnaryInterceptor(
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			ctx = state.WithRequest(ctx, state.Request{
				ID: wire.Incoming(ctx, wire.RequestID), Caller: "test",
				Message: wire.UnescapeText(wire.Incoming(ctx, wire.Message)),
			})
			reply, err := h(ctx, req)
			trailer := metadata.Pairs(wire.Revision, wire.FormatRevision(0, s.Status().Revision))
			if trailerErr := grpc.SetTrailer(ctx, trailer); trailerErr != nil {
				return nil, trailerErr
			}
			if err != nil {
				return nil, errkind.Status(err).Err()
			}
			return reply, nil
		}), grpc.StreamInterceptor(
		func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			if err := h(srv, stream); err != nil {
				return errkind.Status(err).Err()
			}
			return nil
		}))
	api.RegisterControlServer(server, controlapi.New(s, committed{s}))
	holdfast.RegisterObjectsServer(server, objectapi.New(s, committed{s}, files))
	holdfast.RegisterStacksServer(server, stackapi.New(stackapi.Config{Store: s, Reader: committed{s}, Files: files}))
	holdfast.RegisterWatchServer(server, watchapi.New(watchapi.Config{
		Store: s, Reader: committed{s}, HasLeader: func() bool { return true },
	}))
	var wg sync.WaitGroup
	wg.Go(func() { server.Serve(l) }) //nolint:errcheck // it ends with Stop
	return func() { server.Stop(); wg.Wait() }, nil
}
