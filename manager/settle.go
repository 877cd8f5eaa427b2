package manager

import (
	"context"
	"time"
)

// settleInterval is how often the leader looks whether the archive of releases follows the store.
const settleInterval = 15 * time.Second

// settle lets the archive of releases follow where another leader died before it did, until ctx
// ends. What fails is tried again: the archive may be away for long.
func (m *Manager) settle(ctx context.Context) error {
	if m.cfg.Releases.Driver == nil {
		return nil
	}
	ticker := time.NewTicker(settleInterval)
	defer ticker.Stop()
	said := ""
	for {
		err := m.stacks.Settle(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && err.Error() != said: // once, however long it lasts
			said = err.Error()
			m.cfg.Logger.Warn("the archive of releases does not follow; it is tried again", "err", err)
		case err == nil && said != "":
			said = ""
			m.cfg.Logger.Info("the archive of releases follows again")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}
