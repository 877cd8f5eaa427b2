// Package cluster holds the commands on the cluster as a whole.
package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/errkind"
)

// New makes the command "cluster" with its verbs.
func New(env *command.Env) *cobra.Command {
	return command.Group("cluster", "Manage the cluster",
		newCompact(env), newInspect(env), newStatus(env), newToken(env), newUpdate(env),
		command.NewHistory(env, kinds.Clusters()), command.NewDiff(env, kinds.Clusters()))
}

// find returns the one cluster that there is.
func find(ctx context.Context, c *client.Client) (*api.Cluster, error) {
	for cluster, err := range kinds.Clusters().List(ctx, c, holdfast.Selector{}) {
		return cluster, err
	}
	return nil, errkind.New(errkind.NotFound, "not found").On("cluster", "")
}
