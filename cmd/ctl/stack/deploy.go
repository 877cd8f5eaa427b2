package stack

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
	"holdfast/internal/compose"
)

type deployOptions struct {
	files []string
}

func newDeploy(env *command.Env) *cobra.Command {
	o := &deployOptions{}
	cmd := &cobra.Command{
		Use:     "deploy -c FILE|- [-c FILE…] [flags] NAME",
		Aliases: []string{"up"},
		Short:   "Make a stack what Compose files say, in one change",
		Args:    command.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runDeploy(ctx, env, c, o, args[0])
		}),
	}
	cmd.Flags().StringArrayVarP(&o.files, "compose-file", "c", nil, "Compose `FILE`, or - for standard input; later ones win")
	return cmd
}

func runDeploy(ctx context.Context, env *command.Env, c *client.Client, o *deployOptions, name string) error {
	if len(o.files) == 0 {
		return cli.Usagef("which Compose file? give it with -c")
	}
	loaded, err := compose.Load(ctx, compose.Options{
		Files: o.files, Stdin: env.Streams.In, Env: env.Environ, Stack: name,
	})
	if err != nil {
		return err
	}
	for _, w := range loaded.Warnings {
		env.Notef("warning: %s", w)
	}
	r, err := c.Stacks().Deploy(ctx, loaded.Request)
	if err != nil {
		return err
	}
	if p := env.Printer(); p.Format == cli.JSON {
		return p.JSON(r)
	}
	return printChanges(env, r.Changes, r.Revision)
}
