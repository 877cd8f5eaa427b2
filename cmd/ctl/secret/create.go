package secret

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/cmd/ctl/internal/values"
	"holdfast/internal/cli"
)

type createOptions struct {
	labels   []string
	template string
}

func newCreate(env *command.Env) *cobra.Command {
	o := &createOptions{}
	cmd := &cobra.Command{
		Use:   "create [flags] NAME FILE|-",
		Short: "Create a secret from a file or from standard input",
		Args:  command.ExactArgs(2), //nolint:mnd // NAME and FILE
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runCreate(ctx, env, c, o, args[0], args[1])
		}),
	}
	cmd.Flags().StringArrayVarP(&o.labels, "label", "l", nil, "label, `KEY[=VALUE]`")
	cmd.Flags().StringVar(&o.template, "template-driver", "", "driver that fills in the data as a template")
	return cmd
}

func runCreate(
	ctx context.Context, env *command.Env, c *client.Client, o *createOptions, name, file string,
) error {
	labels, err := values.ParseLabels(o.labels)
	if err != nil {
		return cli.Usagef("--label: %v", err)
	}
	data, err := env.ReadData(file)
	if err != nil {
		return err
	}
	spec := &api.SecretSpec{Annotations: api.Annotations{Name: name, Labels: labels}, Data: data}
	if o.template != "" {
		spec.Templating = &api.Driver{Name: o.template}
	}
	r, err := c.Control().CreateSecret(ctx, &api.CreateSecretRequest{Spec: spec})
	if err != nil {
		return err
	}
	return cli.PrintCreated(env.Printer(), kinds.Secrets().View, kinds.WithoutData(r.Secret))
}
