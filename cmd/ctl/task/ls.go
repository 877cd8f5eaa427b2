package task

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
)

type lsOptions struct {
	filter   command.Filter
	at       command.At
	services []string
}

func newLs(env *command.Env) *cobra.Command {
	o := &lsOptions{}
	cmd := &cobra.Command{
		Use:     "ls [flags]",
		Aliases: []string{"list"},
		Short:   "List tasks",
		Args:    command.NoArgs,
		RunE: env.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			return runLs(o.at.Context(ctx), env, c, o)
		}),
	}
	o.filter.AddFlag(cmd.Flags())
	o.at.AddFlag(cmd.Flags())
	cmd.Flags().StringArrayVar(&o.services, "service", nil, "only tasks of this service, by `NAME|ID`; several are alternatives")
	return cmd
}

func runLs(ctx context.Context, env *command.Env, c *client.Client, o *lsOptions) error {
	var q kinds.Query
	for _, name := range o.services {
		s, err := kinds.Services().Resolve(ctx, c, name)
		switch {
		case err == nil:
			q.ServiceIDs = append(q.ServiceIDs, s.ID)
		case errkind.Is(err, errkind.NotFound) && id.Valid(name):
			// A service that was removed may have left tasks.
			q.ServiceIDs = append(q.ServiceIDs, name)
		default:
			return err
		}
	}
	found, err := command.Find(ctx, c, kinds.Tasks(), o.filter, q)
	if err != nil {
		return err
	}
	return cli.PrintList(env.Printer(), kinds.Tasks().View, found)
}
