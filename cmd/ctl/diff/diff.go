// Package diff holds the command that compares the whole store at two revisions.
package diff

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
)

type options struct {
	from, to       uint64
	hasFrom, hasTo bool
	kind           string
}

// New makes the command "diff".
func New(env *command.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "diff --from REVISION [flags]",
		Short: "Show what differs between two revisions",
		Long: "Show what differs between two revisions, of all objects or of one kind.\n" +
			command.DiffExitCodes,
		Args: command.NoArgs,
	}
	fs := cmd.Flags()
	fs.Uint64Var(&o.from, "from", 0, "older `REVISION`; 0 is before there was anything")
	fs.Uint64Var(&o.to, "to", 0, "newer `REVISION` (default: the present one)")
	fs.StringVar(&o.kind, "kind", "", "only objects of this `KIND`, such as service")
	cmd.RunE = env.RunDiff(func(ctx context.Context, c *client.Client, _ []string) error {
		o.hasFrom, o.hasTo = fs.Changed("from"), fs.Changed("to")
		return run(ctx, env, c, o)
	})
	return cmd
}

func run(ctx context.Context, env *command.Env, c *client.Client, o *options) error {
	r := &holdfast.DiffRequest{From: o.from, To: o.to}
	switch {
	case !o.hasFrom:
		return cli.Usagef("from which revision? give it with --from")
	case o.to == 0 && o.hasTo:
		// To managers it stands for the present one, which hardly anyone means who writes it.
		return cli.Usagef("--to: 0 is before there was anything; leave it out for the present revision")
	}
	if o.kind != "" {
		k, err := kinds.Named(o.kind)
		if err != nil {
			return cli.Usagef("--kind: %v", err)
		}
		r.Kind = k.Number
	}
	found, err := c.Diff(ctx, r)
	if err != nil {
		return err
	}
	return command.PrintDiff(env, found)
}
