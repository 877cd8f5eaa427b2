package command

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
)

// pastArgs says how a verb names its object: where there is only one, it need not.
func pastArgs[T kinds.Object](k kinds.Kind[T]) (use string, args cobra.PositionalArgs) {
	if k.Sole {
		return "[flags] [NAME|ID]", MaxArgs(1)
	}
	return "[flags] NAME|ID", ExactArgs(1)
}

// locate finds an object that may be gone by now: by its ID, else by its name, as managers know
// them; else, of those that are there, by the beginning of its ID. ask fails with
// errkind.NotFound if there is nothing.
func locate[T kinds.Object](
	ctx context.Context, c *client.Client, k kinds.Kind[T], args []string, ask func(id, name string) error,
) error {
	if len(args) == 0 {
		for o, err := range k.List(ctx, c, holdfast.Selector{}) {
			if err != nil {
				return err
			}
			return ask(o.GetID(), "")
		}
		return errkind.New(errkind.NotFound, "not found").On(k.Noun, "")
	}
	arg := args[0]
	if arg == "" {
		return errkind.Field(k.Noun, "is empty")
	}
	if id.Valid(arg) {
		if err := ask(arg, ""); !errkind.Is(err, errkind.NotFound) {
			return err
		}
	}
	err := ask("", arg)
	if !errkind.Is(err, errkind.NotFound) || !id.ValidPrefix(arg) || id.Valid(arg) {
		return err
	}
	o, resolveErr := k.Resolve(ctx, c, arg)
	switch {
	case errkind.Is(resolveErr, errkind.NotFound):
		return err // which tells how far the past was searched
	case resolveErr != nil:
		return resolveErr
	}
	return ask(o.GetID(), "")
}
