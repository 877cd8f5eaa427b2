package objects

import (
	"time"

	"github.com/gogo/protobuf/types"

	"holdfast/api"
)

// What holds where a spec says nothing. The values are SwarmKit's; they are filled in for
// those who ask, and never stored.
const (
	defaultStopGrace    = 10 * time.Second
	defaultRestartDelay = 5 * time.Second
	defaultMonitor      = 5 * time.Second
	defaultParallelism  = 1
)

// WithDefaults returns a service with the defaults of what its spec leaves open. The service
// itself is not changed.
func WithDefaults(s *api.Service) *api.Service {
	s = s.Copy()
	spec := &s.Spec
	if c := spec.Task.GetContainer(); c != nil && c.StopGracePeriod == nil {
		c.StopGracePeriod = types.DurationProto(defaultStopGrace)
	}
	switch r := spec.Task.Restart; {
	case r == nil:
		spec.Task.Restart = &api.RestartPolicy{
			Condition: api.RestartPolicy_ANY, Delay: types.DurationProto(defaultRestartDelay),
		}
	case r.Delay == nil:
		r.Delay = types.DurationProto(defaultRestartDelay)
	}
	if isJob(spec) { // a job has no rollout
		return s
	}
	spec.Update = rolloutWithDefaults(spec.Update)
	spec.Rollback = rolloutWithDefaults(spec.Rollback)
	return s
}

// rolloutWithDefaults gives the defaults for a config that is missing, and a monitor time for
// one that lacks it: its other zero values are choices.
func rolloutWithDefaults(u *api.UpdateConfig) *api.UpdateConfig {
	if u == nil {
		u = &api.UpdateConfig{
			Parallelism:   defaultParallelism,
			FailureAction: api.UpdateConfig_PAUSE,
			Order:         api.UpdateConfig_STOP_FIRST,
		}
	}
	if u.Monitor == nil {
		u.Monitor = types.DurationProto(defaultMonitor)
	}
	return u
}
