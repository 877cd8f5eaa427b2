package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
)

// DiffExitCodes tells, in help, what the exit codes of diff are.
const DiffExitCodes = "Exit codes: 0 equal, 1 different, 2 wrong usage, 8 failed."

type diffOptions struct {
	from, to uint64
}

// NewDiff makes the command that compares an object at two revisions.
func NewDiff[T kinds.Object](env *Env, k kinds.Kind[T]) *cobra.Command {
	o := &diffOptions{}
	use, args := pastArgs(k)
	cmd := &cobra.Command{
		Use:   "diff " + use,
		Short: "Show how a " + k.Noun + " differs between two revisions",
		Long: "Show how a " + k.Noun + " differs between two revisions; without any, what its last change was.\n" +
			"One that was removed is found by its name or by its whole ID.\n" + DiffExitCodes,
		Args: args,
	}
	fs := cmd.Flags()
	fs.Uint64Var(&o.from, "from", 0, "older `REVISION` (default: before the last change up to --to)")
	fs.Uint64Var(&o.to, "to", 0, "newer `REVISION` (default: the present one)")
	cmd.RunE = env.RunDiff(func(ctx context.Context, c *client.Client, args []string) error {
		return runDiff(ctx, env, c, k, o, fs, args)
	})
	return cmd
}

func runDiff[T kinds.Object](
	ctx context.Context, env *Env, c *client.Client, k kinds.Kind[T], o *diffOptions, fs *pflag.FlagSet, args []string,
) error {
	// 0 stands for what the flag's default is, which hardly anyone means who writes it.
	for flag, value := range map[string]uint64{"from": o.from, "to": o.to} {
		if value == 0 && fs.Changed(flag) {
			return cli.Usagef("--%s: 0 is not a revision of a %s; they begin with 1", flag, k.Noun)
		}
	}
	var found *holdfast.DiffResponse
	err := locate(ctx, c, k, args, func(id, name string) (err error) {
		found, err = c.Diff(ctx, &holdfast.DiffRequest{From: o.from, To: o.to, Kind: k.Number, ID: id, Name: name})
		return err
	})
	if err != nil {
		return err
	}
	return PrintDiff(env, found)
}

// diff is what -o json prints of a comparison.
type diff struct {
	From    uint64       `json:"from,string"`
	To      uint64       `json:"to,string"`
	Objects []ObjectDiff `json:"objects"`
}

// ObjectDiff is how an object differs, as -o json prints it.
type ObjectDiff struct {
	Kind   string  `json:"kind"`
	ID     string  `json:"id,omitempty"` // one that is not there yet has none
	Name   string  `json:"name,omitempty"`
	Action string  `json:"action"`
	Fields []field `json:"fields,omitempty"`
}

// field is a field that differs. Values are JSON, and left out where there is none.
type field struct {
	Path   string          `json:"path"`
	Old    json.RawMessage `json:"old,omitempty"`
	New    json.RawMessage `json:"new,omitempty"`
	Secret bool            `json:"secret,omitempty"`
}

func fields(all []holdfast.FieldDiff) []field {
	var found []field
	for _, f := range all {
		found = append(found, field{Path: f.Path, Old: rawJSON(f.Old), New: rawJSON(f.New), Secret: f.Secret})
	}
	return found
}

// rawJSON takes text for the JSON that it is to be; if it is none, for a string.
func rawJSON(text string) json.RawMessage {
	if text == "" || json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, err := json.Marshal(text)
	if err != nil { // strings always have JSON
		return nil
	}
	return quoted
}

// PrintDiff prints a comparison, and returns cli.Different if there is a difference.
func PrintDiff(env *Env, r *holdfast.DiffResponse) error {
	err := PrintObjectDiffs(env, r.Objects, func(all []ObjectDiff) any {
		return diff{From: r.From, To: r.To, Objects: all}
	})
	if err == nil && len(r.Objects) > 0 {
		err = cli.Different{}
	}
	return err
}

// PrintObjectDiffs prints how objects differ. document makes of it what -o json prints.
func PrintObjectDiffs(env *Env, objects []*holdfast.ObjectDiff, document func([]ObjectDiff) any) error {
	all := make([]ObjectDiff, len(objects))
	for i, o := range objects {
		all[i] = ObjectDiff{
			Kind: kinds.Of(o.Kind).Noun, ID: o.ID, Name: o.Name, Action: diffWord(o.Action), Fields: fields(o.Fields),
		}
	}
	p := env.Printer()
	switch p.Format {
	case cli.JSON:
		return p.JSON(document(all))
	case cli.ID, cli.Name:
		return cli.PrintList(p, cli.View[ObjectDiff]{
			ID:   func(o ObjectDiff) string { return cmp.Or(o.ID, o.Name) },
			Name: func(o ObjectDiff) string { return o.Name },
		}, all)
	}
	for _, o := range all {
		if _, err := p.Out.Write([]byte(o.text())); err != nil {
			return err
		}
	}
	return nil
}

// text shows how an object differs: a line for it, and one for each field.
func (o ObjectDiff) text() string {
	var b strings.Builder
	name := cmp.Or(o.Name, o.ID)
	if o.Name != "" && o.ID != "" {
		name = fmt.Sprintf("%s (%s)", o.Name, o.ID)
	}
	fmt.Fprintf(&b, "%s %s %s\n", o.Kind, cli.Clean(name), o.Action)
	width := 0
	for _, f := range o.Fields {
		width = max(width, utf8.RuneCountInString(cli.Clean(f.Path)))
	}
	for _, f := range o.Fields {
		fmt.Fprintf(&b, "  %-*s   %s\n", width, cli.Clean(f.Path), f.text())
	}
	return b.String()
}

func (f field) text() string {
	if f.Secret && len(f.Old)+len(f.New) == 0 {
		return "changed"
	}
	value := func(v json.RawMessage) string {
		if len(v) == 0 {
			return "(none)"
		}
		return cli.Clean(string(v))
	}
	return value(f.Old) + " → " + value(f.New)
}

// diffWord names how an object differs.
func diffWord(a holdfast.Action) string {
	switch a {
	case holdfast.Action_ACTION_CREATE:
		return "added"
	case holdfast.Action_ACTION_UPDATE:
		return "changed"
	}
	return actionWord(a)
}
