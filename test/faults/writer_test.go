package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/client"
	"holdfast/internal/errkind"
	"holdfast/test/testcluster"
)

// writer creates services through a client of all members until it is stopped, and keeps what
// was acknowledged.
type writer struct {
	client *client.Client

	mu     sync.Mutex
	all    map[string]made
	open   int           // outcomes that stayed unknown
	count  int           // of all since start
	last   time.Time     // of the last acknowledgement
	gap    time.Duration // the longest time between two
	failed error
}

func newWriter(c *testcluster.Cluster) *writer {
	return &writer{client: c.Client(), all: map[string]made{}}
}

// start begins to write, with a number of goroutines. The function that it returns ends that.
func (w *writer) start(t *testing.T, prefix string, goroutines int) (stop func()) {
	t.Helper()
	w.mu.Lock()
	w.count, w.last, w.gap = 0, time.Now(), 0
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	for g := range goroutines {
		group.Go(func() error {
			for n := 0; ctx.Err() == nil; n++ {
				w.write(ctx, fmt.Sprintf("%s-%d-%d", prefix, g, n))
			}
			return nil
		})
	}
	return sync.OnceFunc(func() {
		t.Helper()
		cancel()
		if err := errors.Join(group.Wait(), w.failed); err != nil {
			t.Error(err)
		}
	})
}

func (w *writer) write(ctx context.Context, name string) {
	// The call has a bound of its own, so that stop leaves as few outcomes open as can be.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	watch := context.AfterFunc(ctx, func() { time.AfterFunc(3*time.Second, cancel) })
	defer watch()
	got, err := create(call, w.client, name, "")
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		now := time.Now()
		w.gap = max(w.gap, now.Sub(w.last))
		w.last = now
		w.all[name] = got
		w.count++
	case errkind.Is(err, errkind.UnknownOutcome):
		w.open++
	case !errkind.Is(err, errkind.NoLeader):
		w.failed = errors.Join(w.failed, fmt.Errorf("service %s: %w", name, err))
	}
}

// wait waits until n services were acknowledged since start.
func (w *writer) wait(t *testing.T, n int) {
	t.Helper()
	testcluster.Wait(t, "acknowledged services", func(context.Context) error {
		if have := w.acknowledged(); have < n {
			return fmt.Errorf("%d of %d", have, n)
		}
		return nil
	})
}

func (w *writer) acknowledged() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

func (w *writer) unknown() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

func (w *writer) longestGap() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gap
}

func (w *writer) made() map[string]made {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.all)
}
