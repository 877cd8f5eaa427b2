package object_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
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

// startManager runs a manager in this process until the test ends, and returns its socket.
func startManager(t testing.TB) string {
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
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	select {
	case r := <-ready:
		return r.Control
	case err := <-done:
		done <- err
		t.Fatalf("manager: %v", err)
	}
	panic("unreachable")
}

// wire connects a client to a socket until it is cut.
type wire struct {
	socket string

	mu    sync.Mutex
	conns []net.Conn
	isCut bool
}

func (w *wire) dial(ctx context.Context, _ string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isCut {
		return nil, errors.New("cut")
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", w.socket)
	if err == nil {
		w.conns = append(w.conns, c)
	}
	return c, err
}

func (w *wire) cut(testing.TB) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = true
	for _, c := range w.conns {
		c.Close() //nolint:errcheck,gosec // it is to break
	}
}

// connect makes a client of the manager at a socket.
func connect(t testing.TB, socket string) (*client.Client, *wire) {
	t.Helper()
	w := &wire{socket: socket}
	c, err := client.New(client.Options{
		Endpoints: []string{"unix://" + socket}, ConnectWait: time.Millisecond, RetryFor: time.Minute, Dial: w.dial,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, w
}

// newCluster makes a client of a manager of its own.
func newCluster(t testing.TB) *client.Client {
	c, _ := connect(t, startManager(t))
	return c
}

// empty removes all configs.
func empty(t testing.TB, s object.Store) {
	t.Helper()
	var ops []object.Op
	for o, err := range s.List(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, object.Op{Do: object.Remove, Object: object.Object{ID: o.ID}})
	}
	for some := range slices.Chunk(ops, 50) {
		if _, err := s.Write(t.Context(), some); err != nil {
			t.Fatal(err)
		}
	}
}

// The whole way: a client, gRPC, and a manager with raft and its disk.
func TestDriverOnCluster(t *testing.T) {
	socket := startManager(t)
	drivertest.Run(t, func(t testing.TB, clock func() time.Time) drivertest.Backend {
		c, w := connect(t, socket)
		s := object.NewClient(c)
		empty(t, s) // of the test before
		return drivertest.Backend{
			Open:    func(testing.TB) driver.Driver { return newDriver(s, clock) },
			Corrupt: func(t testing.TB, key driver.Key) { spoil(t, s, key) },
			Stop:    w.cut,
			Slow:    true,
		}
	})
}

func TestSweepOnCluster(t *testing.T) {
	s := object.NewClient(newCluster(t))
	d := newDriver(s, func() time.Time { return time.Now().Add(time.Hour) })
	if _, err := d.Create(t.Context(), staged(1, 'a')); err != nil {
		t.Fatal(err)
	}
	next := staged(2, 'b')
	next.Status = driver.StatusPendingUpgrade
	plan := begin(t, s, next)
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
	s := object.NewClient(newCluster(t))
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
	s := object.NewClient(newCluster(b))
	drivertest.BenchmarkList(b, newDriver(s, time.Now))
}

func BenchmarkListConfigs(b *testing.B) {
	drivertest.BenchmarkList(b, newDriver(newInProcess(b, holdfast.Kind_KIND_CONFIG), time.Now))
}
