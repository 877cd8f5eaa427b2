// Package config holds the commands on configs.
package config

import (
	"github.com/spf13/cobra"

	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
)

// New makes the command "config" with its verbs.
func New(env *command.Env) *cobra.Command {
	return command.Group("config", "Manage configs",
		newCreate(env),
		command.NewLsData(env, kinds.Configs()),
		command.NewInspect(env, kinds.Configs()),
		command.NewHistory(env, kinds.Configs()),
		command.NewDiff(env, kinds.Configs()),
		command.NewRm(env, kinds.Configs()),
	)
}
