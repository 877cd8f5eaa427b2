package stack

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/errkind"
)

type deployOptions struct {
	files
	expected
	dryRun  bool
	prune   bool
	history uint32
}

func newDeploy(env *command.Env) *cobra.Command {
	o := &deployOptions{}
	cmd := &cobra.Command{
		Use:     "deploy -c FILE|- [-c FILE…] [flags] NAME",
		Aliases: []string{"up"},
		Short:   "Make a stack what Compose files say, in one change",
		Long: "Make a stack what Compose files say, in one change, and keep that as a release to go back to.\n" +
			"If nothing differs, nothing is written.\n" +
			"If another release was deployed meanwhile, nothing is written, and it is told which.\n" +
			"A stack that is too large for one request has its secrets and configs stored first.",
		Args: command.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runDeploy(ctx, env, c, o, args[0])
		}),
	}
	fs := cmd.Flags()
	o.files.addFlags(fs)
	o.expected.addFlag(fs)
	addHistory(fs, &o.history)
	fs.BoolVar(&o.dryRun, "dry-run", false, "show what would change, and change nothing")
	fs.BoolVar(&o.prune, "prune", true, "remove what the stack has and the files do not")
	return cmd
}

func runDeploy(ctx context.Context, env *command.Env, c *client.Client, o *deployOptions, name string) error {
	r, err := o.load(ctx, env, name)
	if err != nil {
		return err
	}
	r.DryRun, r.KeepOthers, r.MaxHistory = o.dryRun, !o.prune, o.history
	expect, err := o.expect(ctx, c, name)
	if err != nil {
		return err
	}
	r.Expect = &holdfast.DeployRequest_ExpectRelease{ExpectRelease: expect}
	if err := stage(ctx, env, c, r); err != nil {
		return err
	}
	done, err := c.Stacks().Deploy(ctx, r)
	if err != nil {
		return err
	}
	return printDeployed(env, name, done, o.dryRun)
}

// expected is the value of --expect-revision: the release that must be the deployed one.
type expected struct {
	release uint64
	flag    *pflag.Flag
}

func (e *expected) addFlag(fs *pflag.FlagSet) {
	const name = "expect-revision"
	fs.Uint64Var(&e.release, name, 0, "fail unless the release `N` is the deployed one; 0: unless none is (default: the one now)")
	e.flag = fs.Lookup(name)
}

// expect returns the release that must be the deployed one: that which is so now, if nothing else
// is said. So of two who deploy at once, one is told of the other.
func (e *expected) expect(ctx context.Context, c *client.Client, stack string) (uint64, error) {
	if e.flag.Changed {
		return e.release, nil
	}
	r, err := c.Stacks().History(ctx, &holdfast.StackHistoryRequest{Name: stack})
	if err != nil && !errkind.Is(err, errkind.NotFound) {
		return 0, err
	}
	return deployedOf(r).GetNumber(), nil
}

// addHistory adds --history. 0 leaves it to the managers.
func addHistory(fs *pflag.FlagSet, most *uint32) {
	fs.Uint32Var(most, "history", 0, "keep at most the last `N` releases, the deployed one always (default 10)")
}
