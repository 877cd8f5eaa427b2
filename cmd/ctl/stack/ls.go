package stack

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
)

func newLs(env *command.Env) *cobra.Command {
	return command.Relist{
		Use: "ls [flags]", Short: "List stacks, with their newest releases", List: runLs,
		Kinds: []holdfast.Kind{
			holdfast.Kind_KIND_SERVICE, holdfast.Kind_KIND_NETWORK, holdfast.Kind_KIND_SECRET, holdfast.Kind_KIND_CONFIG,
		},
	}.New(env)
}

func runLs(ctx context.Context, env *command.Env, c *client.Client) error {
	r, err := c.Stacks().List(ctx, &holdfast.ListStacksRequest{})
	if err != nil {
		return err
	}
	return cli.PrintList(env.Printer(), view(env.Clock()), r.Stacks)
}

// view says how stacks look at a moment. A stack has no ID; its name is unique.
func view(now time.Time) cli.View[*holdfast.Stack] {
	number := func(title string, of func(*holdfast.Stack) uint64) cli.Column[*holdfast.Stack] {
		return cli.Column[*holdfast.Stack]{Title: title, Value: func(s *holdfast.Stack) string {
			return strconv.FormatUint(of(s), 10)
		}}
	}
	// What was deployed before there were releases has none.
	release := func(title string, of func(*holdfast.Release) string) cli.Column[*holdfast.Stack] {
		return cli.Column[*holdfast.Stack]{Title: title, Value: func(s *holdfast.Stack) string {
			if s.Release == nil {
				return ""
			}
			return of(s.Release)
		}}
	}
	return cli.View[*holdfast.Stack]{
		ID:   (*holdfast.Stack).GetName,
		Name: (*holdfast.Stack).GetName,
		Columns: []cli.Column[*holdfast.Stack]{
			{Title: "NAME", Value: (*holdfast.Stack).GetName},
			release("RELEASE", releaseNumber),
			release("STATUS", (*holdfast.Release).GetStatus),
			number("SERVICES", (*holdfast.Stack).GetServices),
			number("NETWORKS", (*holdfast.Stack).GetNetworks),
			number("SECRETS", (*holdfast.Stack).GetSecrets),
			number("CONFIGS", (*holdfast.Stack).GetConfigs),
			release("AGE", func(r *holdfast.Release) string { return kinds.FormatAge(r.GetAt(), now) }),
		},
	}
}

func releaseNumber(r *holdfast.Release) string { return strconv.FormatUint(r.GetNumber(), 10) }

func releaseTime(r *holdfast.Release) string { return kinds.FormatTime(r.GetAt()) }
