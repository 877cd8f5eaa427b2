package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/errkind"
)

// choice is a selector, and what it picks, told in another way.
type choice struct {
	selector holdfast.Selector
	picks    func(looks) bool
}

func choose(random *rand.Rand, nodes []string) choice {
	x := fmt.Sprint(random.IntN(3))
	node := nodes[random.IntN(len(nodes))]
	name := fmt.Sprint("o", random.IntN(names))
	all := []choice{
		{holdfast.Selector{}, func(looks) bool { return true }},
		{holdfast.Selector{Where: "x=" + x}, func(l looks) bool { return l.x == x }},
		{holdfast.Selector{Labels: map[string]string{"x": x}}, func(l looks) bool { return l.x == x }},
		{holdfast.Selector{Where: "x notin (" + x + ")"}, func(l looks) bool { return l.x != x }},
		{holdfast.Selector{NodeIDs: []string{node}}, func(l looks) bool { return l.node == node }},
		{holdfast.Selector{Names: []string{name, "o1"}}, func(l looks) bool { return l.name == name || l.name == "o1" }},
	}
	return all[random.IntN(len(all))]
}

// watcher watches, and keeps what it was given.
type watcher struct {
	choice choice
	kind   holdfast.Kind // unspecified: all that the tests look at
	opts   client.WatchOptions
	slow   func(context.Context) // called now and then, and may take its time

	began  uint64 // all up to here it must not see
	at     uint64 // all up to here it saw
	events map[uint64]map[string]holdfast.Action
	view   map[string]bool // of one that was given what is there
	breaks int
	floor  uint64 // if it was told that what it had not seen was compacted
}

func newWatcher(random *rand.Rand, nodes []string, now uint64) *watcher {
	w := &watcher{choice: choose(random, nodes), events: map[uint64]map[string]holdfast.Action{}}
	w.opts = client.WatchOptions{Selector: w.choice.selector, Progress: true, Previous: random.IntN(2) == 0}
	if w.opts.Kinds = kinds(); len(w.choice.selector.NodeIDs) > 0 {
		w.kind = holdfast.Kind_KIND_TASK
	} else if random.IntN(3) == 0 {
		w.kind = kinds()[random.IntN(3)]
	}
	if w.kind != 0 {
		w.opts.Kinds = []holdfast.Kind{w.kind}
	}
	if len(w.choice.selector.Names) > 0 && w.kind == 0 {
		w.opts.Kinds = []holdfast.Kind{holdfast.Kind_KIND_SERVICE, holdfast.Kind_KIND_CONFIG}
		picks := w.choice.picks
		w.choice.picks = func(l looks) bool { return l.kind != holdfast.Kind_KIND_TASK && picks(l) }
	}
	w.opts.OnBreak = func(error) { w.breaks++ }
	switch random.IntN(5) {
	case 0: // now
	case 1:
		w.opts.Initial = true
		w.view = map[string]bool{}
	case 2:
		w.began = now + uint64(random.IntN(100))
		w.opts.Start = client.After(w.began)
	default:
		w.began = now - min(now, uint64(random.IntN(300)))
		w.opts.Start = client.From(w.began + 1)
	}
	return w
}

// picks tells whether the watcher is to see an object.
func (w *watcher) picks(l looks) bool { return (w.kind == 0 || l.kind == w.kind) && w.choice.picks(l) }

// run watches until all up to a revision was seen, which is told at the end.
func (w *watcher) run(ctx context.Context, c *client.Client, last <-chan struct{}, end *uint64) error {
	started := w.opts.Start != client.Start{}
	for e, err := range c.Watch(ctx, w.opts) {
		if problem, ok := asError(err); ok && problem.Kind == errkind.OutOfRange {
			w.floor = problem.Now
			if w.floor <= w.at && (started || w.at > 0) {
				return fmt.Errorf("all up to %d was seen, and it is said to be compacted up to %d", w.at, w.floor)
			}
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.take(e); err != nil {
			return err
		}
		if !started && e.Type != client.Present && e.Type != client.Restarted {
			// The first mark tells where it began: nothing was to be seen before it.
			w.began, started = e.Revision, true
			if e.Type == client.Changed {
				w.began--
			}
		}
		if w.slow != nil {
			w.slow(ctx)
		}
		select {
		case <-last:
			// One change of the last revision does not mean that all of it was seen; a mark does.
			if w.at >= *end && e.Type != client.Changed || w.at > *end {
				return nil
			}
		default:
		}
	}
	return errors.New("the watch ended without an error")
}

func (w *watcher) take(e client.Event) error {
	switch e.Type {
	case client.Present:
		w.view[idOf(e.Object)] = true
	case client.Restarted:
		clear(w.view)
	case client.Changed:
		if e.Revision < w.at || e.Revision == w.at && w.events[e.Revision] == nil {
			return fmt.Errorf("an event of %d, and all up to %d was seen: %v", e.Revision, w.at, e)
		}
		w.at = e.Revision
		if w.events[e.Revision] == nil {
			w.events[e.Revision] = map[string]holdfast.Action{}
		}
		id := idOf(e.Object)
		if _, twice := w.events[e.Revision][id]; twice {
			return fmt.Errorf("at %d: %s twice", e.Revision, id)
		}
		w.events[e.Revision][id] = e.Action
		if w.view != nil {
			w.view[id] = e.Action != holdfast.Action_ACTION_REMOVE
		}
		if w.opts.Previous && e.Action != holdfast.Action_ACTION_CREATE && idOf(e.Previous) != id {
			return fmt.Errorf("at %d: %s was %v", e.Revision, id, e.Previous)
		}
	default:
		w.at = max(w.at, e.Revision)
	}
	return nil
}

// check holds what was seen against the record.
func (w *watcher) check(r *record, last uint64) error {
	upTo := min(w.at, last)
	if w.floor == 0 && w.at < last {
		return fmt.Errorf("saw all up to %d only, of %d", w.at, last)
	}
	for revision := max(w.began, r.first) + 1; revision <= upTo; revision++ {
		if got, want := w.events[revision], r.events(revision, w.picks); !maps.Equal(got, want) {
			return fmt.Errorf("at %d: got %v, want %v", revision, got, want)
		}
	}
	for revision := range w.events {
		if revision <= w.began || revision > w.at {
			return fmt.Errorf("an event of %d, and it was to see those after %d up to %d", revision, w.began, w.at)
		}
	}
	after := func(revision uint64) bool { return revision > last } // of a write whose outcome was not known
	if w.view == nil || w.floor > 0 || slices.ContainsFunc(slices.Collect(maps.Keys(w.events)), after) {
		return nil
	}
	there := map[string]bool{}
	for id, l := range r.states[upTo-r.first] {
		if w.picks(l) {
			there[id] = true
		}
	}
	maps.DeleteFunc(w.view, func(_ string, is bool) bool { return !is })
	if !maps.Equal(there, w.view) {
		return fmt.Errorf("at %d: thinks %v is there, and %v is", upTo, w.view, there)
	}
	return nil
}

func asError(err error) (*errkind.Error, bool) { return errors.AsType[*errkind.Error](err) }
