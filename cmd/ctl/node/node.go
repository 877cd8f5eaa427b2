// Package node holds the commands on nodes.
package node

import (
	"github.com/spf13/cobra"

	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
)

// New makes the command "node" with its verbs.
func New(env *command.Env) *cobra.Command {
	return command.Group("node", "Manage nodes",
		command.NewLs(env, kinds.Nodes()),
		command.NewInspect(env, kinds.Nodes()),
		command.NewHistory(env, kinds.Nodes()),
		command.NewDiff(env, kinds.Nodes()),
		newUpdate(env),
	)
}
