package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"holdfast/internal/cli"
)

// Group makes a command that only has other commands.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: NeedsCommand}
	g.AddCommand(commands...)
	return g
}

// NeedsCommand is what a group does when it is called by itself, or with a verb that it has
// not.
func NeedsCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(cmd, "%q needs a command", cmd.CommandPath())
	}
	return usage(cmd, "%q has no command %q", cmd.CommandPath(), args[0])
}

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error { return between(cmd, args, 0, 0) }

// ExactArgs wants n arguments.
func ExactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return between(cmd, args, n, n) }
}

// MinArgs wants n arguments or more.
func MinArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return between(cmd, args, n, -1) }
}

// MaxArgs wants n arguments or fewer.
func MaxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return between(cmd, args, 0, n) }
}

// Args wants least to most arguments.
func Args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return between(cmd, args, least, most) }
}

func between(cmd *cobra.Command, args []string, least, most int) error {
	if n := len(args); n >= least && (most < 0 || n <= most) {
		return nil
	}
	want := fmt.Sprintf("%d", least)
	switch {
	case most < 0:
		want = fmt.Sprintf("at least %d", least)
	case most != least && least > 0:
		want = fmt.Sprintf("%d to %d", least, most)
	case most != least:
		want = fmt.Sprintf("at most %d", most)
	}
	noun := "arguments"
	if want == "1" || want == "at least 1" || want == "at most 1" {
		noun = "argument"
	}
	return usage(cmd, "%q takes %s %s, not %d", cmd.CommandPath(), want, noun, len(args))
}

// FlagError makes a wrong flag a wrong usage.
func FlagError(cmd *cobra.Command, err error) error { return usage(cmd, "%v", err) }

func usage(cmd *cobra.Command, format string, args ...any) error {
	return &cli.UsageError{
		Msg:  fmt.Sprintf(format, args...),
		Hint: fmt.Sprintf("%s --help tells how it is used", cmd.CommandPath()),
	}
}
