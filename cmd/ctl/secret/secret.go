// Package secret holds the commands on secrets.
package secret

import (
	"github.com/spf13/cobra"

	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
)

// New makes the command "secret" with its verbs.
func New(env *command.Env) *cobra.Command {
	return command.Group("secret", "Manage secrets",
		newCreate(env),
		command.NewLsData(env, kinds.Secrets()),
		command.NewInspect(env, kinds.Secrets()),
		command.NewHistory(env, kinds.Secrets()),
		command.NewDiff(env, kinds.Secrets()),
		command.NewRm(env, kinds.Secrets()),
	)
}
