package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/values"
	"holdfast/internal/cli"
)

// token is what -o json prints of one.
type token struct {
	Role  string `json:"role"`
	Token string `json:"token"`
}

func newToken(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "token [flags] [manager|worker]",
		Short: "Print the tokens that new nodes join with; with -q, the tokens alone",
		Args:  command.MaxArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runToken(ctx, env, c, args)
		}),
	}
}

func runToken(ctx context.Context, env *command.Env, c *client.Client, args []string) error {
	if len(args) > 0 {
		if _, err := values.ParseChoice(args[0], "manager", "worker"); err != nil {
			return cli.Usagef("role %v", err)
		}
	}
	found, err := find(ctx, c)
	if err != nil {
		return err
	}
	all := []token{
		{"manager", found.RootCA.JoinTokens.Manager},
		{"worker", found.RootCA.JoinTokens.Worker},
	}
	if len(args) > 0 {
		wanted := all[0]
		if args[0] == "worker" {
			wanted = all[1]
		}
		all = []token{wanted}
	}
	return cli.PrintList(env.Printer(), cli.View[token]{
		ID:   func(t token) string { return t.Token },
		Name: func(t token) string { return t.Token },
		Columns: []cli.Column[token]{
			{Title: "ROLE", Value: func(t token) string { return t.Role }},
			{Title: "TOKEN", Value: func(t token) string { return t.Token }},
		},
	}, all)
}
