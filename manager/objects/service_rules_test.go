package objects_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gogo/protobuf/types"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// rule is a change to a good spec, and the field that is refused then; none is refused if it
// is empty.
type rule struct {
	name   string
	change func(*api.ServiceSpec)
	field  string
}

// container makes a rule's change of the container.
func container(fn func(*api.ContainerSpec)) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { fn(s.Task.GetContainer()) }
}

func image(ref string) func(*api.ServiceSpec) {
	return container(func(c *api.ContainerSpec) { c.Image = ref })
}

func name(n string) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { s.Annotations.Name = n }
}

func limits(r api.Resources) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { s.Task.Resources = &api.ResourceRequirements{Limits: &r} }
}

func reserve(r ...*api.GenericResource) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) {
		s.Task.Resources = &api.ResourceRequirements{Reservations: &api.Resources{Generic: r}}
	}
}

func discrete(kind string, n int64) *api.GenericResource {
	return &api.GenericResource{Resource: &api.GenericResource_DiscreteResourceSpec{
		DiscreteResourceSpec: &api.DiscreteGenericResource{Kind: kind, Value: n},
	}}
}

func restart(p api.RestartPolicy) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { s.Task.Restart = &p }
}

func update(u api.UpdateConfig) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { s.Update = &u }
}

func rollback(u api.UpdateConfig) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { s.Rollback = &u }
}

func constraint(c string) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { s.Task.Placement = &api.Placement{Constraints: []string{c}} }
}

func spread(d string) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) {
		s.Task.Placement = &api.Placement{Preferences: []*api.PlacementPreference{{
			Preference: &api.PlacementPreference_Spread{Spread: &api.SpreadOver{SpreadDescriptor: d}},
		}}}
	}
}

func mounts(m ...*api.Mount) func(*api.ServiceSpec) {
	return container(func(c *api.ContainerSpec) { c.Mounts = m })
}

func health(h api.HealthConfig) func(*api.ServiceSpec) {
	return container(func(c *api.ContainerSpec) { c.Healthcheck = &h })
}

func endpoint(mode api.EndpointSpec_ResolutionMode, ports ...*api.PortConfig) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { s.Endpoint = &api.EndpointSpec{Mode: mode, Ports: ports} }
}

func job(concurrent, total uint64) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) {
		s.Mode = &api.ServiceSpec_ReplicatedJob{
			ReplicatedJob: &api.ReplicatedJob{MaxConcurrent: concurrent, TotalCompletions: total},
		}
	}
}

func generic(kind string, payload *types.Any) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) {
		s.Task.Runtime = &api.TaskSpec_Generic{Generic: &api.GenericRuntimeSpec{Kind: kind, Payload: payload}}
	}
}

func both(a, b func(*api.ServiceSpec)) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { a(s); b(s) }
}

func metadataRules() []rule {
	return []rule{
		{"one letter", name("a"), ""},
		{"longest name", name(strings.Repeat("a", 63)), ""},
		{"inner marks", name("a-b_c9"), ""},
		{"upper case", name("Web"), ""},
		{"no name", name(""), "spec.annotations.name"},
		{"name too long", name(strings.Repeat("a", 64)), "spec.annotations.name"},
		{"name with a dot", name("a.b"), "spec.annotations.name"},
		{"name that begins with a mark", name("-a"), "spec.annotations.name"},
		{"name that ends with a mark", name("a_"), "spec.annotations.name"},
		{"name of other letters", name("café"), "spec.annotations.name"},
		{"empty label key", func(s *api.ServiceSpec) {
			s.Annotations.Labels = map[string]string{"": "x"}
		}, "spec.annotations.labels"},
		{"empty label value", func(s *api.ServiceSpec) {
			s.Annotations.Labels = map[string]string{"x": ""}
		}, ""},
		{"empty index key", func(s *api.ServiceSpec) {
			s.Annotations.Indices = []*api.IndexEntry{{Val: "x"}}
		}, "spec.annotations.indices[0].key"},
		{"label that is not UTF-8", func(s *api.ServiceSpec) {
			s.Annotations.Labels = map[string]string{"x": "\xff"}
		}, `spec.annotations.labels["x"]`},
		{"env that is not UTF-8", container(func(c *api.ContainerSpec) {
			c.Env = []string{"a=b", "c=\xff"}
		}), "spec.task.container.env[1]"},
	}
}

