package stack

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
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
	if o.given() {
		r.Expect = &holdfast.DeployRequest_ExpectRelease{ExpectRelease: o.release}
	}
	if err := stage(ctx, env, c, r); err != nil {
		return err
	}
	done, err := c.Stacks().Deploy(ctx, r)
	if err != nil {
		return err
	}
	return printDeployed(env, name, done, o.dryRun)
}

// expected is the value of --expect-revision: the release that must be the deployed one, if it
// is given.
type expected struct {
	release uint64
	flag    *pflag.Flag
}

func (e *expected) addFlag(fs *pflag.FlagSet) {
	const name = "expect-revision"
	fs.Uint64Var(&e.release, name, 0, "fail unless the release `N` is the deployed one; 0: unless none is")
	e.flag = fs.Lookup(name)
}

func (e *expected) given() bool { return e.flag.Changed }

// addHistory adds --history. 0 leaves it to the managers.
func addHistory(fs *pflag.FlagSet, most *uint32) {
	fs.Uint32Var(most, "history", 0, "keep at most the last `N` releases, the deployed one always (default 10)")
}
