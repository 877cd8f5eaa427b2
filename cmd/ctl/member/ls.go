package member

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
)

func newLs(env *command.Env) *cobra.Command {
	return command.Relist{
		Use: "ls [flags]", Short: "List members", Kinds: []holdfast.Kind{holdfast.Kind_KIND_NODE}, List: runLs,
	}.New(env)
}

func runLs(ctx context.Context, env *command.Env, c *client.Client) error {
	members, err := list(ctx, c)
	if err != nil {
		return err
	}
	p := env.Printer()
	if p.Format != cli.JSON {
		return cli.PrintList(p, View(), members)
	}
	all := make([]JSON, len(members))
	for i, m := range members {
		all[i] = ToJSON(m)
	}
	return p.JSON(all)
}
