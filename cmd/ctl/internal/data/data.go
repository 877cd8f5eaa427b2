// Package data holds what the commands for secrets and for configs have in common: both are
// made of data that is read from a file.
package data

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/values"
	"holdfast/internal/cli"
)

// Spec is what secrets and configs are made of.
type Spec struct {
	Annotations api.Annotations
	Bytes       []byte
	Templating  *api.Driver // nil if it is taken as it is
}

// NewCreate is the command that makes a secret or a config, noun says which, from a file.
// create makes the object and prints it.
func NewCreate(env *command.Env, noun string, create func(context.Context, *client.Client, Spec) error) *cobra.Command {
	var labels []string
	var template string
	cmd := &cobra.Command{
		Use:   "create [flags] NAME FILE|-",
		Short: "Create a " + noun + " from a file or from standard input",
		Args:  command.ExactArgs(2), //nolint:mnd // NAME and FILE
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			parsed, err := values.ParseLabels(labels)
			if err != nil {
				return cli.Usagef("--label: %v", err)
			}
			d := Spec{Annotations: api.Annotations{Name: args[0], Labels: parsed}}
			if d.Bytes, err = env.ReadData(args[1]); err != nil {
				return err
			}
			if template != "" {
				d.Templating = &api.Driver{Name: template}
			}
			return create(ctx, c, d)
		}),
	}
	cmd.Flags().StringArrayVarP(&labels, "label", "l", nil, "label, `KEY[=VALUE]`")
	cmd.Flags().StringVar(&template, "template-driver", "", "driver that fills in the data as a template")
	return cmd
}
