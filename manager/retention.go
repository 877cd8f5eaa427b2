package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/gogo/protobuf/types"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// retentionInterval is how often the leader looks at how much history there is.
const retentionInterval = time.Second

// How much history is kept where the cluster's spec does not say.
const (
	defaultHistoryRevisions = 10_000
	defaultHistoryBytes     = 64 << 20
)

// retain compacts history that is more than the cluster's spec wants kept, until ctx ends. What
// fails is tried again.
func (m *Manager) retain(ctx context.Context) error {
	ticker := time.NewTicker(retentionInterval)
	defer ticker.Stop()
	for {
		// That leadership was lost meanwhile is nothing to tell: the next leader goes on.
		if err := m.retainOnce(ctx); err != nil && ctx.Err() == nil &&
			!errkind.Is(err, errkind.NoLeader) && !errkind.Is(err, errkind.UnknownOutcome) {
			m.cfg.Logger.Warn("history could not be compacted; it is tried again", "err", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *Manager) retainOnce(ctx context.Context) error {
	c := store.Clusters.Get(m.store.Root(), m.node.Identity().ClusterID)
	if c == nil {
		return nil // the cluster is starting
	}
	keep, err := retention(&c.Spec.History)
	if err != nil {
		return err
	}
	revision := m.store.Excess(keep, m.cfg.clock())
	if revision == 0 {
		return nil
	}
	_, err = m.store.Compact(ctx, revision)
	return err
}

// retention is what a spec wants kept. Validation has seen to it that the numbers are small.
func retention(h *api.HistoryConfig) (store.Retention, error) {
	keep := store.Retention{Revisions: int(h.Revisions), Bytes: int(h.Bytes)}
	if keep.Revisions == 0 {
		keep.Revisions = defaultHistoryRevisions
	}
	if keep.Bytes == 0 {
		keep.Bytes = defaultHistoryBytes
	}
	if h.Age == nil {
		return keep, nil
	}
	age, err := types.DurationFromProto(h.Age)
	if err != nil {
		return keep, fmt.Errorf("cluster: spec.history.age: %w", err)
	}
	keep.Age = age
	return keep, nil
}
