package config

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/data"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
)

func newCreate(env *command.Env) *cobra.Command {
	return data.NewCreate(env, "config", func(ctx context.Context, c *client.Client, d data.Spec) error {
		r, err := c.Control().CreateConfig(ctx, &api.CreateConfigRequest{Spec: &api.ConfigSpec{
			Annotations: d.Annotations, Data: d.Bytes, Templating: d.Templating,
		}})
		if err != nil {
			return err
		}
		return cli.PrintCreated(env.Printer(), kinds.Configs().View, r.Config)
	})
}
