package member

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
)

func newLs(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "ls [flags]",
		Aliases: []string{"list"},
		Short:   "List members",
		Args:    command.NoArgs,
		RunE: env.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			return runLs(ctx, env, c)
		}),
	}
}

func runLs(ctx context.Context, env *command.Env, c *client.Client) error {
	members, err := list(ctx, c)
	if err != nil {
		return err
	}
	p := env.Printer()
	if p.Format != cli.JSON {
		return cli.PrintList(p, View(), members)
	}
	all := make([]JSON, len(members))
	for i, m := range members {
		all[i] = ToJSON(m)
	}
	return p.JSON(all)
}
