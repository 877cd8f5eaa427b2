package client

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/wire"
)

const (
	// watcherID is that of the one watcher that each stream has.
	watcherID = 1
	// createWait bounds how long a manager may take to begin a watcher: ctx may well have no
	// end that would pass over one that hangs.
	createWait = 10 * time.Second
)

// watcher is one watch through all its streams. It belongs to the goroutine that watches.
type watcher struct {
	c     *Client
	opts  WatchOptions
	yield func(Event, error) bool
	call  *call

	// All changes up to position were given. It is where a new stream goes on if resume is
	// set; until then a stream begins as the first one did.
	position uint64
	resume   bool
	synced   bool // Synced was given
	listed   bool // objects were given as present, and Synced was not
	left     bool // the loop over the events was left
	standing bool // a stream stands

	stream streamState
}

// streamState is what a watcher knows of its present stream.
type streamState struct {
	endpoint  string
	live      bool              // what is told of all synced watchers is told of this one
	moved     bool              // it was of use
	pending   []*holdfast.Event // of a revision of which more is to come
	pendingOf uint64
}

// run watches through one endpoint until that breaks, or until the loop is left: then it
// returns nil.
func (w *watcher) run(parent context.Context, e *endpoint) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel() // it ends the stream, and what gRPC started for it
	slow := time.AfterFunc(createWait, cancel)
	w.stream = streamState{endpoint: e.name}

	s, err := w.open(ctx, e)
	if err == nil {
		err = w.receive(s, w.begin)
	}
	if !slow.Stop() && err != nil && parent.Err() == nil {
		return status.Errorf(codes.DeadlineExceeded, "did not begin to watch within %v", createWait)
	}
	if err == nil {
		w.c.prefer(e)
	}
	began := time.Now()
	for err == nil && !w.left {
		err = w.receive(s, w.take)
	}
	if w.standing && (w.stream.moved || time.Since(began) >= maxDelay) {
		w.call.renew()
	}
	if w.left {
		return nil
	}
	return err
}

func (w *watcher) open(ctx context.Context, e *endpoint) (holdfast.Watch_WatchClient, error) {
	s, err := holdfast.NewWatchClient(e.conn).Watch(ctx)
	if err != nil {
		return nil, err
	}
	// That the stream has ended already is an EOF here; Recv tells why.
	if err := s.Send(w.create()); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return s, nil
}

// create is the request that begins the watcher, or lets it go on.
func (w *watcher) create() *holdfast.WatchRequest {
	r := &holdfast.CreateWatcher{
		WatcherID: watcherID, Kinds: w.opts.Kinds, Actions: w.opts.Actions, Selector: w.opts.Selector,
		Initial: w.opts.Initial && !w.resume, Previous: w.opts.Previous,
		// Else the position of a watch that sees little would fall below the floor.
		Progress: true,
	}
	switch start := w.opts.Start; {
	case w.resume:
		r.Start = &holdfast.CreateWatcher_After{After: w.position}
	case start.kind == startFrom:
		r.Start = &holdfast.CreateWatcher_From{From: start.revision}
	case start.kind == startAfter:
		r.Start = &holdfast.CreateWatcher_After{After: start.revision}
	}
	return &holdfast.WatchRequest{Request: &holdfast.WatchRequest_Create{Create: r}}
}

// receive takes one message in.
func (w *watcher) receive(s holdfast.Watch_WatchClient, take func(*holdfast.WatchResponse) error) error {
	r, err := s.Recv()
	if err != nil {
		w.c.saw(s.Trailer().Get(wire.Revision))
		if errors.Is(err, io.EOF) {
			return status.Error(codes.Unavailable, "the manager ended the stream")
		}
		return err
	}
	if m := r.GetCanceled(); m != nil {
		return canceled(m)
	}
	ofAll := r.WatcherID == 0 && r.GetProgress() != nil
	if r.WatcherID != watcherID && !ofAll {
		return w.broken("a message for watcher %d", r.WatcherID)
	}
	w.c.sawRevision(r.Revision)
	return take(r)
}

// canceled gives the error that a manager ended the watcher with.
func canceled(m *holdfast.WatcherCanceled) error {
	if m.Reason == "" && m.Message == "" {
		return errkind.New(errkind.Internal, "the manager ended the watch without a reason")
	}
	return errkind.FromInfo(m.Reason, m.Message, m.Details)
}

