package raft

import (
	"context"
	"sync"
)

// WaitFor blocks until ok returns true, which is asked again whenever entries are applied or
// the leader changes. It fails with ctx, and when the node stops.
func (n *Node) WaitFor(ctx context.Context, ok func() bool) error {
	for {
		changed := n.watchers.wait()
		if ok() {
			return nil
		}
		n.cfg.Wait(ctx, changed, n.stopped)
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		default:
			return errStopped()
		}
	}
}

// watchers wakes those that wait for a change.
type watchers struct {
	mu      sync.Mutex
	changed chan struct{}
}

func (w *watchers) wait() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.changed
}

func (w *watchers) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}
