package command

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/cli"
	"holdfast/internal/errkind"
)

// Relist is the verb that lists what is no kind of object, but follows from some kinds. With
// --watch it prints the list again each time that one of them changes it.
type Relist struct {
	Use, Short string
	Kinds      []holdfast.Kind
	List       func(ctx context.Context, env *Env, c *client.Client) error
}

// New makes the command.
func (l Relist) New(env *Env) *cobra.Command {
	watch := false
	cmd := &cobra.Command{
		Use: l.Use, Aliases: []string{"list"}, Short: l.Short, Args: NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if watch {
				return env.RunLong(func(ctx context.Context, c *client.Client, _ []string) error {
					return l.Watch(ctx, env, c)
				})(cmd, args)
			}
			return env.Run(func(ctx context.Context, c *client.Client, _ []string) error {
				return l.List(ctx, env, c)
			})(cmd, args)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on and print the list again when it changes, until interrupted or for\n"+
		"--timeout if it is given; JSON is one list a line")
	return cmd
}

// Watch lists, and lists again after each revision that changes one of the kinds, until it is
// interrupted. If revisions were compacted that it has not seen, that is no loss: a list shows
// all.
func (l Relist) Watch(ctx context.Context, env *Env, c *client.Client) error {
	r := relisting{Relist: l, env: env}
	for {
		err := Watch(ctx, env, c, client.WatchOptions{Kinds: l.Kinds}, func(ev client.Event) error {
			if ev.Type == client.Changed && ev.Revision <= r.shown {
				return nil
			}
			return r.list(ctx, c)
		})
		if !errkind.Is(err, errkind.OutOfRange) {
			return err
		}
	}
}

// relisting is one watch.
type relisting struct {
	Relist
	env   *Env
	shown uint64 // all changes up to here are in what was listed last
	last  []byte // what was printed last
}

func (r *relisting) list(ctx context.Context, c *client.Client) error {
	var out bytes.Buffer
	env := *r.env
	env.Streams.Out = &out
	if err := r.List(ctx, &env, c); err != nil {
		return err
	}
	r.shown = c.Revision()
	if r.last != nil && bytes.Equal(out.Bytes(), r.last) {
		return nil
	}
	text := bytes.Clone(out.Bytes())
	switch p := r.env.Printer(); {
	case p.Format == cli.JSON:
		out.Reset()
		if err := json.Compact(&out, text); err != nil {
			return err
		}
		out.WriteByte('\n')
	case r.last != nil:
		out.Reset()
		out.WriteByte('\n')
		out.Write(text)
	}
	r.last = text
	_, err := out.WriteTo(r.env.Streams.Out)
	return err
}
