package service

import (
	"context"
	"strings"

	"holdfast/api"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/cmd/ctl/internal/values"
	"holdfast/internal/errkind"
)

// addFlags adds the -add forms of lists that hold no references.
func addFlags(e *edits, env *command.Env) {
	e.list("label-add", "", "label of the service to set, `KEY[=VALUE]`", func(s *api.ServiceSpec, list []string) error {
		return addLabels(&s.Annotations.Labels, list)
	})
	e.list("container-label-add", "", "label of the containers to set, `KEY[=VALUE]`", func(s *api.ServiceSpec, list []string) error {
		return addLabels(&container(s).Labels, list)
	})
	e.list("env-add", "", "variable to set, `KEY[=VALUE]`", func(s *api.ServiceSpec, list []string) error {
		added, err := values.ParseEnv(list, env.Lookup)
		if err != nil {
			return err
		}
		for _, v := range added {
			c := container(s)
			c.Env = append(without(c.Env, []string{envKey(v)}, envKey), v)
		}
		return nil
	})
	e.list("publish-add", "", "port to publish, as in create", addPorts)
	e.list("mount-add", "", "mount to add, or to replace the one with its target", addMounts)
	e.list("constraint-add", "", "constraint to add", addConstraints)
}

func envKey(v string) string {
	key, _, _ := strings.Cut(v, "=")
	return key
}

func addLabels(labels *map[string]string, list []string) error {
	added, err := values.ParseLabels(list)
	if err != nil {
		return err
	}
	*labels = values.EditLabels(*labels, nil, added)
	return nil
}

// removals are the -rm forms of lists that hold references, by what they name.
type removals struct {
	networks, secrets, configs []string
}

// flags adds all -rm forms. What is not there is no error: it is as was asked.
func (r *removals) flags(e *edits) {
	e.list("label-rm", "", "label of the service to remove, by `KEY`", func(s *api.ServiceSpec, list []string) error {
		removeKeys(s.Annotations.Labels, list)
		return nil
	})
	e.list("container-label-rm", "", "label of the containers to remove, by `KEY`", func(s *api.ServiceSpec, list []string) error {
		removeKeys(container(s).Labels, list)
		return nil
	})
	e.list("env-rm", "", "variable to remove, by `KEY`", func(s *api.ServiceSpec, list []string) error {
		c := container(s)
		c.Env = without(c.Env, list, envKey)
		return nil
	})
	e.list("publish-rm", "", "port to publish no more, by `TARGET[/PROTOCOL]` or as in create", removePorts)
	e.list("mount-rm", "", "mount to remove, by `TARGET`", func(s *api.ServiceSpec, list []string) error {
		c := container(s)
		c.Mounts = without(c.Mounts, list, (*api.Mount).GetTarget)
		return nil
	})
	e.list("constraint-rm", "", "constraint to remove", func(s *api.ServiceSpec, list []string) error {
		if p := s.Task.Placement; p != nil {
			p.Constraints = without(p.Constraints, list, self)
		}
		return nil
	})
	e.fs.StringArrayVar(&r.networks, "network-rm", nil, "network to leave, by `NAME`")
	e.fs.StringArrayVar(&r.secrets, "secret-rm", nil, "secret to take away, by `NAME`")
	e.fs.StringArrayVar(&r.configs, "config-rm", nil, "config to take away, by `NAME`")
}

func removePorts(s *api.ServiceSpec, list []string) error {
	for _, v := range list {
		matches, err := values.ParsePortMatcher(v)
		if err != nil {
			return err
		}
		var rest []*api.PortConfig
		for _, p := range s.Endpoint.GetPorts() {
			if !matches(p) {
				rest = append(rest, p)
			}
		}
		if s.Endpoint != nil {
			s.Endpoint.Ports = rest
		}
	}
	return nil
}

func removeKeys(m map[string]string, keys []string) {
	for _, k := range keys {
		delete(m, k)
	}
}

func (r *removals) any() bool { return len(r.networks)+len(r.secrets)+len(r.configs) > 0 }

// resolve returns the edit that removes the references. Networks stand in a spec by their
// IDs alone, so they are looked up; one that is gone can be named by its ID. Secrets and
// configs stand there with their names.
func (r *removals) resolve(ctx context.Context, c *client.Client) (edit, error) {
	networks := append([]string(nil), r.networks...)
	for _, name := range r.networks {
		n, err := kinds.Networks().Resolve(ctx, c, name)
		if err != nil && !errkind.Is(err, errkind.NotFound) {
			return nil, err
		}
		if err == nil {
			networks = append(networks, n.ID)
		}
	}
	return func(s *api.ServiceSpec) error {
		byTarget := (*api.NetworkAttachmentConfig).GetTarget
		s.Task.Networks = without(s.Task.Networks, networks, byTarget)
		s.Networks = without(s.Networks, networks, byTarget)
		if len(r.secrets)+len(r.configs) == 0 {
			return nil
		}
		ctr := container(s)
		ctr.Secrets = without(without(ctr.Secrets, r.secrets, (*api.SecretReference).GetSecretName),
			r.secrets, (*api.SecretReference).GetSecretID)
		ctr.Configs = without(without(ctr.Configs, r.configs, (*api.ConfigReference).GetConfigName),
			r.configs, (*api.ConfigReference).GetConfigID)
		return nil
	}, nil
}
