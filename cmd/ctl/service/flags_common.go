package service

import (
	"fmt"

	"github.com/gogo/protobuf/types"

	"holdfast/api"
	"holdfast/cmd/ctl/internal/values"
	"holdfast/internal/errkind"
)

// common adds the flags that create and update have in common.
func (e *edits) common() {
	e.container()
	e.resources()
	e.health()
	e.restart()
	e.rollout("update", func(s *api.ServiceSpec) **api.UpdateConfig { return &s.Update })
	e.rollout("rollback", func(s *api.ServiceSpec) **api.UpdateConfig { return &s.Rollback })
	e.uint("replicas", "number of tasks", setReplicas)
	e.uint("max-concurrent", "number of tasks of a replicated job that run at a time", setMaxConcurrent)
	e.choice("endpoint-mode", "how the service is reached", []string{"vip", "dnsrr"}, func(s *api.ServiceSpec, n int) {
		ensure(&s.Endpoint).Mode = api.EndpointSpec_ResolutionMode(n)
	})
}

func (e *edits) container() {
	texts := []struct {
		name, short, usage string
		field              func(*api.ContainerSpec) *string
	}{
		{"hostname", "", "hostname of the container", func(c *api.ContainerSpec) *string { return &c.Hostname }},
		{"user", "u", "user, and group, as `USER[:GROUP]`", func(c *api.ContainerSpec) *string { return &c.User }},
		{"workdir", "w", "folder to start in", func(c *api.ContainerSpec) *string { return &c.Dir }},
		{"stop-signal", "", "signal that stops the container", func(c *api.ContainerSpec) *string { return &c.StopSignal }},
	}
	for _, t := range texts {
		e.text(t.name, t.short, t.usage, func(s *api.ServiceSpec, v string) error {
			*t.field(container(s)) = v
			return nil
		})
	}
	e.duration("stop-grace-period", "time to stop in before the container is killed",
		func(s *api.ServiceSpec, d *types.Duration) { container(s).StopGracePeriod = d })
}

func (e *edits) resources() {
	limits := func(s *api.ServiceSpec) *api.Resources { return ensure(&ensure(&s.Task.Resources).Limits) }
	reserved := func(s *api.ServiceSpec) *api.Resources { return ensure(&ensure(&s.Task.Resources).Reservations) }
	for _, r := range []struct {
		prefix, usage string
		of            func(*api.ServiceSpec) *api.Resources
	}{
		{"limit", "most that a task may use", limits},
		{"reserve", "what is kept free for a task", reserved},
	} {
		e.text(r.prefix+"-cpu", "", "processors, "+r.usage+", such as 0.5", func(s *api.ServiceSpec, v string) (err error) {
			r.of(s).NanoCPUs, err = values.ParseCPUs(v)
			return err
		})
		e.text(r.prefix+"-memory", "", "memory, "+r.usage+", such as 512m", func(s *api.ServiceSpec, v string) (err error) {
			r.of(s).MemoryBytes, err = values.ParseBytes(v)
			return err
		})
	}
	pids := e.fs.Int64("limit-pids", 0, "processes, most that a task may have; 0 for no limit")
	e.add("limit-pids", func(s *api.ServiceSpec) error {
		if *pids < 0 {
			return fmt.Errorf("%d is negative", *pids)
		}
		container(s).PidsLimit = *pids
		return nil
	})
}

func (e *edits) health() {
	config := func(s *api.ServiceSpec) *api.HealthConfig {
		h := ensure(&container(s).Healthcheck)
		if len(h.Test) > 0 && h.Test[0] == "NONE" {
			h.Test = nil
		}
		return h
	}
	e.text("health-cmd", "", "command that tells whether the container is healthy", func(s *api.ServiceSpec, v string) error {
		config(s).Test = []string{"CMD-SHELL", v}
		return nil
	})
	for _, d := range []struct {
		name, usage string
		field       func(*api.HealthConfig) **types.Duration
	}{
		{"health-interval", "time between two checks", func(h *api.HealthConfig) **types.Duration { return &h.Interval }},
		{"health-timeout", "time that a check may take", func(h *api.HealthConfig) **types.Duration { return &h.Timeout }},
		{"health-start-period", "time in which failures do not count", func(h *api.HealthConfig) **types.Duration { return &h.StartPeriod }},
		{"health-start-interval", "time between two checks during the start period", func(h *api.HealthConfig) **types.Duration { return &h.StartInterval }},
	} {
		e.duration(d.name, d.usage, func(s *api.ServiceSpec, v *types.Duration) { *d.field(config(s)) = v })
	}
	retries := e.fs.Int32("health-retries", 0, "failed checks in a row that make it unhealthy")
	e.add("health-retries", func(s *api.ServiceSpec) error {
		config(s).Retries = *retries
		return nil
	})
	none := e.fs.Bool("no-healthcheck", false, "do not check, whatever the image says")
	e.add("no-healthcheck", func(s *api.ServiceSpec) error {
		for _, name := range []string{"cmd", "interval", "timeout", "start-period", "start-interval", "retries"} {
			if *none && e.fs.Changed("health-"+name) {
				return fmt.Errorf("excludes --health-%s", name)
			}
		}
		if *none {
			container(s).Healthcheck = &api.HealthConfig{Test: []string{"NONE"}}
		}
		return nil
	})
}

