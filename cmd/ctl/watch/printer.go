package watch

import (
	"strconv"
	"strings"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
	"holdfast/internal/id"
)

// nameWidth is how wide the column of names is from the start.
const nameWidth = 20

// printer prints events. What was there at the start it keeps until all of that is told, since
// it may be taken back.
type printer struct {
	env      *command.Env
	previous bool
	there    []client.Event
	rows     *cli.Rows // of a table, once it has begun
}

func (p *printer) take(ev client.Event) error {
	switch ev.Type {
	case client.Present:
		p.there = append(p.there, ev)
	case client.Restarted:
		p.there = nil
	case client.Synced:
		there := p.there
		p.there = nil
		return p.print(there...)
	case client.Changed:
		return p.print(ev)
	}
	return nil
}

// print prints events, and before the first of them the titles of the table.
func (p *printer) print(events ...client.Event) error {
	out := p.env.Printer()
	if p.rows == nil && (out.Format == "" || out.Format == cli.Table) {
		p.rows = cli.NewRows(out.Out)
		// What comes is not known; this much of it is, so that columns hardly ever move.
		p.rows.Widen("", "created", "service", strings.Repeat("x", id.Length), strings.Repeat("x", nameWidth))
		if err := p.rows.Print([]string{"REVISION", "ACTION", "KIND", "ID", "NAME", "CHANGED"}); err != nil {
			return err
		}
	}
	for _, ev := range events {
		if err := p.one(out, ev); err != nil {
			return err
		}
	}
	return nil
}

func (p *printer) one(out cli.Printer, ev client.Event) error {
	k := kinds.Of(ev.Kind)
	name, id := k.Name(ev.Object), k.ID(ev.Object)
	switch out.Format {
	case cli.JSON:
		return command.PrintChange(out, k, ev, command.ActionOf(ev), p.previous)
	case cli.Name:
		if name != "" {
			return p.env.Printf("%s", cli.Clean(name))
		}
		return p.env.Printf("%s", cli.Clean(id))
	case cli.ID:
		return p.env.Printf("%s", cli.Clean(id))
	}
	return p.rows.Print([]string{
		strconv.FormatUint(ev.Revision, 10), command.ActionOf(ev), k.Noun, id, name, changed(k, ev),
	})
}

// changed tells in short what a change was about: the spec, or else what became of the object.
func changed(k kinds.Any, ev client.Event) string {
	state := k.State(ev.Object)
	switch {
	case ev.Left:
		return "not selected any more"
	case ev.Action == holdfast.Action_ACTION_REMOVE:
		return ""
	case ev.Action != holdfast.Action_ACTION_UPDATE:
		return state
	}
	about := "state"
	if m := k.Meta(ev.Object); m.SpecVersion.Index == m.Version.Index {
		about = "spec"
	}
	if state != "" {
		about += ", now " + state
	}
	return about
}
