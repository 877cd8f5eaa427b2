package command

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
)

// NewInspect makes the command that shows objects of a kind. It shows those that it finds,
// and fails if one was not found.
func NewInspect[T kinds.Object](env *Env, k kinds.Kind[T]) *cobra.Command {
	var at At
	cmd := &cobra.Command{
		Use:   "inspect [flags] NAME|ID…",
		Short: "Show " + k.Noun + "s in full",
		Args:  MinArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			ctx = at.Context(ctx)
			var found []T
			var errs cli.Errors
			for _, arg := range args {
				o, err := k.Resolve(ctx, c, arg)
				if err == nil {
					o, err = k.Get(ctx, c, k.View.ID(o))
				}
				if err != nil {
					errs = append(errs, err)
					continue
				}
				found = append(found, o)
			}
			if len(found) > 0 {
				if err := cli.PrintObjects(env.Printer(), k.View, found); err != nil {
					return err
				}
			}
			if len(errs) > 0 {
				return errs
			}
			return nil
		}),
	}
	at.AddFlag(cmd.Flags())
	return cmd
}

// NewRm makes the command that removes objects of a kind. It prints what it removed, as it
// was named, and goes on after an error.
func NewRm[T kinds.Object](env *Env, k kinds.Kind[T]) *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME|ID…",
		Aliases: []string{"remove"},
		Short:   "Remove " + k.Noun + "s",
		Args:    MinArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return Each(args, func(arg string) error {
				o, err := k.Resolve(ctx, c, arg)
				if err != nil {
					return err
				}
				if err := k.Remove(ctx, c, k.View.ID(o)); err != nil {
					return err
				}
				return env.printRemoved(arg, k.View.ID(o))
			})
		}),
	}
}

// removed is what -o json prints of an object that is no more.
type removed struct {
	ID string `json:"id"`
}

func (e *Env) printRemoved(arg, id string) error {
	switch p := e.Printer(); p.Format {
	case cli.JSON:
		return p.JSON(removed{ID: id})
	case cli.ID:
		return e.Printf("%s", id)
	default:
		return e.Printf("%s", cli.Clean(arg))
	}
}

// Each calls do for each name, and goes on after an error.
func Each(names []string, do func(name string) error) error {
	var errs cli.Errors
	for _, name := range names {
		if err := do(name); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}
