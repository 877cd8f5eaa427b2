package service

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
)

// statusPage is how many services are asked about at once.
const statusPage = 10_000

func newLs(env *command.Env) *cobra.Command {
	return command.Ls[*api.Service]{Kind: kinds.Services(), Print: Print}.New(env)
}

// Print prints a list of services; as a table, with the number of tasks that run.
func Print(ctx context.Context, env *command.Env, c *client.Client, services []*api.Service) error {
	p := env.Printer()
	view := kinds.Services().View
	if p.Format == "" || p.Format == cli.Table {
		statuses, err := statusesOf(ctx, c, services)
		if err != nil {
			return err
		}
		view = kinds.ServicesWithReplicas(statuses).View
	}
	return cli.PrintList(p, view, services)
}

func statusesOf(ctx context.Context, c *client.Client, services []*api.Service) (map[string]*kinds.Status, error) {
	statuses := make(map[string]*kinds.Status)
	for len(services) > 0 {
		n := min(len(services), statusPage)
		req := &api.ListServiceStatusesRequest{}
		for _, s := range services[:n] {
			req.Services = append(req.Services, s.ID)
		}
		r, err := c.Control().ListServiceStatuses(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, s := range r.Statuses {
			statuses[s.ServiceID] = s
		}
		services = services[n:]
	}
	return statuses, nil
}
