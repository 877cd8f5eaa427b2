package client_test

import (
	"fmt"
	"sync"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/errkind"
	"holdfast/internal/wire"
)

// script serves the streams of a test one after another, whichever manager they come to. Each
// step sends what it sends and returns how the stream ends; the last one hangs until the client
// goes.
type script struct {
	mu      sync.Mutex
	steps   []func(s watchStream) error
	created []*holdfast.CreateWatcher
	at      []string

	requestIDs string // which only writes have
}

func (c *script) serve(m *manager, s holdfast.Watch_WatchServer) error {
	r, err := s.Recv()
	if err != nil {
		return err
	}
	c.mu.Lock()
	n := len(c.created)
	c.requestIDs += wire.Incoming(s.Context(), wire.RequestID)
	c.created, c.at = append(c.created, r.GetCreate()), append(c.at, m.name)
	c.mu.Unlock()
	if n < len(c.steps) {
		return c.steps[n](watchStream{s})
	}
	<-s.Context().Done()
	return nil
}

// watchStream sends messages of watcher 1. That the client is gone shows in what it got.
type watchStream struct{ holdfast.Watch_WatchServer }

func (s watchStream) send(id, revision uint64, r *holdfast.WatchResponse) {
	r.WatcherID, r.Revision = id, revision
	s.Send(r) //nolint:errcheck,gosec // see above
}

func (s watchStream) created(revision uint64) watchStream {
	s.send(1, revision, &holdfast.WatchResponse{Message: &holdfast.WatchResponse_Created{Created: &holdfast.WatcherCreated{}}})
	return s
}

func (s watchStream) synced(revision uint64) watchStream {
	s.send(1, revision, &holdfast.WatchResponse{Message: &holdfast.WatchResponse_Synced{Synced: &holdfast.WatcherSynced{}}})
	return s
}

func (s watchStream) progress(id, revision uint64) watchStream {
	s.send(id, revision, &holdfast.WatchResponse{Message: &holdfast.WatchResponse_Progress{Progress: &holdfast.WatcherProgress{}}})
	return s
}

func (s watchStream) objects(revision uint64, ids ...string) watchStream {
	m := &holdfast.WatcherObjects{}
	for _, id := range ids {
		m.Objects = append(m.Objects, service(id))
	}
	s.send(1, revision, &holdfast.WatchResponse{Message: &holdfast.WatchResponse_Objects{Objects: m}})
	return s
}

func (s watchStream) events(revision uint64, more bool, ids ...string) watchStream {
	m := &holdfast.WatcherEvents{More: more}
	for _, id := range ids {
		m.Events = append(m.Events, &holdfast.Event{Action: holdfast.Action_ACTION_UPDATE, Object: service(id)})
	}
	s.send(1, revision, &holdfast.WatchResponse{Message: &holdfast.WatchResponse_Events{Events: m}})
	return s
}

func (s watchStream) canceled(id uint64, err error) watchStream {
	m := &holdfast.WatcherCanceled{}
	m.Reason, m.Message, m.Details = errkind.Info(err)
	s.send(id, 0, &holdfast.WatchResponse{Message: &holdfast.WatchResponse_Canceled{Canceled: m}})
	return s
}

func (s watchStream) hang() error {
	<-s.Context().Done()
	return nil
}

func service(id string) *holdfast.Object {
	return &holdfast.Object{Target: &holdfast.Object_Service{Service: &api.Service{ID: id}}}
}

// show writes an event down in short.
func show(ev client.Event, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	switch ev.Type {
	case client.Changed, client.Present:
		word := map[client.EventType]string{client.Changed: "change", client.Present: "present"}[ev.Type]
		if ev.Kind != holdfast.Kind_KIND_SERVICE {
			word += " of " + ev.Kind.String()
		}
		return fmt.Sprintf("%s %d %s", word, ev.Revision, ev.Object.GetService().GetID())
	case client.Synced:
		return fmt.Sprintf("synced %d", ev.Revision)
	case client.Restarted:
		return "restarted"
	case client.Progressed:
		return fmt.Sprintf("progress %d", ev.Revision)
	}
	return fmt.Sprintf("unknown %d", ev.Type)
}

func noLeader() error { return errkind.Status(errkind.New(errkind.NoLeader, "no leader")).Err() }

// asked writes down where the streams of a script began.
func (c *script) asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for i, r := range c.created {
		start := "now"
		switch s := r.Start.(type) {
		case *holdfast.CreateWatcher_From:
			start = fmt.Sprintf("from %d", s.From)
		case *holdfast.CreateWatcher_After:
			start = fmt.Sprintf("after %d", s.After)
		}
		if r.Initial {
			start += " initial"
		}
		if !r.Progress || r.Fragment {
			start += fmt.Sprintf(" progress %v fragment %v", r.Progress, r.Fragment)
		}
		all = append(all, c.at[i]+" "+start)
	}
	return all
}
