package watchapi

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// Swarm implements api.WatchServer, SwarmKit's Watch, with what it promises: an empty message
// first, then one for each transaction that changed something which an entry asks for. Unlike
// there, every message has its version, any manager serves it, and it can be resumed anywhere.
type Swarm struct {
	api.UnimplementedWatchServer
	server *Server
}

var _ api.WatchServer = (*Swarm)(nil)

// NewSwarm returns SwarmKit's service. It shares the bounds of s.
func NewSwarm(s *Server) *Swarm { return &Swarm{server: s} }

// Watch implements api.WatchServer. It returns when the client goes.
func (s *Swarm) Watch(r *api.WatchRequest, conn grpc.ServerStreamingServer[api.WatchMessage]) error {
	local, err := readsLocally(conn.Context())
	if err != nil {
		return err
	}
	if n := r.Size(); n > maxCreateBytes {
		return &errkind.Error{
			Kind: errkind.Limit, Field: "entries", Max: "32 KiB",
			Msg: fmt.Sprintf("the request has %d bytes, at most 32 KiB are allowed", n), Hint: "watch with several calls",
		}
	}
	entries, err := newSwarmEntries(r.Entries)
	if err != nil {
		return err
	}
	for _, b := range []*budget{&s.server.streams, &s.server.watchers} {
		if err := b.take(); err != nil {
			return err
		}
		defer b.give(1)
	}
	w := &swarmStream{server: s.server, conn: conn, entries: entries, old: r.IncludeOldObject}
	if w.at, err = s.start(conn.Context(), r.ResumeFrom); err != nil {
		return err
	}
	if err := conn.Send(&api.WatchMessage{Version: &api.Version{Index: w.at}}); err != nil {
		return err
	}
	return w.run(local)
}

func (s *Swarm) start(ctx context.Context, from *api.Version) (uint64, error) {
	if from != nil {
		// What is below the floor is told before the first message.
		_, _, err := s.server.cfg.Store.Entries(from.Index, nil)
		return from.Index, err
	}
	tx, err := s.server.cfg.Reader.Read(ctx)
	if err != nil {
		return 0, err
	}
	return tx.Revision(), nil
}

// swarmStream is one call. It belongs to the handler's goroutine.
type swarmStream struct {
	server  *Server
	conn    grpc.ServerStreamingServer[api.WatchMessage]
	entries []swarmEntry
	old     bool
	at      uint64
}

func (w *swarmStream) run(local bool) error {
	ticker := time.NewTicker(w.server.cfg.Interval)
	defer ticker.Stop()
	leader := leaderless{cfg: &w.server.cfg}
	waker := w.server.cfg.Store.NewWaker()
	buffer := make([]store.Entry, 0, batch)
	interest := w.interest()
	for w.conn.Context().Err() == nil {
		if err := w.follow(buffer); err != nil {
			return err
		}
		if !waker.Sleep(interest, w.at) {
			continue
		}
		var err error
		select {
		case <-waker.C:
		case <-ticker.C:
			if !local {
				err = leader.tick()
			}
		case <-w.conn.Context().Done():
			err = w.conn.Context().Err()
		}
		if w.at = max(w.at, waker.Wake()); err != nil {
			return err
		}
	}
	return w.conn.Context().Err()
}

// interest is what is to wake the stream. Filters see objects as they are, and a store that
// wakes for what they were too does no harm.
func (w *swarmStream) interest() (i store.Interest) {
	for _, e := range w.entries {
		if len(e.exact) == 0 || len(i.Values)+len(e.exact) > maxValues {
			i.Kinds |= store.Kinds(e.kind.Kind())
			continue
		}
		i.Values = append(i.Values, e.exact...)
	}
	return i
}

// follow sends what there is.
func (w *swarmStream) follow(buffer []store.Entry) error {
	entries, at, err := w.server.cfg.Store.Entries(w.at, buffer[:0])
	defer clear(buffer[:len(entries)])
	if err != nil {
		return err
	}
	for _, e := range entries {
		m := &api.WatchMessage{Version: &api.Version{Index: e.Revision()}}
		for _, c := range e.Changes() {
			if event := w.event(c); event != nil {
				m.Events = append(m.Events, event)
			}
		}
		if len(m.Events) == 0 {
			continue
		}
		if n := m.Size(); n > w.server.cfg.MessageBytes {
			return &errkind.Error{
				Kind: errkind.Limit, Field: "include_old_object", Max: fmt.Sprintf("%d bytes", w.server.cfg.MessageBytes),
				Seen: e.Revision() - 1,
				Msg:  fmt.Sprintf("the events of version %d have %d bytes, too much for one message", e.Revision(), n),
				Hint: "resume from the version before without old objects, or use holdfast.v1.Watch with fragment",
			}
		}
		if err := w.conn.Send(m); err != nil {
			return err
		}
	}
	w.at = at
	return nil
}

// event returns what a change is for the call, or nil. As in SwarmKit, filters see the object as
// it is now, or as it was if it was removed.
func (w *swarmStream) event(c state.Change) *api.WatchMessage_Event {
	action := api.WatchActionKind_WATCH_ACTION_UPDATE
	switch {
	case c.Old == nil:
		action = api.WatchActionKind_WATCH_ACTION_CREATE
	case c.New == nil:
		action = api.WatchActionKind_WATCH_ACTION_REMOVE
	}
	for _, e := range w.entries {
		if !e.picks(c, action) {
			continue
		}
		event := &api.WatchMessage_Event{Action: action, Object: swarmObject(objects.Redact(c.Object()))}
		if w.old && action == api.WatchActionKind_WATCH_ACTION_UPDATE {
			event.OldObject = swarmObject(objects.Redact(c.Old))
		}
		return event
	}
	return nil
}

func swarmObject(o state.Object) *api.Object {
	switch o := o.(type) {
	case *api.Node:
		return &api.Object{Object: &api.Object_Node{Node: o}}
	case *api.Service:
		return &api.Object{Object: &api.Object_Service{Service: o}}
	case *api.Network:
		return &api.Object{Object: &api.Object_Network{Network: o}}
	case *api.Task:
		return &api.Object{Object: &api.Object_Task{Task: o}}
	case *api.Cluster:
		return &api.Object{Object: &api.Object_Cluster{Cluster: o}}
	case *api.Secret:
		return &api.Object{Object: &api.Object_Secret{Secret: o}}
	case *api.Config:
		return &api.Object{Object: &api.Object_Config{Config: o}}
	}
	return nil
}
