package command

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/cmd/ctl/internal/values"
	"holdfast/internal/cli"
)

// Ls is the verb that lists objects of a kind. All but Kind may be nil.
type Ls[T kinds.Object] struct {
	Kind kinds.Kind[T]
	// Flags adds flags, and Narrow makes the selector pick what they ask for.
	Flags  func(*pflag.FlagSet)
	Narrow func(context.Context, *client.Client, *holdfast.Selector) error
	// Print replaces how a list is printed that is not watched.
	Print func(context.Context, *Env, *client.Client, []T) error
}

type lsOptions struct {
	filter   Filter
	selector Selector
	at       At
	sort     string
	reverse  bool
	count    bool
	watch    bool
}

// NewLs makes the command that lists objects of a kind.
func NewLs[T kinds.Object](env *Env, k kinds.Kind[T]) *cobra.Command { return Ls[T]{Kind: k}.New(env) }

// New makes the command.
func (l Ls[T]) New(env *Env) *cobra.Command {
	o := &lsOptions{}
	do := func(ctx context.Context, c *client.Client, _ []string) error { return l.run(ctx, env, c, o) }
	cmd := &cobra.Command{
		Use:     "ls [flags]",
		Aliases: []string{"list"},
		Short:   "List " + l.Kind.Noun + "s",
		Args:    NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.watch {
				return env.RunLong(do)(cmd, args)
			}
			return env.Run(do)(cmd, args)
		},
	}
	fs := cmd.Flags()
	o.filter.AddFlag(fs)
	o.selector.AddFlag(fs)
	o.at.AddFlag(fs)
	fs.StringVar(&o.sort, "sort", "id", "order: `id|name|created|changed`, the oldest first")
	fs.BoolVarP(&o.reverse, "reverse", "r", false, "the other way round")
	fs.BoolVar(&o.count, "count", false, "print only how many there are")
	fs.BoolVarP(&o.watch, "watch", "w", false, "go on and print each change, until interrupted or for --timeout if it is given;\n"+
		"JSON is one event a line")
	if l.Flags != nil {
		l.Flags(fs)
	}
	return cmd
}

func (l Ls[T]) run(ctx context.Context, env *Env, c *client.Client, o *lsOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	sort, err := values.ParseChoice(o.sort, "id", "name", "created", "changed")
	if err != nil {
		return cli.Usagef("--sort: %v", err)
	}
	ctx = o.at.Context(ctx)
	r := holdfast.ListRequest{Selector: o.filter.selector(), Sort: holdfast.Sort(sort), Descending: o.reverse}
	if r.Selector.Where, err = o.selector.Text(); err != nil {
		return err
	}
	if l.Narrow != nil {
		if err := l.Narrow(ctx, c, &r.Selector); err != nil {
			return err
		}
	}
	if o.watch {
		return l.watch(ctx, env, c, o, r.Selector)
	}
	if o.count && !o.filter.more() {
		r.Kind, r.CountOnly = l.Kind.Number, true
		counted, err := c.Objects().List(ctx, &r)
		if err != nil {
			return err
		}
		return printCount(env, counted.Remaining)
	}
	var found []T
	for one, err := range l.Kind.Find(ctx, c, r) {
		if err != nil {
			return err
		}
		if o.filter.passes(l.Kind.Labels(one)) {
			found = append(found, one)
		}
	}
	switch {
	case o.count:
		return printCount(env, uint64(len(found)))
	case l.Print != nil:
		return l.Print(ctx, env, c, found)
	}
	return cli.PrintList(env.Printer(), l.Kind.View, found)
}

func (o *lsOptions) check() error {
	switch {
	case o.watch && o.at.Given():
		return cli.Usagef("--watch and --revision exclude each other: what is past does not change")
	case o.watch && (o.sort != "id" || o.reverse || o.count):
		return cli.Usagef("--watch excludes --sort, --reverse and --count")
	}
	return nil
}

// count is what -o json prints of --count.
type count struct {
	Count uint64 `json:"count,string"`
}

func printCount(env *Env, n uint64) error {
	if p := env.Printer(); p.Format == cli.JSON {
		return p.JSON(count{n})
	}
	return env.Printf("%s", strconv.FormatUint(n, 10))
}
