package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
	"holdfast/internal/errkind"
)

// maxChanged is how many fields a line of a history names.
const maxChanged = 3

type historyOptions struct {
	newest uint64
}

// NewHistory makes the command that shows the versions of an object, as far as they are kept.
func NewHistory[T kinds.Object](env *Env, k kinds.Kind[T]) *cobra.Command {
	o := &historyOptions{}
	use, args := pastArgs(k)
	cmd := &cobra.Command{
		Use:   "history " + use,
		Short: "Show who changed a " + k.Noun + ", when, what and why",
		Long: "Show who changed a " + k.Noun + ", when, what and why, as far back as the history is kept.\n" +
			"One that was removed is found by its name or by its whole ID. A name stands for all that had it.\n" +
			"With -q, print the revisions only.",
		Args: args,
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runHistory(ctx, env, c, k, o, args)
		}),
	}
	cmd.Flags().Uint64VarP(&o.newest, "newest", "n", 0, "only the newest `N` versions; 0 for all")
	return cmd
}

func runHistory[T kinds.Object](
	ctx context.Context, env *Env, c *client.Client, k kinds.Kind[T], o *historyOptions, args []string,
) error {
	var found []*holdfast.Version
	err := locate(ctx, c, k, args, func(id, name string) (err error) {
		found, err = versions(ctx, c, &holdfast.HistoryRequest{
			Kind: k.Number, ID: id, Name: name, NewestFirst: o.newest > 0, Fields: true,
		}, o.newest)
		if err == nil && len(found) == 0 {
			err = errkind.New(errkind.NotFound, "not found, nor in the history that is kept").On(k.Noun, id+name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return printHistory(env, k, found)
}

// versions returns what a request asks for, the oldest first, and not more than newest unless
// that is 0.
func versions(
	ctx context.Context, c *client.Client, r *holdfast.HistoryRequest, newest uint64,
) ([]*holdfast.Version, error) {
	var found []*holdfast.Version
	for v, err := range c.History(ctx, r) {
		if err != nil {
			return nil, err
		}
		if found = append(found, v); uint64(len(found)) == newest {
			break
		}
	}
	slices.SortStableFunc(found, func(a, b *holdfast.Version) int {
		return cmp.Compare(a.Revision, b.Revision)
	})
	return found, nil
}

// version is what -o json prints of one.
type version struct {
	Revision  uint64          `json:"revision,string"`
	Action    string          `json:"action"`
	At        string          `json:"at,omitempty"`
	Actor     string          `json:"actor,omitempty"`
	Message   string          `json:"message,omitempty"`
	Compacted bool            `json:"compacted,omitempty"`
	Fields    []field         `json:"fields,omitempty"`
	Object    json.RawMessage `json:"object"`

	id string
}

func printHistory[T kinds.Object](env *Env, k kinds.Kind[T], found []*holdfast.Version) error {
	p := env.Printer()
	all := make([]version, len(found))
	ids := make(map[string]bool)
	for i, v := range found {
		o, err := k.Take(v.Object)
		if err != nil {
			return err
		}
		all[i] = version{
			Revision: v.Revision, Action: actionWord(v.Action), At: kinds.FormatTime(v.At), Actor: v.Actor,
			Message: v.Message, Compacted: v.Compacted, Fields: fields(v.Fields), id: o.GetID(),
		}
		if all[i].Object, err = p.Encode(o); err != nil {
			return err
		}
		ids[o.GetID()] = true
	}
	return cli.PrintList(p, historyView(len(ids) > 1), all)
}

// historyView says how versions look; of several objects, with their IDs.
func historyView(several bool) cli.View[version] {
	revision := func(v version) string { return strconv.FormatUint(v.Revision, 10) }
	columns := []cli.Column[version]{{Title: "REVISION", Value: revision}}
	if several {
		columns = append(columns, cli.Column[version]{Title: "ID", Value: func(v version) string { return v.id }})
	}
	return cli.View[version]{
		ID: revision, Name: revision,
		Columns: append(columns,
			cli.Column[version]{Title: "WHEN", Value: func(v version) string { return v.At }},
			cli.Column[version]{Title: "WHO", Value: func(v version) string { return v.Actor }},
			cli.Column[version]{Title: "ACTION", Value: func(v version) string { return v.Action }},
			cli.Column[version]{Title: "CHANGED", Value: changedFields},
			cli.Column[version]{Title: "MESSAGE", Value: func(v version) string { return v.Message }},
		),
	}
}

// changedFields names the fields that a version changed, in short.
func changedFields(v version) string {
	if v.Compacted {
		return "(compacted)"
	}
	var names []string
	for _, f := range v.Fields {
		name := f.Path
		for _, prefix := range []string{"spec.", "annotations.", "task.", "container."} {
			name = strings.TrimPrefix(name, prefix)
		}
		names = append(names, name)
	}
	if more := len(names) - maxChanged; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxChanged], ", "), more)
	}
	return strings.Join(names, ", ")
}
