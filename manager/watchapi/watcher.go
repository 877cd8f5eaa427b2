package watchapi

import (
	"context"
	"fmt"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/kinds"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// maxCreateBytes bounds what a watcher can ask for, since it is kept as long as the watcher.
const maxCreateBytes = 32 << 10

// watcher is a position in the log, and what is to be seen from there. It belongs to the
// handler of its stream.
type watcher struct {
	id       uint64
	tables   []table // that it watches
	actions  uint8   // set of holdfast.Actions
	previous bool
	progress bool
	fragment bool

	// at is the position: all up to it was sent, or is not to be sent.
	at      uint64
	initial *initial // objects that are to be sent first; nil if there are none
	synced  bool     // the client was told
	grouped bool     // it is where the stream's group is, if that is not before at

	events []*holdfast.Event // of the revision that is being read
	change uint64            // the last change that it has seen, so that it sees each once
}

// table is a kind that is watched.
type table struct {
	kind    kinds.Kind
	matcher kinds.Matcher
}

// newWatcher makes what a request asks for. It blocks while the present revision is read.
func (s *Server) newWatcher(ctx context.Context, r *holdfast.CreateWatcher) (*watcher, error) {
	if n := r.Size(); n > maxCreateBytes {
		return nil, &errkind.Error{
			Kind: errkind.Limit, Field: "create.selector", Max: "32 KiB",
			Msg:  fmt.Sprintf("the request has %d bytes, at most 32 KiB are allowed", n),
			Hint: "watch with several watchers, or by labels",
		}
	}
	w := &watcher{id: r.WatcherID, previous: r.Previous, progress: r.Progress, fragment: r.Fragment}
	if err := w.setTables(r); err != nil {
		return nil, err
	}
	if err := w.setActions(r.Actions); err != nil {
		return nil, err
	}
	switch start := r.Start.(type) {
	case *holdfast.CreateWatcher_After:
		w.at = start.After
	case *holdfast.CreateWatcher_From:
		if start.From == 0 {
			return nil, errkind.Field("create.from", "is 0, and the first revision is 1").WithHint("give after: 0 to see all")
		}
		w.at = start.From - 1
	default:
		tx, err := s.cfg.Reader.Read(ctx)
		if err != nil {
			return nil, err
		}
		w.at = tx.Revision()
		if r.Initial {
			w.initial = &initial{tables: w.tables}
		}
		return w, nil
	}
	if r.Initial {
		return nil, errkind.Field("create.initial", "is given, and a start too").
			WithHint("the objects that are there are sent without a start only")
	}
	return w, nil
}

// setTables takes the kinds, or all that have what the selector asks for.
func (w *watcher) setTables(r *holdfast.CreateWatcher) error {
	var all []kinds.Kind
	for i, number := range r.Kinds {
		k, err := kinds.Of(fmt.Sprintf("create.kinds[%d]", i), number)
		if err != nil {
			return err
		}
		all = append(all, k)
	}
	if len(all) == 0 {
		all = kinds.All()
	}
	var lacking error
	for _, k := range all {
		m, err := k.Matcher(&r.Selector)
		switch {
		case err == nil && !w.has(k):
			w.tables = append(w.tables, table{k, m})
		case err != nil && len(r.Kinds) > 0:
			return err
		case err != nil:
			lacking = err
		}
	}
	if len(w.tables) == 0 {
		return lacking
	}
	return nil
}

func (w *watcher) has(k kinds.Kind) bool {
	for _, t := range w.tables {
		if t.kind.Kind() == k.Kind() {
			return true
		}
	}
	return false
}

func (w *watcher) setActions(actions []holdfast.Action) error {
	if len(actions) == 0 {
		w.actions = 1<<holdfast.Action_ACTION_CREATE | 1<<holdfast.Action_ACTION_UPDATE | 1<<holdfast.Action_ACTION_REMOVE
	}
	for i, a := range actions {
		if a < holdfast.Action_ACTION_CREATE || a > holdfast.Action_ACTION_REMOVE {
			return errkind.Field(fmt.Sprintf("create.actions[%d]", i), "%d is no action", a)
		}
		w.actions |= 1 << a
	}
	return nil
}

// read takes in a revision.
func (w *watcher) read(e store.Entry) {
	for _, c := range e.Changes() {
		for _, t := range w.tables {
			if t.kind.Kind() == c.Kind {
				w.see(c, t)
			}
		}
	}
}

// see takes in a change: what it is for this watcher, if anything.
func (w *watcher) see(c state.Change, t table) {
	was, is := t.matcher.Matches(c.Old), t.matcher.Matches(c.New)
	e := &holdfast.Event{}
	switch {
	case is && !was:
		e.Action = holdfast.Action_ACTION_CREATE
	case is:
		e.Action = holdfast.Action_ACTION_UPDATE
	case was:
		e.Action = holdfast.Action_ACTION_REMOVE
		e.Left = c.New != nil
	default:
		return
	}
	if w.actions&(1<<e.Action) == 0 {
		return
	}
	if is {
		e.Object = objects.Wrap(objects.Redact(c.New))
	} else {
		e.Object = objects.Wrap(t.kind.Keys(c.Object()))
	}
	if w.previous && c.Old != nil {
		e.Previous = objects.Wrap(objects.Redact(c.Old))
	}
	w.events = append(w.events, e)
}

// take returns the messages of what was seen of a revision: one, or several if it may be split.
// It fails with errkind.Limit if one is too large.
func (w *watcher) take(cfg *Config, revision uint64) ([]*holdfast.WatchResponse, error) {
	events := w.events
	w.events = nil
	var all []*holdfast.WatchResponse
	for len(events) > 0 {
		n := len(events)
		if w.fragment {
			n = fitting(events, cfg.FragmentBytes)
		} else if bytes := size(events); bytes > cfg.MessageBytes {
			return nil, &errkind.Error{
				Kind: errkind.Limit, Field: "create.fragment", Max: fmt.Sprintf("%d bytes", cfg.MessageBytes),
				Seen: revision - 1,
				Msg:  fmt.Sprintf("the events of revision %d have %d bytes, too much for one message", revision, bytes),
				Hint: "go on after the revision before, with fragment or without previous",
			}
		}
		all = append(all, &holdfast.WatchResponse{
			WatcherID: w.id, Revision: revision, Message: &holdfast.WatchResponse_Events{
				Events: &holdfast.WatcherEvents{Events: events[:n], More: n < len(events)},
			},
		})
		events = events[n:]
	}
	return all, nil
}

// fitting returns how many events come to a number of bytes: one at least.
func fitting(events []*holdfast.Event, most int) int {
	bytes := 0
	for i, e := range events {
		if bytes += e.Size(); bytes > most && i > 0 {
			return i
		}
	}
	return len(events)
}

func size(events []*holdfast.Event) (bytes int) {
	for _, e := range events {
		bytes += e.Size()
	}
	return bytes
}
