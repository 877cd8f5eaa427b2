package member

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
		Use:     "rm RAFT-ID|NODE-ID|HOSTNAME…",
		Aliases: []string{"remove"},
		Short:   "Take members out of the raft group, for good",
		Args:    command.MinArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runRm(ctx, env, c, args)
		}),
	}
}

func runRm(ctx context.Context, env *command.Env, c *client.Client, args []string) error {
	return command.Each(args, func(arg string) error {
		members, err := list(ctx, c)
		if err != nil {
			return err
		}
		m, err := resolve(members, arg)
		if err != nil {
			return err
		}
		if _, err := c.Cluster().RemoveMember(ctx, &holdfast.RemoveMemberRequest{RaftID: m.RaftID}); err != nil {
			return err
		}
		if env.Quiet() {
			return env.Printf("%d", m.RaftID)
		}
		return env.Printf("%s", cli.Clean(arg))
	})
}
