// Package watch holds the command that tells of changes as they happen.
package watch

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
)

type options struct {
	from, after       uint64
	hasFrom, hasAfter bool
	initial, previous bool
	selector          command.Selector
}

// New makes the command "watch".
func New(env *command.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "watch [flags] [KIND…]",
		Short: "Print changes as they happen",
		Long: `Print changes as they happen, of all objects or of some kinds: node, service, task,
network, cluster, secret, config. With -o json, one change a line.

It goes on until it is interrupted, or until a --timeout that was given is over: then it
exits with 0. When a manager goes away it goes on through another one, without a gap.`,
	}
	fs := cmd.Flags()
	fs.Uint64Var(&o.from, "from", 0, "begin with the change of this `REVISION`")
	fs.Uint64Var(&o.after, "after", 0, "begin after this `REVISION`")
	fs.BoolVar(&o.initial, "initial", false, "first print what is there")
	fs.BoolVar(&o.previous, "previous", false, "with -o json: print objects as they were before, too")
	o.selector.AddFlag(fs)
	cmd.RunE = env.RunLong(func(ctx context.Context, c *client.Client, args []string) error {
		o.hasFrom, o.hasAfter = fs.Changed("from"), fs.Changed("after")
		return run(ctx, env, c, o, args)
	})
	return cmd
}

func run(ctx context.Context, env *command.Env, c *client.Client, o *options, args []string) error {
	opts, err := o.parse(args)
	if err != nil {
		return err
	}
	p := &printer{env: env, previous: o.previous}
	if o.previous && env.Printer().Format != cli.JSON {
		return cli.Usagef("--previous goes with -o json only")
	}
	return command.Watch(ctx, env, c, opts, p.take)
}

func (o *options) parse(args []string) (client.WatchOptions, error) {
	opts := client.WatchOptions{Initial: o.initial, Previous: o.previous}
	var given []string
	if o.hasFrom {
		given, opts.Start = append(given, "--from"), client.From(o.from)
	}
	if o.hasAfter {
		given, opts.Start = append(given, "--after"), client.After(o.after)
	}
	if o.initial {
		given = append(given, "--initial")
	}
	if len(given) > 1 {
		return opts, cli.Usagef("%s exclude each other", strings.Join(given, " and "))
	}
	for _, arg := range args {
		k, err := kinds.Named(arg)
		if err != nil {
			return opts, cli.Usagef("%v", err)
		}
		if !slices.Contains(opts.Kinds, k.Number) {
			opts.Kinds = append(opts.Kinds, k.Number)
		}
	}
	var err error
	opts.Selector.Where, err = o.selector.Text()
	return opts, err
}