// begin takes in the first message of a stream.
func (w *watcher) begin(r *holdfast.WatchResponse) error {
	if r.GetCreated() == nil {
		return w.broken("it did not tell that the watch has begun")
	}
	w.call.endless, w.standing = true, true
	if w.opts.OnConnect != nil {
		w.opts.OnConnect(w.stream.endpoint)
	}
	switch {
	case w.listed: // and broken off
		w.listed = false
		w.give(Event{Type: Restarted})
	case !w.resume && w.opts.Start.kind == startNow && !w.opts.Initial:
		w.stream.live = true
		w.reach(r.Revision)
		w.sync()
	}
	return nil
}

// take takes in a message after the first.
func (w *watcher) take(r *holdfast.WatchResponse) error {
	if n := len(w.stream.pending); n > 0 && (r.GetEvents() == nil || r.Revision != w.stream.pendingOf) {
		return w.broken("revision %d ends after %d changes, and more were to come", w.stream.pendingOf, n)
	}
	listing := w.opts.Initial && !w.synced
	switch m := r.Message.(type) {
	case *holdfast.WatchResponse_Objects:
		if !listing {
			return w.broken("objects that were not asked for")
		}
		w.list(r.Revision, m.Objects.Objects)
	case *holdfast.WatchResponse_Synced:
		w.stream.live = true
		w.reach(r.Revision)
		if w.synced { // it caught up after a break, or says what created said
			w.progress()
		} else {
			w.sync()
		}
	case *holdfast.WatchResponse_Progress:
		if listing || r.WatcherID == 0 && !w.stream.live {
			return nil // it does not speak of this watcher
		}
		w.reach(r.Revision)
		w.progress()
	case *holdfast.WatchResponse_Events:
		if listing || r.Revision <= w.position {
			return w.broken("changes of revision %d, out of turn after %d", r.Revision, w.position)
		}
		w.stream.pending, w.stream.pendingOf = append(w.stream.pending, m.Events.Events...), r.Revision
		if !m.Events.More {
			w.change(r.Revision)
		}
	default:
		return w.broken("a message of an unknown kind, at revision %d", r.Revision)
	}
	return nil
}

// list gives objects that were there at the start.
func (w *watcher) list(revision uint64, objects []*holdfast.Object) {
	for _, o := range objects {
		w.listed = true
		if !w.give(Event{Type: Present, Revision: revision, Kind: kindOf(o), Object: o}) {
			return
		}
	}
}

// change gives all changes of a revision.
func (w *watcher) change(revision uint64) {
	events := w.stream.pending
	w.stream.pending = nil
	for _, ev := range events {
		if !w.give(Event{
			Type: Changed, Revision: revision, Action: ev.Action, Kind: kindOf(ev.Object),
			Object: ev.Object, Previous: ev.Previous, Left: ev.Left,
		}) {
			return
		}
	}
	w.reach(revision)
}

// reach takes in that all changes up to a revision were given. A member that is behind may
// well speak of an earlier one.
func (w *watcher) reach(revision uint64) {
	w.resume = true
	if revision > w.position {
		w.position, w.stream.moved = revision, true
	}
}

func (w *watcher) sync() {
	w.synced, w.listed = true, false
	w.give(Event{Type: Synced, Revision: w.position})
}

func (w *watcher) progress() {
	if w.opts.Progress {
		w.give(Event{Type: Progressed, Revision: w.position})
	}
}

func (w *watcher) give(ev Event) bool {
	w.left = w.left || !w.yield(ev, nil)
	return !w.left
}

// broke takes in that a stream ended and that another will be tried.
func (w *watcher) broke(e *endpoint, err error) {
	if !w.standing { // it was an attempt to go on
		return
	}
	w.standing = false
	if w.opts.OnBreak != nil {
		w.opts.OnBreak(&errkind.Error{
			Kind: errkind.Of(errkind.FromStatus(err)), Msg: e.name + ": " + reason(err), Err: err,
		})
	}
}

// broken is what a manager did that it must not do. To ask again would not help.
func (w *watcher) broken(format string, args ...any) error {
	e := errkind.New(errkind.Internal, format, args...)
	e.Msg = w.stream.endpoint + " does not keep to the protocol of watches: " + e.Msg
	return e
}

// failed gives the error that a watch ends with.
func (w *watcher) failed(ctx context.Context, err error) error {
	ended := ctx.Err()
	late := errors.Is(ended, context.DeadlineExceeded)
	if ended == nil || late && !w.call.endless { // it never began: err tells what was tried
		return err
	}
	e := &errkind.Error{Kind: errkind.Canceled, Msg: "the watch was canceled", Err: ended}
	if late {
		e.Kind, e.Msg = errkind.DeadlineReached, "the time of the watch is over"
	}
	if !w.standing && len(w.call.tried) > 0 {
		e.Msg += "; no manager could be watched: " + w.call.describe()
	}
	return e
}
