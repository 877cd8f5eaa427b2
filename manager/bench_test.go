package manager_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"holdfast/api"
	"holdfast/internal/codec"
	"holdfast/manager"
)

// running is a manager of this process.
type running struct {
	*manager.Manager
	ready manager.Ready
}

// start runs a manager until the test ends.
func start(t testing.TB, dir string, cfg manager.Config) running {
	t.Helper()
	ready := make(chan manager.Ready, 1)
	cfg.StateDir = dir
	cfg.Control = filepath.Join(dir, "s")
	cfg.Remote = "127.0.0.1:0"
	cfg.Hostname = filepath.Base(dir)
	cfg.ReadyTimeout = time.Minute
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Ready = func(r manager.Ready) { ready <- r }
	m, err := manager.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager %s: %v", cfg.Hostname, err)
		}
	})
	select {
	case r := <-ready:
		return running{m, r}
	case err := <-done:
		done <- err
		t.Fatalf("manager %s: %v", cfg.Hostname, err)
	}
	panic("unreachable")
}

// three runs a cluster of three, the first of which leads.
func three(t testing.TB, cfg manager.Config) []running {
	t.Helper()
	base, err := os.MkdirTemp("", "hf") // a socket's path may have 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	first := start(t, filepath.Join(base, "m1"), cfg)
	resp, err := api.NewControlClient(dial(t, "unix://"+first.ready.Control)).ListClusters(t.Context(), &api.ListClustersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Join, cfg.Token = first.ready.Remote, resp.Clusters[0].RootCA.JoinTokens.Manager
	return []running{first, start(t, filepath.Join(base, "m2"), cfg), start(t, filepath.Join(base, "m3"), cfg)}
}

func dial(t testing.TB, target string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.New())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// BenchmarkCreate creates services over gRPC on the leader of three managers, with a real log
// on disk. "serial" is the same with one transaction at a time, as a store that holds its lock
// over the whole round of consensus.
func BenchmarkCreate(b *testing.B) {
	for _, pipeline := range []struct {
		name string
		max  int
	}{{"pipelined", 0}, {"serial", 1}} {
		for _, clients := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("%s/clients=%d", pipeline.name, clients), func(b *testing.B) {
				benchmarkCreate(b, pipeline.max, clients)
			})
		}
	}
}

func benchmarkCreate(b *testing.B, maxPending, clients int) {
	leader := three(b, manager.Config{MaxPending: maxPending})[0]
	var conns []*grpc.ClientConn
	for range min(clients, 8) {
		conns = append(conns, dial(b, leader.ready.Remote))
	}
	label := strings.Repeat("x", 350) // with it a service has about 512 bytes
	create := func(client, i int) error {
		_, err := api.NewControlClient(conns[client%len(conns)]).CreateService(b.Context(), &api.CreateServiceRequest{
			Spec: &api.ServiceSpec{
				Annotations: api.Annotations{
					Name: fmt.Sprintf("s%d-%d", client, i), Labels: map[string]string{"filler": label},
				},
				Task: api.TaskSpec{Runtime: &api.TaskSpec_Container{Container: &api.ContainerSpec{Image: "nginx:latest"}}},
				Mode: &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: 1}},
			},
		})
		return err
	}
	syncs, cpu := leader.Counters().Log.Syncs, processorTime(b)
	var next atomic.Int64
	var group sync.WaitGroup
	b.ResetTimer()
	for c := range clients {
		group.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := create(c, int(i)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
	b.ReportMetric(float64(leader.Counters().Log.Syncs-syncs)/float64(b.N), "fsyncs/create")
	b.ReportMetric(float64((processorTime(b)-cpu).Microseconds())/float64(b.N), "cpu-µs/create")
}

// processorTime is what this process has used of all processors.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
