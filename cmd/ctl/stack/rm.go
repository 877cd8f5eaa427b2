package stack

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
)

func newRm(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME…",
		Aliases: []string{"remove", "down"},
		Short:   "Remove all objects of stacks, each stack in one change",
		Args:    command.MinArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return command.Each(args, func(name string) error {
				r, err := c.Stacks().Remove(ctx, &holdfast.RemoveStackRequest{Name: name})
				if err != nil {
					return err
				}
				if p := env.Printer(); p.Format == cli.JSON {
					return p.JSON(r)
				}
				return printChanges(env, r.Changes, r.Revision)
			})
		}),
	}
}
