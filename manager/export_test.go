package manager

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"holdfast/api"
	"holdfast/manager/call"
	"holdfast/manager/state/store"
)

// Services returns the servers of a manager that runs.
func (m *Manager) Services() []*grpc.Server { return m.servers }

// Classified returns the methods that have a class.
func Classified() map[string]bool {
	all := map[string]bool{}
	for method, c := range classes() {
		all[method] = c != call.Denied
	}
	return all
}

// Retention is what a spec wants kept.
func Retention(h *api.HistoryConfig) (store.Retention, error) { return retention(h) }

// WithClock returns a configuration of a manager with another clock.
func WithClock(c Config, clock func() time.Time) Config {
	c.clock = clock
	return c
}

// Sweep is what the leader does about unfinished uploads, until ctx ends.
func Sweep(ctx context.Context, s *store.MemoryStore, logger *slog.Logger) error {
	return newSweeper(s, time.Now, logger).run(ctx)
}

// SweepOnce is one look of Sweep.
func SweepOnce(ctx context.Context, s *store.MemoryStore, logger *slog.Logger) error {
	return newSweeper(s, time.Now, logger).sweepOnce(ctx)
}
