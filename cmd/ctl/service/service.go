// Package service holds the commands on services.
package service

import (
	"github.com/spf13/cobra"

	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
)

// New makes the command "service" with its verbs.
func New(env *command.Env) *cobra.Command {
	return command.Group("service", "Manage services",
		newCreate(env),
		newLs(env),
		command.NewInspect(env, kinds.Services()),
		command.NewHistory(env, kinds.Services()),
		command.NewDiff(env, kinds.Services()),
		newUpdate(env),
		newScale(env),
		command.NewRm(env, kinds.Services()),
	)
}
