package compose

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	gogo "github.com/gogo/protobuf/types"

	"holdfast/api"
)

// service converts one service: the container here, what is under deploy in deploy.go.
func (c *converter) service(key string, s types.ServiceConfig) (api.ServiceSpec, error) {
	var spec api.ServiceSpec
	path := "services." + key
	name, err := c.claim("services", key, "", dnsNaming())
	if err != nil {
		return spec, err
	}
	container, err := c.container(path, key, s)
	if err != nil {
		return spec, err
	}
	var deploy types.DeployConfig
	if s.Deploy != nil {
		deploy = *s.Deploy
	}
	spec.Annotations = api.Annotations{Name: name, Labels: c.labels(deploy.Labels)}
	spec.Annotations.Labels[labelImage] = s.Image
	if spec.Endpoint, err = endpoint(path, deploy.EndpointMode, s.Ports); err != nil {
		return spec, err
	}
	if spec.Task.Networks, err = c.attachments(path, key, s); err != nil {
		return spec, err
	}
	if s.Logging != nil {
		spec.Task.LogDriver = &api.Driver{Name: s.Logging.Driver, Options: s.Logging.Options}
	}
	spec.Task.Runtime = &api.TaskSpec_Container{Container: container}
	return spec, c.deploy(path, key, s, deploy, &spec)
}

func (c *converter) container(path, key string, s types.ServiceConfig) (*api.ContainerSpec, error) {
	if s.Image == "" {
		return nil, fmt.Errorf("%s.image: a service needs an image", path)
	}
	var f fallible
	add, drop := capabilities(s.CapAdd, s.CapDrop)
	spec := &api.ContainerSpec{
		Image:           s.Image,
		Labels:          c.labels(s.Labels),
		Command:         s.Entrypoint,
		Args:            s.Command,
		Hostname:        s.Hostname,
		Env:             c.environment(path, s.Environment),
		Dir:             s.WorkingDir,
		User:            s.User,
		Tty:             s.Tty,
		OpenStdin:       s.StdinOpen,
		ReadOnly:        s.ReadOnly,
		StopSignal:      s.StopSignal,
		StopGracePeriod: f.period(path+".stop_grace_period", s.StopGracePeriod),
		Sysctls:         s.Sysctls,
		CapabilityAdd:   add,
		CapabilityDrop:  drop,
		Ulimits:         ulimits(s.Ulimits),
		OomScoreAdj:     s.OomScoreAdj,
		Isolation:       choose(&f, path+".isolation", s.Isolation, isolations()),
	}
	if s.Init != nil {
		spec.Init = &gogo.BoolValue{Value: *s.Init}
	}
	if d := s.Deploy; d != nil && d.Resources.Limits != nil {
		spec.PidsLimit = d.Resources.Limits.Pids
	}
	spec.Hosts = hosts(&f, path, s.ExtraHosts)
	spec.DNSConfig = dns(&f, path, s)
	spec.Healthcheck = healthcheck(&f, path+".healthcheck", s.HealthCheck)
	spec.Mounts = c.mounts(&f, path, s.Volumes)
	spec.Secrets = c.secretReferences(&f, path, s.Secrets)
	spec.Configs = c.configReferences(&f, path, s)
	spec.Privileges = c.privileges(&f, path, s.CredentialSpec)
	return spec, f.err
}

func isolations() map[string]api.ContainerSpec_Isolation {
	return map[string]api.ContainerSpec_Isolation{
		"":        api.ContainerSpec_ISOLATION_DEFAULT,
		"default": api.ContainerSpec_ISOLATION_DEFAULT,
		"process": api.ContainerSpec_ISOLATION_PROCESS,
		"hyperv":  api.ContainerSpec_ISOLATION_HYPERV,
	}
}

// environment is sorted. A variable without a value is passed on so: it unsets the image's.
func (c *converter) environment(path string, m types.MappingWithEquals) []string {
	var env []string
	for _, name := range sortedKeys(m) {
		if value := m[name]; value != nil {
			env = append(env, name+"="+*value)
			continue
		}
		env = append(env, name)
		c.said.say(fmt.Sprintf("variable %s is not set: %s.environment has it without a value", name, path))
	}
	slices.Sort(env)
	return env
}

