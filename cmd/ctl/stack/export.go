package stack

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
)

func newExport(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "export [flags] [NAME…]",
		Short: "Write the releases of stacks to standard output, to be imported elsewhere",
		Long: "Write the releases of stacks, or of all stacks, to standard output: one JSON object a line, the\n" +
			"oldest release of a stack first. They name the secrets and configs of the cluster, and do not\n" +
			"have their data. \"stack import\" reads them, once the managers keep releases elsewhere.",
		RunE: env.RunLong(func(ctx context.Context, c *client.Client, args []string) error {
			return runExport(ctx, env, c, args)
		}),
	}
}

func runExport(ctx context.Context, env *command.Env, c *client.Client, names []string) error {
	if len(names) == 0 {
		all, err := c.Stacks().List(ctx, &holdfast.ListStacksRequest{})
		if err != nil {
			return err
		}
		for _, s := range all.Stacks {
			names = append(names, s.Name)
		}
	}
	return command.Each(names, func(name string) error { return exportStack(ctx, env, c, name) })
}

func exportStack(ctx context.Context, env *command.Env, c *client.Client, name string) error {
	history, err := c.Stacks().History(ctx, &holdfast.StackHistoryRequest{Name: name})
	if err != nil {
		return err
	}
	for _, r := range history.Releases {
		got, err := c.Stacks().ExportRelease(ctx, &holdfast.ExportReleaseRequest{Name: name, Number: r.Number})
		if err != nil {
			return err
		}
		line, err := env.Printer().Encode(got.Record)
		if err != nil {
			return err
		}
		if err := env.Printf("%s", line); err != nil {
			return err
		}
	}
	return nil
}
