package stack

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
	"holdfast/internal/errkind"
)

func newGet(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "get [flags] NAME [RELEASE]",
		Short: "Print the Compose file of a release",
		Long: "Print the Compose file that a release was made of, merged and with its variables replaced.\n" +
			"Without a number it is the deployed release, or the newest one if none is deployed.\n" +
			"-o json shows the whole release; nothing shows the data of its secrets.",
		Args: command.Args(1, 2),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runGet(ctx, env, c, args)
		}),
	}
}

func runGet(ctx context.Context, env *command.Env, c *client.Client, args []string) error {
	number, err := parseRelease(args)
	if err != nil {
		return err
	}
	r, err := c.Stacks().GetRelease(ctx, &holdfast.GetReleaseRequest{Name: args[0], Number: number})
	if err != nil {
		return err
	}
	p := env.Printer()
	switch p.Format {
	case cli.JSON:
		return p.JSON(r)
	case cli.ID, cli.Name:
		return env.Printf("%s", releaseNumber(r.Release))
	}
	if r.Compose == "" {
		return errkind.New(errkind.NotFound, "release %d was deployed without a Compose file", r.Release.GetNumber()).
			On("stack", args[0]).WithHint("-o json shows what it deployed")
	}
	// As it is: it is for files, too.
	_, err = p.Out.Write([]byte(r.Compose))
	return err
}
