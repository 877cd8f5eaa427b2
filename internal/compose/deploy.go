package compose

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"holdfast/api"
)

// deploy converts what is under services.KEY.deploy, with restart, which it replaces.
func (c *converter) deploy(path, key string, s types.ServiceConfig, d types.DeployConfig, spec *api.ServiceSpec) error {
	var f fallible
	path += ".deploy"
	setMode(&f, path, d, spec)
	spec.Update = rollout(&f, path+".update_config", d.UpdateConfig)
	spec.Rollback = rollout(&f, path+".rollback_config", d.RollbackConfig)
	spec.Task.Restart = c.restart(&f, key, s.Restart, d.RestartPolicy)
	spec.Task.Placement = placement(&f, path, d.Placement)
	spec.Task.Resources = c.resources(&f, key, d.Resources)
	return f.err
}

// setMode takes one replica where the file does not say how many.
func setMode(f *fallible, path string, d types.DeployConfig, spec *api.ServiceSpec) {
	replicas := uint64(1)
	if d.Replicas != nil {
		if *d.Replicas < 0 {
			f.fail("%s.replicas: %d is negative", path, *d.Replicas)
		}
		replicas = uint64(max(*d.Replicas, 0))
	}
	switch d.Mode {
	case "", "replicated":
		spec.Mode = &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: replicas}}
	case "replicated-job":
		spec.Mode = &api.ServiceSpec_ReplicatedJob{
			ReplicatedJob: &api.ReplicatedJob{MaxConcurrent: replicas, TotalCompletions: replicas},
		}
	case "global":
		spec.Mode = &api.ServiceSpec_Global{Global: &api.GlobalService{}}
	case "global-job":
		spec.Mode = &api.ServiceSpec_GlobalJob{GlobalJob: &api.GlobalJob{}}
	default:
		f.fail("%s.mode: %q is not one of global, global-job, replicated, replicated-job", path, d.Mode)
	}
	if d.Replicas != nil && strings.HasPrefix(d.Mode, "global") {
		f.fail("%s.replicas: a service of mode %s has none", path, d.Mode)
	}
}

func failureActions() map[string]api.UpdateConfig_FailureAction {
	return map[string]api.UpdateConfig_FailureAction{
		"":         api.UpdateConfig_PAUSE,
		"pause":    api.UpdateConfig_PAUSE,
		"continue": api.UpdateConfig_CONTINUE,
		"rollback": api.UpdateConfig_ROLLBACK,
	}
}

func updateOrders() map[string]api.UpdateConfig_UpdateOrder {
	return map[string]api.UpdateConfig_UpdateOrder{
		"":            api.UpdateConfig_STOP_FIRST,
		"stop-first":  api.UpdateConfig_STOP_FIRST,
		"start-first": api.UpdateConfig_START_FIRST,
	}
}

func restartConditions() map[string]api.RestartPolicy_RestartCondition {
	return map[string]api.RestartPolicy_RestartCondition{
		"":           api.RestartPolicy_ANY,
		"any":        api.RestartPolicy_ANY,
		"on-failure": api.RestartPolicy_ON_FAILURE,
		"none":       api.RestartPolicy_NONE,
	}
}

// rollout converts update_config or rollback_config: one task at a time where it does not say.
func rollout(f *fallible, path string, u *types.UpdateConfig) *api.UpdateConfig {
	if u == nil {
		return nil
	}
	spec := &api.UpdateConfig{
		Parallelism:     1,
		Delay:           f.periodOrNone(path+".delay", u.Delay),
		FailureAction:   choose(f, path+".failure_action", u.FailureAction, failureActions()),
		Monitor:         f.periodOrNone(path+".monitor", u.Monitor),
		MaxFailureRatio: u.MaxFailureRatio,
		Order:           choose(f, path+".order", u.Order, updateOrders()),
	}
	if u.Parallelism != nil {
		spec.Parallelism = *u.Parallelism
	}
	if r := u.MaxFailureRatio; !(r >= 0 && r <= 1) {
		f.fail("%s.max_failure_ratio: %v is not between 0 and 1", path, r)
	}
	return spec
}

// restart prefers deploy.restart_policy to the older restart. As in Docker's stacks, restart: no
// is not carried over: a service without a policy restarts its tasks.
func (c *converter) restart(f *fallible, key, old string, p *types.RestartPolicy) *api.RestartPolicy {
	path := "services." + key + ".restart"
	if p != nil {
		if old != "" {
			c.said.droppedBecause(path, "deploy.restart_policy stands in its place")
		}
		path = "services." + key + ".deploy.restart_policy"
		spec := &api.RestartPolicy{
			Condition: choose(f, path+".condition", p.Condition, restartConditions()),
			Delay:     f.period(path+".delay", p.Delay),
			Window:    f.period(path+".window", p.Window),
		}
		if p.MaxAttempts != nil {
			spec.MaxAttempts = *p.MaxAttempts
		}
		return spec
	}
	policy, count, counted := strings.Cut(old, ":")
	var attempts uint64
	if counted {
		n, err := strconv.ParseUint(count, 10, 32)
		if err != nil {
			f.fail("%s: %q is not a number of attempts", path, count)
		}
		attempts = n
	}
	switch policy {
	case "":
		return nil
	case "no":
		c.said.droppedBecause(path, "only deploy.restart_policy can say none")
		return nil
	case "always", "unless-stopped":
		return &api.RestartPolicy{Condition: api.RestartPolicy_ANY, MaxAttempts: attempts}
	case "on-failure":
		return &api.RestartPolicy{Condition: api.RestartPolicy_ON_FAILURE, MaxAttempts: attempts}
	}
	f.fail("%s: %q is not one of always, no, on-failure, unless-stopped", path, policy)
	return nil
}

// resources leaves out limits.pids, which is the container's.
func (c *converter) resources(f *fallible, key string, r types.Resources) *api.ResourceRequirements {
	limits := c.amounts(f, key, "limits", r.Limits)
	reservations := c.amounts(f, key, "reservations", r.Reservations)
	if limits == nil && reservations == nil {
		return nil
	}
	return &api.ResourceRequirements{Limits: limits, Reservations: reservations}
}

func (c *converter) amounts(f *fallible, key, which string, r *types.Resource) *api.Resources {
	if r == nil {
		return nil
	}
	path := fmt.Sprintf("services.%s.deploy.resources.%s", key, which)
	spec := &api.Resources{
		NanoCPUs:    f.nanoCPUs(path+".cpus", c.raw("services", key, "deploy", "resources", which, "cpus")),
		MemoryBytes: f.bytes(path+".memory", r.MemoryBytes),
	}
	if r.Pids < 0 {
		f.fail("%s.pids: %d is negative", path, r.Pids)
	}
	for _, generic := range r.GenericResources {
		if d := generic.DiscreteResourceSpec; d != nil {
			spec.Generic = append(spec.Generic, &api.GenericResource{
				Resource: &api.GenericResource_DiscreteResourceSpec{
					DiscreteResourceSpec: &api.DiscreteGenericResource{Kind: d.Kind, Value: d.Value},
				},
			})
		}
	}
	return spec
}
