package stack

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
	"holdfast/internal/errkind"
)

// deployed is the status of the release that a stack is at.
const deployed = "deployed"

type diffOptions struct {
	files
	from, to uint64
	prune    bool
}

func newDiff(env *command.Env) *cobra.Command {
	o := &diffOptions{}
	cmd := &cobra.Command{
		Use:   "diff [flags] NAME",
		Short: "Show how a stack differs from its releases, or from Compose files",
		Long: "Show how a stack differs from its releases, or from Compose files:\n\n" +
			"  diff NAME                     what is there, from the deployed release\n" +
			"  diff NAME --from N            what is there, from the release N\n" +
			"  diff NAME --from N --to M     the release M, from the release N\n" +
			"  diff NAME --to M              the release M, from what is there\n" +
			"  diff NAME -c FILE             the file, from what is there\n" +
			"  diff NAME -c FILE --from N    the file, from the release N\n\n" +
			command.DiffExitCodes,
		Args: command.ExactArgs(1),
	}
	fs := cmd.Flags()
	o.addFlags(fs)
	fs.Uint64Var(&o.from, "from", 0, "older `RELEASE` (default: see above)")
	fs.Uint64Var(&o.to, "to", 0, "newer `RELEASE` (default: what is there)")
	fs.BoolVar(&o.prune, "prune", true, "with files: what they do not have would be removed")
	cmd.RunE = env.RunDiff(func(ctx context.Context, c *client.Client, args []string) error {
		return runDiff(ctx, env, c, o, fs, args[0])
	})
	return cmd
}

func runDiff(ctx context.Context, env *command.Env, c *client.Client, o *diffOptions, fs *pflag.FlagSet, name string) error {
	if err := o.check(fs); err != nil {
		return err
	}
	r := &holdfast.CompareStackRequest{Name: name, From: o.from, To: o.to}
	var err error
	switch {
	case len(o.names) > 0:
		if r.Request, err = o.load(ctx, env, name); err == nil {
			r.Request.DryRun, r.Request.KeepOthers = true, !o.prune
			err = stage(ctx, env, c, r.Request)
		}
	case o.from == 0 && o.to == 0:
		r.From, err = deployedRelease(ctx, c, name)
	}
	if err != nil {
		return err
	}
	found, err := c.Stacks().Compare(ctx, r)
	if err != nil {
		return err
	}
	return printDiff(env, r, found)
}

func (o *diffOptions) check(fs *pflag.FlagSet) error {
	// 0 stands for what the flag's default is, which hardly anyone means who writes it.
	for flag, value := range map[string]uint64{"from": o.from, "to": o.to} {
		if value == 0 && fs.Changed(flag) {
			return cli.Usagef("--%s: 0 is not a release of a stack; they begin with 1", flag)
		}
	}
	if len(o.names) > 0 {
		if o.to != 0 {
			return cli.Usagef("-c and --to exclude each other: the files are what is compared with")
		}
		return nil
	}
	for _, flag := range []string{"env-file", "profile", "strict", "prune"} {
		if fs.Changed(flag) {
			return cli.Usagef("--%s needs a Compose file, which is given with -c", flag)
		}
	}
	return nil
}

// deployedOf returns the release of a history that is deployed, or nil.
func deployedOf(history *holdfast.StackHistoryResponse) *holdfast.Release {
	for _, r := range history.GetReleases() {
		if r.Status == deployed {
			return r
		}
	}
	return nil
}

// deployedRelease tells which release of a stack is deployed, and fails if none is.
func deployedRelease(ctx context.Context, c *client.Client, name string) (uint64, error) {
	history, err := c.Stacks().History(ctx, &holdfast.StackHistoryRequest{Name: name})
	if err != nil {
		return 0, err
	}
	if r := deployedOf(history); r != nil {
		return r.Number, nil
	}
	n := len(history.Releases)
	if n == 0 {
		return 0, errkind.New(errkind.NotFound, "has no release").On("stack", name).
			WithHint("it was deployed before there were releases; deploy it again")
	}
	newest := history.Releases[n-1]
	return 0, errkind.New(errkind.Refused, "no release is deployed; the newest is %d, which is %s", newest.Number, newest.Status).
		On("stack", name).WithHint("give a release to compare with, with --from")
}

// difference is what -o json prints of a comparison.
type difference struct {
	Stack    string               `json:"stack"`
	From     string               `json:"from"`
	To       string               `json:"to"`
	Revision uint64               `json:"revision,string"`
	Objects  []command.ObjectDiff `json:"objects"`
}

func printDiff(env *command.Env, asked *holdfast.CompareStackRequest, r *holdfast.CompareStackResponse) error {
	to := side(asked.To)
	if asked.Request != nil {
		to = "files"
	}
	err := command.PrintObjectDiffs(env, r.Objects, func(all []command.ObjectDiff) any {
		return difference{Stack: asked.Name, From: side(asked.From), To: to, Revision: r.Revision, Objects: all}
	})
	if err == nil && len(r.Objects) > 0 {
		err = cli.Different{}
	}
	return err
}

// side names a side of a comparison.
func side(release uint64) string {
	if release == 0 {
		return "present"
	}
	return fmt.Sprintf("release %d", release)
}
