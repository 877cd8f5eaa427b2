package main

import (
	"context"
	"maps"
	"slices"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/errkind"
)

// watches is what the fake knows of those that watch.
type watches struct {
	begun   int           // watchers that were in sync once
	breaks  int           // so many lists of what is there are broken off
	ends    []error       // each ends a watcher, once that has been sent all that there is
	changed chan struct{} // closed when there is something new
}

// wake lets those that watch look again.
func (f *fake) wake() {
	close(f.watches.changed)
	f.watches.changed = make(chan struct{})
}

// watchServer is the fake's Watch service. A stream has one watcher.
type watchServer struct {
	holdfast.UnimplementedWatchServer
	f *fake
}

// watcher is one that watches.
type watcher struct {
	f      *fake
	s      holdfast.Watch_WatchServer
	create *holdfast.CreateWatcher
	picks  func(holdfast.Kind, *holdfast.Object) bool
}

func (w watchServer) Watch(s holdfast.Watch_WatchServer) error {
	r, err := s.Recv()
	if err != nil {
		return err
	}
	return (&watcher{f: w.f, s: s, create: r.GetCreate()}).run()
}

func (w *watcher) run() error {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	position, err := w.begin()
	if err != nil {
		return w.end(err)
	}
	for synced := false; ; synced = true {
		if position, err = w.changes(position); err != nil {
			return err
		}
		if !synced {
			if err := w.send(position, &holdfast.WatchResponse{Message: &holdfast.WatchResponse_Synced{Synced: &holdfast.WatcherSynced{}}}); err != nil {
				return err
			}
			w.f.watches.begun++
			w.f.wake()
		}
		if len(w.f.watches.ends) > 0 {
			end := w.f.watches.ends[0]
			w.f.watches.ends = w.f.watches.ends[1:]
			return w.end(end)
		}
		if err := w.f.wait(w.s.Context()); err != nil {
			return err
		}
	}
}

// wait waits for something new. It lets go of the lock meanwhile.
func (f *fake) wait(ctx context.Context) error {
	changed := f.watches.changed
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin sends what comes before the first change, and returns the revision that the changes
// come after.
func (w *watcher) begin() (position uint64, err error) {
	if w.f.fail != nil {
		return 0, w.f.fail
	}
	if w.picks, err = matcher(&w.create.Selector); err != nil {
		return 0, err
	}
	position = w.f.revision
	switch start := w.create.Start.(type) {
	case *holdfast.CreateWatcher_From:
		position = max(start.From, 1) - 1
	case *holdfast.CreateWatcher_After:
		position = start.After
	}
	if position < w.f.floor {
		return 0, w.f.readable(position)
	}
	err = w.send(w.f.revision, &holdfast.WatchResponse{Message: &holdfast.WatchResponse_Created{Created: &holdfast.WatcherCreated{}}})
	if err != nil || !w.create.Initial {
		return position, err
	}
	objects := &holdfast.WatcherObjects{}
	for _, k := range slices.SortedFunc(maps.Keys(w.f.past.known), key.compare) {
		if o := w.f.past.known[k]; w.sees(k.kind, o) {
			objects.Objects = append(objects.Objects, o)
		}
	}
	err = w.send(position, &holdfast.WatchResponse{Message: &holdfast.WatchResponse_Objects{Objects: objects}})
	if err == nil && w.f.watches.breaks > 0 {
		w.f.watches.breaks--
		err = errkind.New(errkind.NoLeader, "told to break")
	}
	return position, err
}

func (w *watcher) sees(kind holdfast.Kind, o *holdfast.Object) bool {
	return o != nil && (len(w.create.Kinds) == 0 || slices.Contains(w.create.Kinds, kind)) && w.picks(kind, o)
}

// changes sends all changes after a revision, and returns the one up to which there are.
func (w *watcher) changes(position uint64) (uint64, error) {
	var events []*holdfast.Event
	for i, c := range w.f.past.log {
		if c.revision <= position {
			continue
		}
		if e := w.event(c); e != nil {
			events = append(events, e)
		}
		if last := i == len(w.f.past.log)-1; len(events) > 0 && (last || w.f.past.log[i+1].revision > c.revision) {
			err := w.send(c.revision, &holdfast.WatchResponse{Message: &holdfast.WatchResponse_Events{Events: &holdfast.WatcherEvents{Events: events}}})
			if err != nil {
				return 0, err
			}
			events = nil
		}
	}
	return max(position, w.f.revision), nil
}

// event is what the watcher sees of a change, or nil.
func (w *watcher) event(c change) *holdfast.Event {
	was, is := w.sees(c.kind, c.was), w.sees(c.kind, c.now)
	e := &holdfast.Event{Action: holdfast.Action_ACTION_UPDATE, Object: c.now}
	switch {
	case !was && !is:
		return nil
	case !was:
		e.Action = holdfast.Action_ACTION_CREATE
	case !is:
		e.Action, e.Left = holdfast.Action_ACTION_REMOVE, c.now != nil
		if c.now == nil {
			e.Object = stub(c.was)
		}
	}
	if w.create.Previous {
		e.Previous = c.was
	}
	return e
}

func (w *watcher) send(revision uint64, r *holdfast.WatchResponse) error {
	r.WatcherID, r.Revision = w.create.WatcherID, revision
	return w.s.Send(r)
}

// end ends the watcher: for lack of a leader by breaking the stream, else by telling why.
func (w *watcher) end(err error) error {
	if errkind.Is(err, errkind.NoLeader) {
		return errkind.Status(err).Err()
	}
	m := &holdfast.WatcherCanceled{}
	m.Reason, m.Message, m.Details = errkind.Info(err)
	if err := w.send(w.f.revision, &holdfast.WatchResponse{Message: &holdfast.WatchResponse_Canceled{Canceled: m}}); err != nil {
		return err
	}
	return w.f.wait(w.s.Context())
}

// stub is what is told of an object that was removed.
func stub(o *holdfast.Object) *holdfast.Object {
	k := kinds.Of(kindOf(o))
	meta, named := k.Meta(o), api.Annotations{Name: k.Name(o)}
	switch kindOf(o) {
	case holdfast.Kind_KIND_SERVICE:
		return &holdfast.Object{Target: &holdfast.Object_Service{
			Service: &api.Service{ID: k.ID(o), Meta: meta, Spec: api.ServiceSpec{Annotations: named}},
		}}
	case holdfast.Kind_KIND_TASK:
		return &holdfast.Object{Target: &holdfast.Object_Task{Task: &api.Task{ID: k.ID(o), Meta: meta, Annotations: named}}}
	case holdfast.Kind_KIND_NETWORK:
		return &holdfast.Object{Target: &holdfast.Object_Network{
			Network: &api.Network{ID: k.ID(o), Meta: meta, Spec: api.NetworkSpec{Annotations: named}},
		}}
	case holdfast.Kind_KIND_SECRET:
		return &holdfast.Object{Target: &holdfast.Object_Secret{
			Secret: &api.Secret{ID: k.ID(o), Meta: meta, Spec: api.SecretSpec{Annotations: named}},
		}}
	case holdfast.Kind_KIND_CONFIG:
		return &holdfast.Object{Target: &holdfast.Object_Config{
			Config: &api.Config{ID: k.ID(o), Meta: meta, Spec: api.ConfigSpec{Annotations: named}},
		}}
	}
	return o // ctl removes none of the other kinds
}

func kindOf(o *holdfast.Object) holdfast.Kind {
	for _, k := range kinds.All() {
		if k.ID(o) != "" {
			return k.Number
		}
	}
	return holdfast.Kind_KIND_UNSPECIFIED
}