// Where a part of a spec is set and the rest is not, the rest gets the cluster's defaults and
// not zero, which says something else.
func (e *edits) restart() {
	const defaultDelay = 5
	policy := func(s *api.ServiceSpec) *api.RestartPolicy {
		if s.Task.Restart == nil {
			s.Task.Restart = &api.RestartPolicy{
				Condition: api.RestartPolicy_ANY, Delay: &types.Duration{Seconds: defaultDelay},
			}
		}
		return s.Task.Restart
	}
	e.choice("restart-condition", "when a task is started again", []string{"none", "on-failure", "any"},
		func(s *api.ServiceSpec, n int) { policy(s).Condition = api.RestartPolicy_RestartCondition(n) })
	e.duration("restart-delay", "time before a task is started again",
		func(s *api.ServiceSpec, d *types.Duration) { policy(s).Delay = d })
	e.duration("restart-window", "time over which restarts are counted",
		func(s *api.ServiceSpec, d *types.Duration) { policy(s).Window = d })
	e.uint("restart-max-attempts", "restarts before giving up; 0 for no limit", func(s *api.ServiceSpec, n uint64) error {
		policy(s).MaxAttempts = n
		return nil
	})
}

func (e *edits) rollout(prefix string, field func(*api.ServiceSpec) **api.UpdateConfig) {
	const defaultMonitor = 5
	config := func(s *api.ServiceSpec) *api.UpdateConfig {
		p := field(s)
		if *p == nil {
			*p = &api.UpdateConfig{Parallelism: 1, Monitor: &types.Duration{Seconds: defaultMonitor}}
		}
		return *p
	}
	what := " (" + prefix + ")"
	e.uint(prefix+"-parallelism", "tasks changed at a time; 0 for all at once"+what, func(s *api.ServiceSpec, n uint64) error {
		config(s).Parallelism = n
		return nil
	})
	e.duration(prefix+"-delay", "time between two tasks"+what,
		func(s *api.ServiceSpec, d *types.Duration) { config(s).Delay = d })
	e.duration(prefix+"-monitor", "time that a changed task is watched for"+what,
		func(s *api.ServiceSpec, d *types.Duration) { config(s).Monitor = d })
	actions := []string{"pause", "continue", "rollback"}
	if prefix == "rollback" {
		actions = actions[:2]
	}
	e.choice(prefix+"-failure-action", "what follows a failure"+what, actions,
		func(s *api.ServiceSpec, n int) { config(s).FailureAction = api.UpdateConfig_FailureAction(n) })
	e.choice(prefix+"-order", "which of the two tasks goes first"+what, []string{"stop-first", "start-first"},
		func(s *api.ServiceSpec, n int) { config(s).Order = api.UpdateConfig_UpdateOrder(n) })
	ratio := e.fs.Float32(prefix+"-max-failure-ratio", 0, "part of the tasks that may fail"+what)
	e.add(prefix+"-max-failure-ratio", func(s *api.ServiceSpec) error {
		if *ratio < 0 || *ratio > 1 {
			return fmt.Errorf("%v is not between 0 and 1", *ratio)
		}
		config(s).MaxFailureRatio = *ratio
		return nil
	})
}

func setReplicas(s *api.ServiceSpec, n uint64) error {
	switch mode := s.Mode.(type) {
	case *api.ServiceSpec_Replicated:
		s.Mode = &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: n}}
	case *api.ServiceSpec_ReplicatedJob:
		job := mode.ReplicatedJob
		if job.MaxConcurrent == job.TotalCompletions { // it followed the number of tasks
			job.MaxConcurrent = n
		}
		job.TotalCompletions = n
	case nil:
		s.Mode = &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: n}}
	default:
		return errkind.Field("replicas", "a global service has a task on each node, and no number of them")
	}
	return nil
}

func setMaxConcurrent(s *api.ServiceSpec, n uint64) error {
	job := s.GetReplicatedJob()
	if job == nil {
		return errkind.Field("max-concurrent", "is for replicated jobs only")
	}
	job.MaxConcurrent = n
	return nil
}