func modeRules() []rule {
	return []rule{
		{"no replicas", func(s *api.ServiceSpec) {
			s.Mode = &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{}}
		}, ""},
		{"negative replicas", func(s *api.ServiceSpec) {
			s.Mode = &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: math.MaxUint64}}
		}, "spec.replicated.replicas"},
		{"too many replicas", func(s *api.ServiceSpec) {
			s.Mode = &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: 1_000_001}}
		}, "spec.replicated.replicas"},
		{"global", func(s *api.ServiceSpec) { s.Mode = &api.ServiceSpec_Global{Global: &api.GlobalService{}} }, ""},
		{"no mode", func(s *api.ServiceSpec) { s.Mode = nil }, "spec.mode"},
		{"job", job(1, 3), ""},
		{"global job", func(s *api.ServiceSpec) {
			s.Mode = &api.ServiceSpec_GlobalJob{GlobalJob: &api.GlobalJob{}}
		}, ""},
		{"negative concurrency", job(math.MaxUint64, 1), "spec.replicated_job.max_concurrent"},
		{"negative completions", job(1, math.MaxUint64), "spec.replicated_job.total_completions"},
		{"job with update config", both(job(1, 1), update(api.UpdateConfig{})), "spec.update"},
		{"job with rollback config", both(job(1, 1), rollback(api.UpdateConfig{})), "spec.rollback"},

		{"update config", update(api.UpdateConfig{Delay: nanos(1), Monitor: nanos(0), MaxFailureRatio: 1}), ""},
		{"negative update delay", update(api.UpdateConfig{Delay: nanos(-1)}), "spec.update.delay"},
		{"negative update monitor", update(api.UpdateConfig{Monitor: nanos(-1)}), "spec.update.monitor"},
		{"negative ratio", update(api.UpdateConfig{MaxFailureRatio: -0.1}), "spec.update.max_failure_ratio"},
		{"ratio over 1", update(api.UpdateConfig{MaxFailureRatio: 1.1}), "spec.update.max_failure_ratio"},
		{"ratio not a number", update(api.UpdateConfig{MaxFailureRatio: float32(math.NaN())}), "spec.update.max_failure_ratio"},
		{"unknown failure action", update(api.UpdateConfig{FailureAction: 9}), "spec.update.failure_action"},
		{"unknown order", update(api.UpdateConfig{Order: 9}), "spec.update.order"},
		{"negative rollback delay", rollback(api.UpdateConfig{Delay: nanos(-1)}), "spec.rollback.delay"},
		{"negative rollback monitor", rollback(api.UpdateConfig{Monitor: nanos(-1)}), "spec.rollback.monitor"},
		{"rollback ratio over 1", rollback(api.UpdateConfig{MaxFailureRatio: 2}), "spec.rollback.max_failure_ratio"},
		{"rollback of a rollback", rollback(api.UpdateConfig{FailureAction: api.UpdateConfig_ROLLBACK}), "spec.rollback.failure_action"},
	}
}

