package manager

import (
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
