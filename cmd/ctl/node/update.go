package node

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

type updateOptions struct {
	// The flags.
	availability      string
	hasAvailability   bool
	labelAdd, labelRm []string
}

// edit is what the flags ask for, once they are read.
type edit struct {
	availability *api.NodeSpec_Availability
	add          map[string]string
	remove       []string
}

func newUpdate(env *command.Env) *cobra.Command {
	o := &updateOptions{}
	cmd := &cobra.Command{
		Use:   "update [flags] HOSTNAME|ID",
		Short: "Change a node's availability or labels",
		Args:  command.ExactArgs(1),
	}
	fs := cmd.Flags()
	fs.StringVar(&o.availability, "availability", "", "active|pause|drain")
	fs.StringArrayVar(&o.labelAdd, "label-add", nil, "label to set, `KEY[=VALUE]`")
	fs.StringArrayVar(&o.labelRm, "label-rm", nil, "label to remove, by `KEY`")
	cmd.RunE = env.Run(func(ctx context.Context, c *client.Client, args []string) error {
		o.hasAvailability = fs.Changed("availability")
		return runUpdate(ctx, env, c, o, args[0])
	})
	return cmd
}

func runUpdate(ctx context.Context, env *command.Env, c *client.Client, o *updateOptions, name string) error {
	e, err := o.parse()
	if err != nil {
		return err
	}
	n, err := kinds.Nodes().Resolve(ctx, c, name)
	if err != nil {
		return err
	}
	n, err = command.Retry(func() (*api.Node, error) {
		n, err := kinds.Nodes().Get(ctx, c, n.ID)
		if err != nil {
			return nil, err
		}
		spec := n.Spec.Copy()
		e.apply(spec)
		r, err := c.Control().UpdateNode(ctx, &api.UpdateNodeRequest{
			NodeID: n.ID, NodeVersion: n.Meta.Version.Copy(), Spec: spec,
		})
		return r.GetNode(), err
	})
	if err != nil {
		return err
	}
	return cli.PrintCreated(env.Printer(), kinds.Nodes().View, n)
}

func (o *updateOptions) parse() (edit, error) {
	e := edit{remove: o.labelRm}
	if o.hasAvailability {
		n, err := values.ParseChoice(o.availability, "active", "pause", "drain")
		if err != nil {
			return e, cli.Usagef("--availability: %v", err)
		}
		a := api.NodeSpec_Availability(n)
		e.availability = &a
	}
	var err error
	if e.add, err = values.ParseLabels(o.labelAdd); err != nil {
		return e, cli.Usagef("--label-add: %v", err)
	}
	return e, nil
}

func (e edit) apply(spec *api.NodeSpec) {
	if e.availability != nil {
		spec.Availability = *e.availability
	}
	spec.Annotations.Labels = values.EditLabels(spec.Annotations.Labels, e.remove, e.add)
}