func taskRules() []rule {
	any := &types.Any{TypeUrl: "example.com/thing"}
	return []rule{
		{"no runtime", func(s *api.ServiceSpec) { s.Task.Runtime = nil }, "spec.task.runtime"},
		{"empty container", func(s *api.ServiceSpec) { s.Task.Runtime = &api.TaskSpec_Container{} }, "spec.task.container"},
		{"attachment", func(s *api.ServiceSpec) {
			s.Task.Runtime = &api.TaskSpec_Attachment{Attachment: &api.NetworkAttachmentSpec{ContainerID: "x"}}
		}, "spec.task.attachment"},
		{"generic", generic("plugin", any), ""},
		{"generic with a short kind", generic("ab", any), "spec.task.generic.kind"},
		{"generic with a reserved kind", generic("container", any), "spec.task.generic.kind"},
		{"generic without payload", generic("plugin", nil), "spec.task.generic.payload"},

		{"no limits", limits(api.Resources{}), ""},
		{"least limits", limits(api.Resources{NanoCPUs: 1e6, MemoryBytes: 4 << 20}), ""},
		{"too little CPU", limits(api.Resources{NanoCPUs: 1e6 - 1}), "spec.task.resources.limits.nano_cpus"},
		{"negative CPU", limits(api.Resources{NanoCPUs: -1}), "spec.task.resources.limits.nano_cpus"},
		{"too little memory", limits(api.Resources{MemoryBytes: 4<<20 - 1}), "spec.task.resources.limits.memory_bytes"},
		{"too little reserved memory", func(s *api.ServiceSpec) {
			s.Task.Resources = &api.ResourceRequirements{Reservations: &api.Resources{MemoryBytes: 1}}
		}, "spec.task.resources.reservations.memory_bytes"},
		{"swap", func(s *api.ServiceSpec) {
			s.Task.Resources = &api.ResourceRequirements{SwapBytes: &types.Int64Value{Value: -2}}
		}, "spec.task.resources.swap_bytes"},
		{"swappiness", func(s *api.ServiceSpec) {
			s.Task.Resources = &api.ResourceRequirements{MemorySwappiness: &types.Int64Value{Value: 101}}
		}, "spec.task.resources.memory_swappiness"},
		{"generic resources", reserve(discrete("gpu", 1), discrete("ssd", 0)), ""},
		{"generic limit", limits(api.Resources{Generic: []*api.GenericResource{discrete("gpu", 1)}}), "spec.task.resources.limits.generic"},
		{"generic resource without kind", reserve(discrete("", 1)), "spec.task.resources.reservations.generic[0].discrete_resource_spec.kind"},
		{"negative generic resource", reserve(discrete("gpu", -1)), "spec.task.resources.reservations.generic[0].discrete_resource_spec.value"},
		{"generic resource twice", reserve(discrete("gpu", 1), discrete("gpu", 2)), "spec.task.resources.reservations.generic[1].discrete_resource_spec.kind"},
		{"empty generic resource", reserve(&api.GenericResource{}), "spec.task.resources.reservations.generic[0]"},
		{"named generic resource", reserve(&api.GenericResource{Resource: &api.GenericResource_NamedResourceSpec{
			NamedResourceSpec: &api.NamedGenericResource{Kind: "gpu", Value: "a"},
		}}), "spec.task.resources.reservations.generic[0].named_resource_spec"},

		{"restart", restart(api.RestartPolicy{Delay: nanos(0), Window: nanos(1)}), ""},
		{"negative restart delay", restart(api.RestartPolicy{Delay: nanos(-1)}), "spec.task.restart.delay"},
		{"negative restart window", restart(api.RestartPolicy{Window: nanos(-1)}), "spec.task.restart.window"},
		{"no duration", restart(api.RestartPolicy{Delay: &types.Duration{Seconds: 1, Nanos: -1}}), "spec.task.restart.delay"},
		{"unknown restart condition", restart(api.RestartPolicy{Condition: 7}), "spec.task.restart.condition"},

		{"constraint", constraint("node.labels.zone == eu-1"), ""},
		{"constraint not equal", constraint("node.role!=manager"), ""},
		{"constraint with a regexp", constraint(`node.hostname==web[1-3]+(a|b)\.x/y$`), ""},
		{"constraint value with the other operator", constraint("node.labels.a!=b==c"), "spec.task.placement.constraints[0]"},
		{"constraint without operator", constraint("node.role=manager"), "spec.task.placement.constraints[0]"},
		{"constraint without key", constraint("==manager"), "spec.task.placement.constraints[0]"},
		{"constraint key that begins with a digit", constraint("1node==a"), "spec.task.placement.constraints[0]"},
		{"constraint without value", constraint("node.role=="), "spec.task.placement.constraints[0]"},
		{"constraint value with a comma", constraint("node.role==a,b"), "spec.task.placement.constraints[0]"},
		{"preference", spread("node.labels.zone"), ""},
		{"preference without descriptor", spread(" "), "spec.task.placement.preferences[0].spread.spread_descriptor"},
		{"empty preference", func(s *api.ServiceSpec) {
			s.Task.Placement = &api.Placement{Preferences: []*api.PlacementPreference{{}}}
		}, "spec.task.placement.preferences[0]"},
		{"resource reference", func(s *api.ServiceSpec) {
			s.Task.ResourceReferences = []*api.ResourceReference{{ResourceID: "nothing", ResourceType: api.ResourceType_SECRET}}
		}, "spec.task.resource_references[0].resource_id"},
		{"resource reference of an unknown type", func(s *api.ServiceSpec) {
			s.Task.ResourceReferences = []*api.ResourceReference{{ResourceID: "x", ResourceType: 9}}
		}, "spec.task.resource_references[0].resource_type"},
	}
}

