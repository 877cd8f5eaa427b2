package cluster

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
)

// compacted is what -o json prints.
type compacted struct {
	Floor uint64 `json:"floor,string"`
}

func newCompact(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "compact [flags] [REVISION]",
		Short: "Forget the history before a revision, by default the present one; prints the oldest that is left",
		Args:  command.MaxArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runCompact(ctx, env, c, args)
		}),
	}
}

func runCompact(ctx context.Context, env *command.Env, c *client.Client, args []string) error {
	req := &holdfast.CompactRequest{}
	if len(args) > 0 {
		// 0 would stand for the present revision: whoever writes it hardly means that.
		n, err := strconv.ParseUint(args[0], 10, 64)
		if err != nil || n == 0 {
			return cli.Usagef("%q is not a revision, which is a number from 1", args[0])
		}
		req.Revision = n
	}
	r, err := c.Cluster().Compact(ctx, req)
	if err != nil {
		return err
	}
	p := env.Printer()
	switch p.Format {
	case cli.JSON:
		return p.JSON(compacted{Floor: r.Floor})
	case cli.ID, cli.Name:
		return env.Printf("%d", r.Floor)
	}
	return cli.PrintTable(env.Streams.Out, []string{"FLOOR"}, [][]string{{strconv.FormatUint(r.Floor, 10)}})
}
