package command

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/cli"
	"holdfast/internal/errkind"
)

// Watch calls do for each event of a watch, and tells the person in front of the terminal of
// breaks. That it was interrupted, or that --timeout is over, is its end and no failure, unless
// it could not begin before.
func Watch(
	ctx context.Context, env *Env, c *client.Client, opts client.WatchOptions, do func(client.Event) error,
) error {
	began := false
	opts.OnBreak = func(err error) { env.Notef("the watch was broken off, and is tried again: %v", err) }
	opts.OnConnect = func(endpoint string) {
		if began {
			env.Notef("the watch goes on through %s", endpoint)
		}
		began = true
	}
	for ev, err := range c.Watch(ctx, opts) {
		switch {
		case err == nil:
		case errors.Is(ctx.Err(), context.Canceled) && errkind.Is(err, errkind.Canceled),
			began && errkind.Is(err, errkind.DeadlineReached) && errors.Is(ctx.Err(), context.DeadlineExceeded):
			return nil
		default:
			return err
		}
		if err := do(ev); err != nil {
			return err
		}
	}
	return nil
}

// Change is an event as it is printed. As JSON it has all its keys but those of what was not
// asked for or is not so.
type Change struct {
	Revision uint64          `json:"revision,string"`
	Action   string          `json:"action"`
	Kind     string          `json:"kind"`
	Object   json.RawMessage `json:"object"`
	Previous json.RawMessage `json:"previous,omitempty"`
	Left     bool            `json:"left,omitempty"`
}

// present is the action of an object that was there at the start.
const present = "present"

// PrintChange prints an event as a line of JSON; with the object as it was before, if previous
// is set.
func PrintChange(p cli.Printer, k kinds.Any, ev client.Event, action string, previous bool) error {
	c := Change{Revision: ev.Revision, Action: action, Kind: k.Noun, Left: ev.Left}
	var err error
	if c.Object, err = p.Encode(k.Unwrap(ev.Object)); err != nil {
		return err
	}
	if previous && ev.Previous != nil {
		if c.Previous, err = p.Encode(k.Unwrap(ev.Previous)); err != nil {
			return err
		}
	}
	return p.Line(c)
}

// ActionOf names what an event did.
func ActionOf(ev client.Event) string {
	if ev.Type == client.Present {
		return present
	}
	return actionWord(ev.Action)
}

// actionWord names what a transaction did to an object.
func actionWord(a holdfast.Action) string {
	switch a {
	case holdfast.Action_ACTION_CREATE:
		return "created"
	case holdfast.Action_ACTION_UPDATE:
		return "updated"
	case holdfast.Action_ACTION_REMOVE:
		return "removed"
	}
	return strings.ToLower(strings.TrimPrefix(a.String(), "ACTION_"))
}
