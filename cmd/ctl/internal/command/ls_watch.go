package command

import (
	"context"
	"strings"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
)

// nameWidth is how wide the column of names is from the start.
const nameWidth = 20

// watch lists the objects that a selector picks, and then prints each change. If changes were
// compacted that it has not seen, it begins anew.
func (l Ls[T]) watch(ctx context.Context, env *Env, c *client.Client, o *lsOptions, s holdfast.Selector) error {
	for {
		f := &follower[T]{env: env, kind: l.Kind, filter: &o.filter}
		err := Watch(ctx, env, c, client.WatchOptions{
			Kinds: []holdfast.Kind{l.Kind.Number}, Selector: s, Initial: true,
			Previous: true, // for what is removed: of that not much is told else
		}, f.take)
		if !f.listed || !errkind.Is(err, errkind.OutOfRange) {
			return err
		}
		env.Notef("some changes were compacted before they were seen (%v); here is what is there now", err)
	}
}

// follower prints what is there, and then each change.
type follower[T kinds.Object] struct {
	env    *Env
	kind   kinds.Kind[T]
	filter *Filter
	there  []client.Event
	listed bool
	rows   *cli.Rows // of a table, once it is listed
}

func (f *follower[T]) take(ev client.Event) error {
	switch ev.Type {
	case client.Present:
		f.there = append(f.there, ev)
	case client.Restarted:
		f.there = nil
	case client.Synced:
		return f.list()
	case client.Changed:
		return f.change(ev)
	}
	return nil
}

// list prints what was there at the start.
func (f *follower[T]) list() error {
	f.listed = true
	var rows [][]string
	for _, ev := range f.there {
		o, err := f.kind.Take(ev.Object)
		switch {
		case err != nil:
			return err
		case !f.filter.passes(f.kind.Labels(o)):
		case f.table():
			rows = append(rows, f.row(present, o))
		default:
			if err := f.line(ev, present, o); err != nil {
				return err
			}
		}
	}
	f.there = nil
	if !f.table() {
		return nil
	}
	titles := []string{"ACTION"}
	for _, c := range f.kind.View.Columns {
		titles = append(titles, c.Title)
	}
	f.rows = cli.NewRows(f.env.Streams.Out)
	widths := []string{"created", strings.Repeat("x", id.Length)}
	if len(titles) > 2 && titles[2] == "NAME" {
		widths = append(widths, strings.Repeat("x", nameWidth))
	}
	f.rows.Widen(widths...) // such are to come, if there is nothing yet
	return f.rows.Print(append([][]string{titles}, rows...)...)
}

// change prints a change. Of what was removed it shows what it was.
func (f *follower[T]) change(ev client.Event) error {
	shown, err := f.kind.Take(ev.Object)
	if err != nil {
		return err
	}
	removed := ev.Action == holdfast.Action_ACTION_REMOVE
	is, was := !removed && f.filter.passes(f.kind.Labels(shown)), removed
	if ev.Previous != nil {
		before, err := f.kind.Take(ev.Previous)
		if err != nil {
			return err
		}
		was = f.filter.passes(f.kind.Labels(before))
		if !is {
			shown = before
		}
	}
	action := ActionOf(ev)
	switch {
	case !is && !was:
		return nil
	// What is filtered here is told as managers tell of their selectors: what a change brings
	// in is created, and what it takes out is removed.
	case is && !was && f.filter.more():
		action = actionWord(holdfast.Action_ACTION_CREATE)
	case !is:
		ev.Left = ev.Left || !removed
		action = actionWord(holdfast.Action_ACTION_REMOVE)
	}
	if f.table() {
		return f.rows.Print(f.row(action, shown))
	}
	return f.line(ev, action, shown)
}

func (f *follower[T]) table() bool {
	format := f.env.Printer().Format
	return format == "" || format == cli.Table
}

func (f *follower[T]) row(action string, o T) []string {
	row := []string{action}
	for _, c := range f.kind.View.Columns {
		row = append(row, c.Value(o))
	}
	return row
}

// line prints an object as one line of what is no table.
func (f *follower[T]) line(ev client.Event, action string, o T) error {
	p := f.env.Printer()
	if p.Format == cli.JSON {
		return PrintChange(p, kinds.Of(f.kind.Number), ev, action, false)
	}
	return cli.PrintList(p, f.kind.View, []T{o})
}
