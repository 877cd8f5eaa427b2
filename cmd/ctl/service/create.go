package service

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/cmd/ctl/internal/values"
	"holdfast/internal/cli"
)

type createOptions struct {
	edits edits
	name  string
	mode  string
	refs  references
}

func newCreate(env *command.Env) *cobra.Command {
	o := &createOptions{}
	cmd := &cobra.Command{
		Use:   "create [flags] IMAGE [ARG…]",
		Short: "Create a service",
		Args:  command.MinArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runCreate(ctx, env, c, o, args)
		}),
	}
	cmd.Flags().SetInterspersed(false) // what follows IMAGE is the container's
	cmd.Flags().SortFlags = true
	o.flags(env, cmd)
	return cmd
}

func (o *createOptions) flags(env *command.Env, cmd *cobra.Command) {
	fs := cmd.Flags()
	o.edits.fs = fs
	fs.StringVar(&o.name, "name", "", "name of the service")
	fs.StringVar(&o.mode, "mode", "replicated", "replicated|global|replicated-job|global-job")
	e := &o.edits
	e.list("label", "l", "label of the service, `KEY[=VALUE]`", func(s *api.ServiceSpec, list []string) (err error) {
		s.Annotations.Labels, err = values.ParseLabels(list)
		return err
	})
	e.list("container-label", "", "label of the containers, `KEY[=VALUE]`", func(s *api.ServiceSpec, list []string) (err error) {
		container(s).Labels, err = values.ParseLabels(list)
		return err
	})
	e.list("env", "e", "variable of the containers, `KEY[=VALUE]`; without a value, as it is here",
		func(s *api.ServiceSpec, list []string) (err error) {
			container(s).Env, err = values.ParseEnv(list, env.Lookup)
			return err
		})
	e.list("publish", "p", "port to publish: `PUBLISHED:TARGET[/PROTOCOL]`, or\n"+
		"published=,target=,protocol=tcp|udp|sctp,mode=ingress|host", addPorts)
	e.list("mount", "", "mount of the containers: `type=,source=,target=,...`", addMounts)
	e.list("constraint", "", "where tasks may go, such as node.labels.disk==ssd", addConstraints)
	e.common()
	o.refs.flags(fs, "network", "secret", "config")
}

func runCreate(ctx context.Context, env *command.Env, c *client.Client, o *createOptions, args []string) error {
	if o.name == "" {
		return cli.Usagef("a service needs a --name")
	}
	spec := &api.ServiceSpec{Annotations: api.Annotations{Name: o.name}}
	if err := setMode(spec, o.mode); err != nil {
		return err
	}
	container(spec).Image = args[0]
	container(spec).Args = args[1:]
	if err := o.edits.apply(spec); err != nil {
		return err
	}
	if err := o.refs.check(); err != nil {
		return err
	}
	add, err := o.refs.resolve(ctx, c)
	if err != nil {
		return err
	}
	if err := add(spec); err != nil {
		return err
	}
	r, err := c.Control().CreateService(ctx, &api.CreateServiceRequest{Spec: spec})
	if err != nil {
		return err
	}
	return cli.PrintCreated(env.Printer(), kinds.Services().View, r.Service)
}

func setMode(s *api.ServiceSpec, mode string) error {
	switch mode {
	case "replicated":
		s.Mode = &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: 1}}
	case "global":
		s.Mode = &api.ServiceSpec_Global{Global: &api.GlobalService{}}
	case "replicated-job":
		s.Mode = &api.ServiceSpec_ReplicatedJob{ReplicatedJob: &api.ReplicatedJob{MaxConcurrent: 1, TotalCompletions: 1}}
	case "global-job":
		s.Mode = &api.ServiceSpec_GlobalJob{GlobalJob: &api.GlobalJob{}}
	default:
		return cli.Usagef("--mode: %q is none of replicated, global, replicated-job, global-job", mode)
	}
	return nil
}

func addPorts(s *api.ServiceSpec, list []string) error {
	for _, v := range list {
		ports, err := values.ParsePorts(v)
		if err != nil {
			return err
		}
		e := ensure(&s.Endpoint)
		for _, p := range ports {
			e.Ports = append(withoutPort(e.Ports, p), p)
		}
	}
	return nil
}

// withoutPort leaves out what is published as p is.
func withoutPort(ports []*api.PortConfig, p *api.PortConfig) []*api.PortConfig {
	var rest []*api.PortConfig
	for _, old := range ports {
		if old.TargetPort != p.TargetPort || old.Protocol != p.Protocol || old.PublishedPort != p.PublishedPort {
			rest = append(rest, old)
		}
	}
	return rest
}

func addMounts(s *api.ServiceSpec, list []string) error {
	for _, v := range list {
		m, err := values.ParseMount(v)
		if err != nil {
			return err
		}
		c := container(s)
		c.Mounts = append(without(c.Mounts, []string{m.Target}, (*api.Mount).GetTarget), m)
	}
	return nil
}

func addConstraints(s *api.ServiceSpec, list []string) error {
	p := ensure(&s.Task.Placement)
	p.Constraints = append(without(p.Constraints, list, self), list...)
	return nil
}

func self(s string) string { return s }

// without leaves out what has one of the keys.
func without[T any](all []T, keys []string, key func(T) string) []T {
	var rest []T
	for _, item := range all {
		found := false
		for _, k := range keys {
			found = found || k == key(item)
		}
		if !found {
			rest = append(rest, item)
		}
	}
	return rest
}
