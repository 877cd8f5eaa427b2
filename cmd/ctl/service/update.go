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
	"holdfast/internal/errkind"
)

type updateOptions struct {
	edits    edits
	refs     references
	removals removals
	rollback bool
}

func newUpdate(env *command.Env) *cobra.Command {
	o := &updateOptions{}
	cmd := &cobra.Command{
		Use:   "update [flags] NAME|ID",
		Short: "Change a service",
		Args:  command.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runUpdate(ctx, env, c, o, args[0])
		}),
	}
	o.flags(env, cmd)
	return cmd
}

func (o *updateOptions) flags(env *command.Env, cmd *cobra.Command) {
	fs := cmd.Flags()
	o.edits.fs = fs
	e := &o.edits
	e.text("image", "", "image of the containers", func(s *api.ServiceSpec, v string) error {
		container(s).Image = v
		return nil
	})
	e.text("args", "", "arguments of the command, as one string", func(s *api.ServiceSpec, v string) (err error) {
		container(s).Args, err = values.SplitWords(v)
		return err
	})
	force := fs.Bool("force", false, "replace the tasks even if nothing changed")
	e.add("force", func(s *api.ServiceSpec) error {
		if *force {
			s.Task.ForceUpdate++
		}
		return nil
	})
	// What is removed goes first, so that a thing can be replaced in one update.
	o.removals.flags(e)
	addFlags(e, env)
	e.common()
	o.refs.flags(fs, "network-add", "secret-add", "config-add")
	fs.BoolVar(&o.rollback, "rollback", false, "go back to the spec before the last change")
}

func runUpdate(ctx context.Context, env *command.Env, c *client.Client, o *updateOptions, name string) error {
	if o.rollback && (o.edits.any() || o.refs.any() || o.removals.any()) {
		return cli.Usagef("--rollback excludes all other changes")
	}
	if err := o.edits.check(); err != nil {
		return err
	}
	if err := o.refs.check(); err != nil {
		return err
	}
	s, err := kinds.Services().Resolve(ctx, c, name)
	if err != nil {
		return err
	}
	add, err := o.refs.resolve(ctx, c)
	if err != nil {
		return err
	}
	removeRefs, err := o.removals.resolve(ctx, c)
	if err != nil {
		return err
	}
	req := &api.UpdateServiceRequest{}
	if o.rollback {
		req.Rollback = api.UpdateServiceRequest_PREVIOUS
	}
	updated, err := change(ctx, c, s.ID, req, func(spec *api.ServiceSpec) error {
		for _, edit := range []edit{removeRefs, o.edits.apply, add} {
			if err := edit(spec); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return cli.PrintCreated(env.Printer(), kinds.Services().View, updated)
}

// change reads a service, edits its spec and sends it with the version that was read. If the
// service changed meanwhile, it begins anew.
func change(
	ctx context.Context, c *client.Client, id string, req *api.UpdateServiceRequest, edit edit,
) (*api.Service, error) {
	return command.Retry(func() (*api.Service, error) {
		s, err := kinds.Services().Get(ctx, c, id)
		if err != nil {
			return nil, err
		}
		spec := s.Spec.Copy()
		if err := edit(spec); err != nil {
			return nil, err
		}
		if s.Spec.Task.Runtime != nil && s.Spec.Task.GetContainer() == nil && spec.Task.GetContainer() != nil {
			return nil, errkind.New(errkind.Invalid, "runs no container").On("service", s.Spec.Annotations.Name)
		}
		req.ServiceID, req.ServiceVersion, req.Spec = s.ID, s.Meta.Version.Copy(), spec
		r, err := c.Control().UpdateService(ctx, req)
		return r.GetService(), err
	})
}
