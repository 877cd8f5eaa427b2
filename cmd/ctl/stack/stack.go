// Package stack holds the commands on stacks: groups of objects that are deployed and removed
// as one.
package stack

import (
	"strconv"

	"github.com/spf13/cobra"

	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
)

// namespace is the label that says which stack an object belongs to.
const namespace = "com.docker.stack.namespace"

// New makes the command "stack" with its verbs.
func New(env *command.Env) *cobra.Command {
	return command.Group("stack", "Manage stacks",
		newDeploy(env),
		newLs(env),
		newServices(env),
		newPs(env),
		newHistory(env),
		newDiff(env),
		newGet(env),
		newRollback(env),
		newRm(env),
		newConfig(env),
		newExport(env),
		newImport(env),
	)
}

// parseRelease takes the number of a release from the arguments of a command that come after
// the stack's name; 0 if there is none.
func parseRelease(args []string) (uint64, error) {
	if len(args) < 2 {
		return 0, nil
	}
	n, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil || n == 0 {
		return 0, cli.Usagef("%q is not a release, which is a number from 1", args[1])
	}
	return n, nil
}
