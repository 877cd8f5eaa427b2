package manager

import (
	"context"
	"time"
)

// settleInterval is how often the leader looks whether the archive of releases follows the store,
// and settleRetry how soon it looks again if it could not: leadership begins a moment before the
// store can be read.
const (
	settleInterval = 15 * time.Second
	settleRetry    = time.Second
)

// settle lets the archive of releases follow where another leader died before it did, until ctx
// ends. What fails is tried again: the archive may be away for long. That is said once.
func (m *Manager) settle(ctx context.Context) error {
	if m.cfg.Releases.Driver == nil {
		return nil
	}
	failed, said := "", ""
	for {
		wait := settleInterval
		switch err := m.stacks.Settle(ctx); {
		case err == nil:
			if said != "" {
				m.cfg.Logger.Info("the archive of releases follows again")
			}
			failed, said = "", ""
		case err.Error() != failed:
			failed, wait = err.Error(), settleRetry
		case failed != said && ctx.Err() == nil:
			said = failed
			m.cfg.Logger.Warn("the archive of releases does not follow; it is tried again", "err", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}