// capabilities are written as CAP_NAME, sorted, once. What is added is not dropped, and ALL
// stands for all others.
func capabilities(add, drop []string) (added, dropped []string) {
	added, dropped = capabilitySet(add), capabilitySet(drop)
	return added, slices.DeleteFunc(dropped, func(c string) bool { return slices.Contains(added, c) })
}

func capabilitySet(list []string) []string {
	var set []string
	for _, c := range list {
		c = strings.ToUpper(strings.TrimSpace(c))
		switch {
		case c == "ALL":
			return []string{"ALL"}
		case c == "RESET": // has a meaning only in `docker service update`
			continue
		case !strings.HasPrefix(c, "CAP_"):
			c = "CAP_" + c
		}
		set = append(set, c)
	}
	slices.Sort(set)
	return slices.Compact(set)
}

func ulimits(m map[string]*types.UlimitsConfig) []*api.ContainerSpec_Ulimit {
	var list []*api.ContainerSpec_Ulimit
	for _, name := range sortedKeys(m) {
		u := m[name]
		limit := &api.ContainerSpec_Ulimit{Name: name, Soft: int64(u.Soft), Hard: int64(u.Hard)}
		if u.Single != 0 {
			limit.Soft, limit.Hard = int64(u.Single), int64(u.Single)
		}
		list = append(list, limit)
	}
	return list
}

// hosts are in the form of /etc/hosts: the address, then the name.
func hosts(f *fallible, path string, m types.HostsList) []string {
	var list []string
	for _, host := range sortedKeys(m) {
		for _, ip := range m[host] {
			if ip == "" {
				f.fail("%s.extra_hosts: %s has no address", path, host)
			}
			list = append(list, ip+" "+host)
		}
	}
	return list
}

func dns(f *fallible, path string, s types.ServiceConfig) *api.ContainerSpec_DNSConfig {
	if len(s.DNS)+len(s.DNSSearch)+len(s.DNSOpts) == 0 {
		return nil
	}
	for i, server := range s.DNS {
		if _, err := netip.ParseAddr(server); err != nil {
			f.fail("%s.dns[%d]: %q is not an IP address", path, i, server)
		}
	}
	return &api.ContainerSpec_DNSConfig{Nameservers: s.DNS, Search: s.DNSSearch, Options: s.DNSOpts}
}

func healthcheck(f *fallible, path string, h *types.HealthCheckConfig) *api.HealthConfig {
	switch {
	case h == nil:
		return nil
	case h.Disable && len(h.Test) > 0:
		f.fail("%s: test and disable exclude each other", path)
		return nil
	case h.Disable:
		return &api.HealthConfig{Test: []string{"NONE"}}
	}
	if len(h.Test) > 0 && !slices.Contains([]string{"NONE", "CMD", "CMD-SHELL"}, h.Test[0]) {
		f.fail("%s.test: a list begins with NONE, CMD or CMD-SHELL", path)
	}
	spec := &api.HealthConfig{
		Test:          h.Test,
		Interval:      f.period(path+".interval", h.Interval),
		Timeout:       f.period(path+".timeout", h.Timeout),
		StartPeriod:   f.period(path+".start_period", h.StartPeriod),
		StartInterval: f.period(path+".start_interval", h.StartInterval),
	}
	if h.Retries != nil {
		spec.Retries = int32(f.within(path+".retries", *h.Retries, 1<<31-1))
	}
	return spec
}

// privileges holds the credential spec. A config that it names is a reference of the container,
// too; it goes by its full name until the server knows its ID.
func (c *converter) privileges(f *fallible, path string, s *types.CredentialSpecConfig) *api.Privileges {
	if s == nil {
		return nil
	}
	var sources []string
	spec := &api.Privileges_CredentialSpec{}
	if s.Config != "" {
		sources = append(sources, "config")
		spec.Source = &api.Privileges_CredentialSpec_Config{
			Config: c.objectName(s.Config, types.FileObjectConfig(c.project.Configs[s.Config])),
		}
	}
	if s.File != "" {
		sources = append(sources, "file")
		spec.Source = &api.Privileges_CredentialSpec_File{File: s.File}
	}
	if s.Registry != "" {
		sources = append(sources, "registry")
		spec.Source = &api.Privileges_CredentialSpec_Registry{Registry: s.Registry}
	}
	switch len(sources) {
	case 0:
		return nil
	case 1:
		return &api.Privileges{CredentialSpec: spec}
	}
	f.fail("%s.credential_spec: %s exclude each other", path, strings.Join(sources, " and "))
	return nil
}