func containerRules() []rule {
	bind := func(source, target string) *api.Mount {
		return &api.Mount{Type: api.Mount_BIND, Source: source, Target: target}
	}
	return []rule{
		{"image with registry, tag and digest", image("reg.example.com:5000/a/b:1@sha256:" + strings.Repeat("0", 64)), ""},
		{"no image", image(""), "spec.task.container.image"},
		{"image in upper case", image("Nginx"), "spec.task.container.image"},
		{"image with an empty tag", image("nginx:"), "spec.task.container.image"},

		{"mounts", mounts(bind("/a", "/a"), bind("/a", "/b"), &api.Mount{Type: api.Mount_VOLUME, Target: "/c"}), ""},
		{"target twice", mounts(bind("/a", "/x"), bind("/b", "/x")), "spec.task.container.mounts[1].target"},
		{"target twice in another form", mounts(bind("/a", "/x"), bind("/b", "/y/../x/")), "spec.task.container.mounts[1].target"},
		{"no target", mounts(bind("/a", "")), "spec.task.container.mounts[0].target"},
		{"bind without source", mounts(bind("", "/x")), "spec.task.container.mounts[0].source"},
		{"tmpfs with source", mounts(&api.Mount{Type: api.Mount_TMPFS, Source: "a", Target: "/x"}), "spec.task.container.mounts[0].source"},
		{"tmpfs of negative size", mounts(&api.Mount{
			Type: api.Mount_TMPFS, Target: "/x", TmpfsOptions: &api.Mount_TmpfsOptions{SizeBytes: -1},
		}), "spec.task.container.mounts[0].tmpfs_options.size_bytes"},
		{"unknown mount type", mounts(&api.Mount{Type: 9, Target: "/x"}), "spec.task.container.mounts[0].type"},

		{"health", health(api.HealthConfig{Interval: nanos(1e6), Timeout: nanos(0)}), ""},
		{"short interval", health(api.HealthConfig{Interval: nanos(1e6 - 1)}), "spec.task.container.healthcheck.interval"},
		{"negative timeout", health(api.HealthConfig{Timeout: nanos(-1)}), "spec.task.container.healthcheck.timeout"},
		{"short start period", health(api.HealthConfig{StartPeriod: nanos(1)}), "spec.task.container.healthcheck.start_period"},
		{"short start interval", health(api.HealthConfig{StartInterval: nanos(1)}), "spec.task.container.healthcheck.start_interval"},
		{"negative retries", health(api.HealthConfig{Retries: -1}), "spec.task.container.healthcheck.retries"},
		{"negative stop grace period", container(func(c *api.ContainerSpec) {
			c.StopGracePeriod = nanos(-1)
		}), "spec.task.container.stop_grace_period"},
		{"unknown isolation", container(func(c *api.ContainerSpec) { c.Isolation = 9 }), "spec.task.container.isolation"},
		{"unknown seccomp mode", container(func(c *api.ContainerSpec) {
			c.Privileges = &api.Privileges{Seccomp: &api.Privileges_SeccompOpts{Mode: 9}}
		}), "spec.task.container.privileges.seccomp.mode"},
	}
}

func endpointRules() []rule {
	vip, dnsrr := api.EndpointSpec_VIP, api.EndpointSpec_DNSRR
	udp := &api.PortConfig{TargetPort: 80, PublishedPort: 80, Protocol: api.PortConfig_UDP}
	return []rule{
		{"ports", endpoint(vip, ingressPort(80), udp, ingressPort(81)), ""},
		{"ports to choose", endpoint(vip, ingressPort(0), ingressPort(0)), ""},
		{"port twice", endpoint(vip, ingressPort(80), ingressPort(80)), "spec.endpoint.ports[1].published_port"},
		{"port twice by other modes", endpoint(vip, ingressPort(80), hostPort(80)), "spec.endpoint.ports[1].published_port"},
		{"dnsrr", endpoint(dnsrr, hostPort(80)), ""},
		{"dnsrr with ingress", endpoint(dnsrr, ingressPort(80)), "spec.endpoint.ports[0].publish_mode"},
		{"no target port", endpoint(vip, &api.PortConfig{PublishedPort: 1}), "spec.endpoint.ports[0].target_port"},
		{"target port too high", endpoint(vip, &api.PortConfig{TargetPort: 65536}), "spec.endpoint.ports[0].target_port"},
		{"published port too high", endpoint(vip, ingressPort(65536)), "spec.endpoint.ports[0].published_port"},
		{"unknown protocol", endpoint(vip, &api.PortConfig{TargetPort: 1, Protocol: 9}), "spec.endpoint.ports[0].protocol"},
		{"unknown publish mode", endpoint(vip, &api.PortConfig{TargetPort: 1, PublishMode: 9}), "spec.endpoint.ports[0].publish_mode"},
		{"unknown endpoint mode", endpoint(9), "spec.endpoint.mode"},
	}
}

