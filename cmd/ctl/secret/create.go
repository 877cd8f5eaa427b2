package secret

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
	return data.NewCreate(env, "secret", func(ctx context.Context, c *client.Client, d data.Spec) error {
		r, err := c.Control().CreateSecret(ctx, &api.CreateSecretRequest{Spec: &api.SecretSpec{
			Annotations: d.Annotations, Data: d.Bytes, Templating: d.Templating,
		}})
		if err != nil {
			return err
		}
		return cli.PrintCreated(env.Printer(), kinds.Secrets().View, kinds.WithoutData(r.Secret))
	})
}
