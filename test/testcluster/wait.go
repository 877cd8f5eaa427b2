package testcluster

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Bound is how long what takes a moment may take on a machine that is busy with other things.
const Bound = 60 * time.Second

// pollInterval is how often Poll asks.
const pollInterval = 10 * time.Millisecond

// Poll calls try until it returns nil, or ctx ends: then it returns try's last error.
func Poll(ctx context.Context, what string, try func(ctx context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
	}
}

// Wait calls try until it returns nil. The test fails if that takes longer than Bound.
func Wait(t testing.TB, what string, try func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Bound)
	defer cancel()
	if err := Poll(ctx, what, try); err != nil {
		t.Fatal(err)
	}
}

// Context returns a context that ends with the test, or after d.
func Context(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
