package stack

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
)

type rollbackOptions struct {
	expected
	dryRun  bool
	history uint32
}

func newRollback(env *command.Env) *cobra.Command {
	o := &rollbackOptions{}
	cmd := &cobra.Command{
		Use:   "rollback [flags] NAME [RELEASE]",
		Short: "Deploy again what a release of a stack did",
		Long: "Deploy again what a release of a stack did, in one change and as a new release.\n" +
			"Without a number it is the last release before the present one that was deployed.",
		Args: command.Args(1, 2),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runRollback(ctx, env, c, o, args)
		}),
	}
	fs := cmd.Flags()
	o.expected.addFlag(fs)
	addHistory(fs, &o.history)
	fs.BoolVar(&o.dryRun, "dry-run", false, "show what would change, and change nothing")
	return cmd
}

func runRollback(ctx context.Context, env *command.Env, c *client.Client, o *rollbackOptions, args []string) error {
	number, err := parseRelease(args)
	if err != nil {
		return err
	}
	r := &holdfast.RollbackRequest{Name: args[0], Number: number, DryRun: o.dryRun, MaxHistory: o.history}
	expect, err := o.expect(ctx, c, args[0])
	if err != nil {
		return err
	}
	r.Expect = &holdfast.RollbackRequest_ExpectRelease{ExpectRelease: expect}
	done, err := c.Stacks().Rollback(ctx, r)
	if err != nil {
		return err
	}
	return printDeployed(env, args[0], done, o.dryRun)
}
