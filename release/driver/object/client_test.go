package object_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/errkind"
	"holdfast/manager"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
	"holdfast/release/drivertest"
)

// cluster is a manager of this process, and a client of it.
type cluster struct {
	client *client.Client
	stop   func()
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	dir := t.TempDir()
	ready := make(chan manager.Ready, 1)
	m, err := manager.Open(t.Context(), manager.Config{
		StateDir: dir, Control: filepath.Join(dir, "s"), Remote: "127.0.0.1:0", Hostname: "m1",
		ReadyTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
		Ready: func(r manager.Ready) { ready <- r },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	t.Cleanup(stop)
	c := &cluster{stop: stop}
	select {
	case r := <-ready:
		c.client, err = client.New(client.Options{
			Endpoints: []string{"unix://" + r.Control}, ConnectWait: time.Millisecond, RetryFor: time.Minute,
		})
	case <-time.After(time.Minute):
		t.Fatal("the manager does not get ready")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.client.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// The whole way: a client, gRPC, and a manager with raft and its disk.
func TestDriverOnCluster(t *testing.T) {
	drivertest.Run(t, func(t testing.TB, clock func() time.Time) drivertest.Backend {
		c := newCluster(t)
		s := object.NewClient(c.client)
		return drivertest.Backend{
			Open:    func(testing.TB) driver.Driver { return newDriver(s, clock) },
			Corrupt: func(t testing.TB, key driver.Key) { spoil(t, s, key) },
			Stop:    func(testing.TB) { c.stop() },
			Slow:    true,
		}
	})
}

func TestSweepOnCluster(t *testing.T) {
	s := object.NewClient(newCluster(t).client)
	p := planner()
	d := newDriver(s, func() time.Time { return time.Now().Add(time.Hour) })
	if _, err := d.Create(t.Context(), staged(1, 'a')); err != nil {
		t.Fatal(err)
	}
	next := staged(2, 'b')
	next.Status = driver.StatusPendingUpgrade
	plan, err := p.Create(next)
	if err != nil {
		t.Fatal(err)
	}
	for _, ops := range plan.Stages {
		if _, err := s.Write(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := d.Sweep(t.Context(), 2*time.Hour); err != nil || n != 0 {
		t.Errorf("removed %d, %v", n, err)
	}
	if n, err := d.Sweep(t.Context(), time.Minute); err != nil || n != 31 {
		t.Errorf("removed %d, %v", n, err)
	}
	if _, err := s.Write(t.Context(), plan.Last); !errkind.Is(err, errkind.NotFound) {
		t.Errorf("an upload that was swept goes on: %v", err)
	}
	if _, err := d.Get(t.Context(), drivertest.Key("web", 1)); err != nil {
		t.Error(err)
	}
}

// A config that the driver did not make is none of its business.
func TestForeignConfigs(t *testing.T) {
	s := object.NewClient(newCluster(t).client)
	if _, err := s.Write(t.Context(), []object.Op{{Do: object.Create, Object: object.Object{
		Name: "app.conf", Labels: map[string]string{"team": "shop"}, Data: []byte("x"),
	}}}); err != nil {
		t.Fatal(err)
	}
	d := newDriver(s, func() time.Time { return time.Now().Add(time.Hour) })
	for h, err := range d.Query(t.Context(), driver.Query{}) {
		t.Errorf("got %v, %v", h, err)
	}
	if n, err := d.Sweep(t.Context(), 0); err != nil || n != 0 {
		t.Errorf("removed %d, %v", n, err)
	}
	if _, err := s.Get(t.Context(), "app.conf"); err != nil {
		t.Error(err)
	}
}

func BenchmarkListCluster(b *testing.B) {
	s := object.NewClient(newCluster(b).client)
	drivertest.BenchmarkList(b, newDriver(s, time.Now))
}

func BenchmarkListConfigs(b *testing.B) {
	drivertest.BenchmarkList(b, newDriver(newInProcess(b, holdfast.Kind_KIND_CONFIG), time.Now))
}
