// Package network holds the commands on networks.
package network

import (
	"github.com/spf13/cobra"

	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
)

// New makes the command "network" with its verbs.
func New(env *command.Env) *cobra.Command {
	return command.Group("network", "Manage networks",
		newCreate(env),
		command.NewLs(env, kinds.Networks()),
		command.NewInspect(env, kinds.Networks()),
		command.NewHistory(env, kinds.Networks()),
		command.NewDiff(env, kinds.Networks()),
		command.NewRm(env, kinds.Networks()),
	)
}
