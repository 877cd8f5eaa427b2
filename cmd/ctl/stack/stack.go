// Package stack holds the commands on stacks: groups of objects that are deployed and removed
// as one.
package stack

import (
	"strings"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
)

// namespace is the label that says which stack an object belongs to.
const namespace = "com.docker.stack.namespace"

// New makes the command "stack" with its verbs.
func New(env *command.Env) *cobra.Command {
	return command.Group("stack", "Manage stacks", newDeploy(env), newLs(env), newServices(env), newRm(env))
}

// printChanges prints what was done: a line for each object that was changed, and the
// revision.
func printChanges(env *command.Env, changes []*holdfast.StackChange, revision uint64) error {
	changed := 0
	for _, ch := range changes {
		if ch.Action == holdfast.StackChange_UNCHANGED {
			continue
		}
		changed++
		if err := printChange(env, ch); err != nil {
			return err
		}
	}
	if changed == 0 {
		env.Notef("nothing to change")
	}
	if f := env.Printer().Format; f == cli.ID || f == cli.Name {
		return nil
	}
	return env.Printf("revision %d", revision)
}

func printChange(env *command.Env, ch *holdfast.StackChange) error {
	switch env.Printer().Format {
	case cli.ID:
		return env.Printf("%s", cli.Clean(ch.ID))
	case cli.Name:
		return env.Printf("%s", cli.Clean(ch.Name))
	}
	kind := strings.ToLower(strings.TrimPrefix(ch.Kind.String(), "KIND_"))
	return env.Printf("%s %s %s  %s", kind, cli.Clean(ch.Name), strings.ToLower(ch.Action.String()), cli.Clean(ch.ID))
}
