package stack

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
)

type rmOptions struct {
	keepHistory bool
}

func newRm(env *command.Env) *cobra.Command {
	o := &rmOptions{}
	cmd := &cobra.Command{
		Use:     "rm [flags] NAME…",
		Aliases: []string{"remove", "down"},
		Short:   "Remove all objects of stacks, each stack in one change",
		Long: "Remove all objects of stacks and their releases, each stack in one change.\n" +
			"With --keep-history, a stack can be rolled back to one of its releases later.",
		Args: command.MinArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return command.Each(args, func(name string) error { return runRm(ctx, env, c, o, name) })
		}),
	}
	cmd.Flags().BoolVar(&o.keepHistory, "keep-history", false, "keep the releases, with the secrets and configs that they name")
	return cmd
}

func runRm(ctx context.Context, env *command.Env, c *client.Client, o *rmOptions, name string) error {
	r, err := c.Stacks().Remove(ctx, &holdfast.RemoveStackRequest{Name: name, KeepHistory: o.keepHistory})
	if err != nil {
		return err
	}
	if p := env.Printer(); p.Format == cli.JSON {
		return p.JSON(r)
	}
	if err := printChanges(env, r.Changes); err != nil || !env.Talks() {
		return err
	}
	return env.Printf("revision %d", r.Revision)
}
