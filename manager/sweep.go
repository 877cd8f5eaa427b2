package manager

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast/internal/errkind"
	"holdfast/manager/releasestore"
	"holdfast/manager/state"
	"holdfast/release/driver/object"
)

// sweepInterval is how often the leader looks for what unfinished uploads of releases left.
const sweepInterval = 10 * time.Minute

// sweepRetry is how soon it looks again if the store took no writes: leadership begins a moment
// before it does.
const sweepRetry = time.Second

// uploadTime is how long an upload may rest before it counts as one that nobody goes on with.
const uploadTime = time.Hour

// sweeper removes what programs left that died while they uploaded the body of a release.
type sweeper struct {
	drivers []*object.Driver
	logger  *slog.Logger
}

// newSweeper makes a sweeper of all that releases are kept in.
func newSweeper(s releasestore.MemoryStore, clock func() time.Time, logger *slog.Logger) *sweeper {
	planner := object.Planner{Clock: clock, Random: rand.Reader}
	return &sweeper{logger: logger, drivers: []*object.Driver{
		object.New(object.Options{Name: "object/secret", Store: releasestore.Secrets(s), Planner: planner}),
		object.New(object.Options{Name: "object/config", Store: releasestore.Configs(s), Planner: planner}),
	}}
}

// run sweeps until ctx ends. What fails is tried again.
func (s *sweeper) run(ctx context.Context) error {
	for {
		wait := sweepInterval
		switch err := s.sweepOnce(ctx); {
		case errkind.Is(err, errkind.NoLeader):
			wait = sweepRetry
		case err != nil && ctx.Err() == nil && !errkind.Is(err, errkind.UnknownOutcome):
			s.logger.Warn("what unfinished uploads left could not be removed; it is tried again", "err", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// sweepOnce writes nothing if there is nothing to remove. What fails in one place does not keep it
// from the other one.
func (s *sweeper) sweepOnce(ctx context.Context) error {
	ctx = state.WithRequest(ctx, state.Request{Caller: self, Message: "sweep what unfinished uploads left"})
	var errs []error
	for _, d := range s.drivers {
		removed, err := d.Sweep(ctx, uploadTime)
		if removed > 0 {
			s.logger.Info("removed what unfinished uploads left", "driver", d.Name(), "objects", removed)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", d.Name(), err))
		}
	}
	return errors.Join(errs...)
}
