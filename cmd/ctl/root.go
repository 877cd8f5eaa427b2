package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cmd/ctl/cluster"
	"holdfast/cmd/ctl/config"
	"holdfast/cmd/ctl/diff"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/member"
	"holdfast/cmd/ctl/network"
	"holdfast/cmd/ctl/node"
	"holdfast/cmd/ctl/secret"
	"holdfast/cmd/ctl/service"
	"holdfast/cmd/ctl/stack"
	"holdfast/cmd/ctl/task"
	"holdfast/cmd/ctl/version"
	"holdfast/cmd/ctl/watch"
)

// newRoot makes the whole tree of commands.
func newRoot(env *command.Env) *cobra.Command {
	root := command.Group("ctl", "Manage a Holdfast cluster",
		cluster.New(env),
		node.New(env),
		member.New(env),
		service.New(env),
		network.New(env),
		secret.New(env),
		config.New(env),
		task.New(env),
		stack.New(env),
		watch.New(env),
		diff.New(env),
		version.New(env),
	)
	root.Long = `ctl manages a Holdfast cluster through its managers.

Objects are named by name, by ID, or by the beginning of an ID that only one has.
Data goes to standard output, talk to standard error.

Exit codes: 0 done, 1 failed, 2 wrong usage, 4 not allowed, 5 no leader, outcome
unknown or nobody there, 6 exists, changed meanwhile or refused, 7 not found.
Of diff: 0 equal, 1 different, 2 wrong usage, 8 failed. What watches until it is
interrupted, or until a given --timeout is over, exits with 0 then.`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(command.FlagError)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(env.Streams.Out)
	root.SetErr(env.Streams.Err)
	root.SetIn(env.Streams.In)
	env.AddFlags(root.PersistentFlags())
	root.SetUsageFunc(func(cmd *cobra.Command) error { return printUsage(env, cmd) })
	return root
}

// printUsage prints how a command is used, as wide as the terminal is.
func printUsage(env *command.Env, cmd *cobra.Command) error {
	var b strings.Builder
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "Usage: %s COMMAND\n\nCommands:\n", cmd.CommandPath())
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	} else {
		fmt.Fprintf(&b, "Usage: %s\n", cmd.UseLine())
	}
	width := env.Streams.Width()
	if cmd.HasAvailableLocalFlags() && cmd.HasParent() {
		fmt.Fprintf(&b, "\nFlags:\n%s", cmd.LocalFlags().FlagUsagesWrapped(width))
	}
	fmt.Fprintf(&b, "\nFlags of all commands:\n%s", cmd.Root().PersistentFlags().FlagUsagesWrapped(width))
	_, err := cmd.OutOrStdout().Write([]byte(b.String()))
	return err
}
