package service

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/api"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
)

func newScale(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "scale NAME|ID=REPLICAS…",
		Short: "Set the number of tasks of services",
		Args:  command.MinArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runScale(ctx, env, c, args)
		}),
	}
}

// runScale scales each service by itself, and goes on after an error.
func runScale(ctx context.Context, env *command.Env, c *client.Client, args []string) error {
	wanted := make(map[string]uint64)
	for _, arg := range args { // all are read before any is done
		name, number, _ := strings.Cut(arg, "=")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || name == "" {
			return cli.Usagef("%q is not NAME=REPLICAS", arg)
		}
		wanted[arg] = n
	}
	return command.Each(args, func(arg string) error {
		name, _, _ := strings.Cut(arg, "=")
		s, err := kinds.Services().Resolve(ctx, c, name)
		if err != nil {
			return err
		}
		s, err = change(ctx, c, s.ID, &api.UpdateServiceRequest{}, func(spec *api.ServiceSpec) error {
			return setReplicas(spec, wanted[arg])
		})
		if err != nil {
			return err
		}
		if p := env.Printer(); p.Format != "" {
			return cli.PrintCreated(p, kinds.Services().View, s)
		}
		return env.Printf("%s scaled to %d", cli.Clean(name), wanted[arg])
	})
}
