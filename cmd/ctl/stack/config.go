package stack

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
)

// unnamed stands for the name of a stack that is not given.
const unnamed = "stack"

func newConfig(env *command.Env) *cobra.Command {
	o := &files{}
	cmd := &cobra.Command{
		Use:   "config -c FILE|- [-c FILE…] [flags] [NAME]",
		Short: "Print Compose files as one, as they would be deployed",
		Long: "Print Compose files as one, as they would be deployed: merged, with variables replaced, and without\n" +
			"what is not carried over. What deploy would refuse of the files is refused, too. No manager is asked.\n" +
			"NAME is that of the stack, which the names of its objects begin with. -q prints nothing, and only checks.",
		Args: command.MaxArgs(1),
	}
	o.addFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return env.RunAlone(func(args []string) error { return runConfig(cmd.Context(), env, o, args) })(cmd, args)
	}
	return cmd
}

func runConfig(ctx context.Context, env *command.Env, o *files, args []string) error {
	name := unnamed
	if len(args) > 0 {
		name = args[0]
	}
	r, err := o.load(ctx, env, name)
	if err != nil {
		return err
	}
	p := env.Printer()
	switch p.Format {
	case cli.ID:
		return nil
	case cli.Name:
		for i := range r.Services {
			if err := env.Printf("%s", r.Services[i].Annotations.Name); err != nil {
				return err
			}
		}
		return nil
	case cli.JSON:
		var document map[string]any
		if err := yaml.Unmarshal([]byte(r.Compose), &document); err != nil {
			return err
		}
		return p.JSON(document)
	}
	_, err = p.Out.Write([]byte(r.Compose))
	return err
}
