package stack

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/cmd/ctl/service"
	"holdfast/internal/errkind"
)

func newServices(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "services [flags] NAME",
		Short: "List the services of a stack",
		Args:  command.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runServices(ctx, env, c, args[0])
		}),
	}
}

func runServices(ctx context.Context, env *command.Env, c *client.Client, name string) error {
	found, err := servicesOf(ctx, c, name)
	if err != nil {
		return err
	}
	return service.Print(ctx, env, c, found)
}

// servicesOf finds the services of a stack. It may be without any, but not without anything.
func servicesOf(ctx context.Context, c *client.Client, name string) ([]*api.Service, error) {
	if name == "" { // which the label may have any value for
		return nil, errkind.Field("stack", "is empty")
	}
	found, err := client.Collect(kinds.Services().List(ctx, c, holdfast.Selector{Labels: map[string]string{namespace: name}}))
	if err == nil && len(found) == 0 {
		err = exists(ctx, c, name)
	}
	return found, err
}

func exists(ctx context.Context, c *client.Client, name string) error {
	r, err := c.Stacks().List(ctx, &holdfast.ListStacksRequest{})
	if err != nil {
		return err
	}
	for _, s := range r.Stacks {
		if s.Name == name {
			return nil
		}
	}
	return errkind.New(errkind.NotFound, "not found").On("stack", name)
}