// referenceRules are about what the world has.
func referenceRules(w *world) []rule {
	secrets := func(r ...*api.SecretReference) func(*api.ServiceSpec) {
		return container(func(c *api.ContainerSpec) { c.Secrets = r })
	}
	configs := func(r ...*api.ConfigReference) func(*api.ServiceSpec) {
		return container(func(c *api.ContainerSpec) { c.Configs = r })
	}
	networks := func(targets ...string) func(*api.ServiceSpec) {
		return func(s *api.ServiceSpec) {
			for _, target := range targets {
				s.Task.Networks = append(s.Task.Networks, &api.NetworkAttachmentConfig{Target: target})
			}
		}
	}
	secret := func(change func(*api.SecretReference)) func(*api.ServiceSpec) {
		r := w.secretRef(1, "b")
		change(r)
		return secrets(w.secretRef(0, "a"), r)
	}
	config := func(change func(*api.ConfigReference)) func(*api.ServiceSpec) {
		r := w.configRef(1, "b")
		change(r)
		return configs(w.configRef(0, "a"), r)
	}
	return []rule{
		{"secrets", secrets(w.secretRef(0, "a"), w.secretRef(0, "b"), w.secretRef(1, "c")), ""},
		{"unknown secret", secret(func(r *api.SecretReference) { r.SecretID = "x" }), "spec.task.container.secrets[1].secret_id"},
		{"secret without ID", secret(func(r *api.SecretReference) { r.SecretID = "" }), "spec.task.container.secrets[1].secret_id"},
		{"secret without name", secret(func(r *api.SecretReference) { r.SecretName = "" }), "spec.task.container.secrets[1].secret_name"},
		{"secret of another name", secret(func(r *api.SecretReference) { r.SecretName = "one" }), "spec.task.container.secrets[1].secret_name"},
		{"secret without target", secret(func(r *api.SecretReference) { r.Target = nil }), "spec.task.container.secrets[1].file"},
		{"secret without file name", secret(func(r *api.SecretReference) { r.GetFile().Name = "" }), "spec.task.container.secrets[1].file.name"},
		{"secrets in one file", secret(func(r *api.SecretReference) { r.GetFile().Name = "a" }), "spec.task.container.secrets[1].file.name"},
		{"configs", configs(w.configRef(0, "a"), w.configRef(1, "b")), ""},
		{"config for the runtime", config(func(r *api.ConfigReference) {
			r.Target = &api.ConfigReference_Runtime{Runtime: &api.RuntimeTarget{}}
		}), ""},
		{"unknown config", config(func(r *api.ConfigReference) { r.ConfigID = w.secrets[0].ID }), "spec.task.container.configs[1].config_id"},
		{"config of another name", config(func(r *api.ConfigReference) { r.ConfigName = "x" }), "spec.task.container.configs[1].config_name"},
		{"config without target", config(func(r *api.ConfigReference) { r.Target = nil }), "spec.task.container.configs[1].file"},
		{"configs in one file", config(func(r *api.ConfigReference) { r.GetFile().Name = "a" }), "spec.task.container.configs[1].file.name"},
		{"a secret and a config in files of one name", both(secrets(w.secretRef(0, "a")), configs(w.configRef(0, "a"))), ""},

		{"network by ID", networks(w.network.ID), ""},
		{"network by name", networks("FRONT"), ""},
		{"unknown network", networks(w.network.ID, "back"), "spec.task.networks[1].target"},
		{"no network", networks(""), "spec.task.networks[0].target"},
		{"network twice", networks(w.network.ID, "front"), "spec.task.networks[1].target"},
		{"ingress network", networks(w.ingress.ID), "spec.task.networks[0].target"},
		{"unknown network of the older form", func(s *api.ServiceSpec) {
			s.Networks = []*api.NetworkAttachmentConfig{{Target: "back"}}
		}, "spec.networks[0].target"},
	}
}

func TestServiceRules(t *testing.T) {
	w := newWorld(t)
	for group, rules := range map[string][]rule{
		"metadata": metadataRules(), "mode": modeRules(), "task": taskRules(),
		"container": containerRules(), "endpoint": endpointRules(), "references": referenceRules(w),
	} {
		for _, r := range rules {
			t.Run(group+"/"+r.name, func(t *testing.T) {
				spec := serviceSpec("web")
				r.change(spec)
				before := spec.Copy()
				var made *api.Service
				err := w.try(func(tx *store.Tx) (err error) {
					made, err = objects.CreateService(tx, spec)
					return err
				})
				if !spec.Equal(before) && !strings.Contains(r.name, "not a number") {
					t.Errorf("the spec that was given changed")
				}
				if r.field != "" {
					want(t, err, errkind.Invalid, r.field)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				w.must(func(tx *store.Tx) error {
					_, err := objects.RemoveService(tx, made.ID)
					return err
				})
			})
		}
	}
	want(t, w.try(func(tx *store.Tx) error {
		_, err := objects.CreateService(tx, nil)
		return err
	}), errkind.Invalid, "spec")
}
