// Package task holds the commands on tasks. Tasks are written by controllers, so there is no
// command that makes one.
package task

import (
	"github.com/spf13/cobra"

	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
)

// New makes the command "task" with its verbs.
func New(env *command.Env) *cobra.Command {
	return command.Group("task", "Manage tasks",
		newLs(env),
		command.NewInspect(env, kinds.Tasks()),
		command.NewHistory(env, kinds.Tasks()),
		command.NewDiff(env, kinds.Tasks()),
		command.NewRm(env, kinds.Tasks()),
	)
}
