package stack

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
)

type historyOptions struct {
	newest uint64
}

func newHistory(env *command.Env) *cobra.Command {
	o := &historyOptions{}
	cmd := &cobra.Command{
		Use:   "history [flags] NAME",
		Short: "Show the releases of a stack: who deployed it, when, what that changed and why",
		Long: "Show the releases of a stack that are kept, the oldest first: who deployed it, when, what that\n" +
			"changed and why. With -q, print their numbers only.",
		Args: command.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runHistory(ctx, env, c, o, args[0])
		}),
	}
	cmd.Flags().Uint64VarP(&o.newest, "newest", "n", 0, "only the newest `N` releases; 0 for all")
	return cmd
}

func runHistory(ctx context.Context, env *command.Env, c *client.Client, o *historyOptions, name string) error {
	r, err := c.Stacks().History(ctx, &holdfast.StackHistoryRequest{Name: name})
	if err != nil {
		return err
	}
	shown := r.Releases
	if n := uint64(len(shown)); o.newest > 0 && o.newest < n {
		shown = shown[n-o.newest:]
	}
	return cli.PrintList(env.Printer(), historyView(), shown)
}

func historyView() cli.View[*holdfast.Release] {
	return cli.View[*holdfast.Release]{
		ID: releaseNumber, Name: releaseNumber,
		Columns: []cli.Column[*holdfast.Release]{
			{Title: "RELEASE", Value: releaseNumber},
			{Title: "WHEN", Value: releaseTime},
			{Title: "WHO", Value: (*holdfast.Release).GetActor},
			{Title: "STATUS", Value: (*holdfast.Release).GetStatus},
			{Title: "CHANGES", Value: releaseChanges},
			{Title: "MESSAGE", Value: (*holdfast.Release).GetMessage},
		},
	}
}

// releaseChanges tells what a release did: "2 created, 1 updated", and which one it went back to.
func releaseChanges(r *holdfast.Release) string {
	var done []string
	for _, one := range []struct {
		count uint32
		word  string
	}{{r.Created, "created"}, {r.Updated, "updated"}, {r.Removed, "removed"}} {
		if one.count > 0 {
			done = append(done, fmt.Sprintf("%d %s", one.count, one.word))
		}
	}
	text := strings.Join(done, ", ")
	if text == "" {
		text = "none"
	}
	if r.RollbackOf != 0 {
		text += fmt.Sprintf(" (rollback to %d)", r.RollbackOf)
	}
	return text
}
