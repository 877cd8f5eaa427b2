package stack

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
)

// servicesPage is how many services' tasks are asked for at once.
const servicesPage = 1000

func newPs(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "ps [flags] NAME",
		Short: "List the tasks of a stack's services",
		Args:  command.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runPs(ctx, env, c, args[0])
		}),
	}
}

func runPs(ctx context.Context, env *command.Env, c *client.Client, name string) error {
	services, err := servicesOf(ctx, c, name)
	if err != nil {
		return err
	}
	var tasks []*api.Task
	names := map[string]string{}
	for some := range slices.Chunk(services, servicesPage) {
		var ids []string
		for _, s := range some {
			ids = append(ids, s.ID)
			names[s.ID] = s.Spec.Annotations.Name
		}
		found, err := client.Collect(kinds.Tasks().List(ctx, c, holdfast.Selector{ServiceIDs: ids}))
		if err != nil {
			return err
		}
		tasks = append(tasks, found...)
	}
	// By service, in the order of their names.
	slices.SortStableFunc(tasks, func(a, b *api.Task) int {
		return cmp.Or(cmp.Compare(names[a.ServiceID], names[b.ServiceID]), cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.ID, b.ID))
	})
	return cli.PrintList(env.Printer(), kinds.Tasks().View, tasks)
}
