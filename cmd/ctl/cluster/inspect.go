package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
)

func newInspect(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect [flags] [NAME|ID]",
		Short: "Show the cluster in full",
		Args:  command.MaxArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runInspect(ctx, env, c, args)
		}),
	}
}

func runInspect(ctx context.Context, env *command.Env, c *client.Client, args []string) error {
	k := kinds.Clusters()
	found, err := find(ctx, c)
	if len(args) > 0 {
		found, err = k.Resolve(ctx, c, args[0])
	}
	if err != nil {
		return err
	}
	found, err = k.Get(ctx, c, found.ID)
	if err != nil {
		return err
	}
	return cli.PrintObjects(env.Printer(), k.View, []*api.Cluster{found})
}
