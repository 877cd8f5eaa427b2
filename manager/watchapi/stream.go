package watchapi

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"holdfast/api/holdfast"
	"holdfast/internal/wire"
	"holdfast/manager/state/store"
)

const (
	// batch is how many revisions are read from the log at once.
	batch = 64
	// waiting is how many requests of a client are taken in before the stream has done them.
	waiting = 8
)

// stream is one call of Watch. All but receive runs in the handler's goroutine.
type stream struct {
	server *Server
	conn   grpc.BidiStreamingServer[holdfast.WatchRequest, holdfast.WatchResponse]
	jobs   chan func() error // what the client asked for; closed when it asks for no more

	ready chan struct{} // closed

	watchers map[uint64]*watcher
	nextID   uint64
	group    group      // watchers at the stream's position, or waiting for a later one
	future   []*watcher // of the group: those that wait
	behind   []*watcher // of the others, the next one first

	at     uint64 // position of the group
	told   uint64 // progress of the group that the client was told
	asked  bool   // the client waits for it
	waker  *store.Waker
	buffer []store.Entry
	leader leaderless
}

// Watch implements holdfast.WatchServer. It returns when the client goes, or has no watcher and
// sends no more requests.
func (s *Server) Watch(conn grpc.BidiStreamingServer[holdfast.WatchRequest, holdfast.WatchResponse]) error {
	local, err := readsLocally(conn.Context())
	if err != nil {
		return err
	}
	if err := s.streams.take(); err != nil {
		return err
	}
	defer s.streams.give(1)
	w := &stream{
		server: s, conn: conn, jobs: make(chan func() error, waiting), ready: make(chan struct{}),
		watchers: map[uint64]*watcher{},
		at:       s.cfg.Store.Root().Revision(), waker: s.cfg.Store.NewWaker(),
		buffer: make([]store.Entry, 0, batch), leader: leaderless{cfg: &s.cfg},
	}
	close(w.ready)
	defer func() { s.watchers.give(len(w.watchers)) }()
	go w.receive() // ends when the call does
	return w.run(local)
}

// readsLocally tells whether a call is content with what this manager has.
func readsLocally(ctx context.Context) (bool, error) {
	fresh, err := wire.ParseFreshness(wire.Incoming(ctx, wire.Read))
	return fresh.Mode == wire.Local, err
}

// run does what is asked for and sends what there is, in turn, and sleeps when there is nothing.
func (w *stream) run(local bool) error {
	ticker := time.NewTicker(w.server.cfg.Interval)
	defer ticker.Stop()
	for w.jobs != nil || len(w.watchers) > 0 {
		worked, err := w.work()
		if err != nil {
			return err
		}
		busy, wake := w.ready, (<-chan struct{})(nil)
		if !worked {
			busy = nil
			if w.group.members > 0 {
				if w.waker.Sleep(w.group.interest, w.at) {
					wake = w.waker.C
				} else {
					busy = w.ready // something came just now
				}
			}
		}
		do := func() error { return nil }
		select {
		case job, ok := <-w.jobs:
			do = func() error { return w.do(job, ok) }
		case <-ticker.C:
			do = func() error { return w.tick(local) }
		case <-w.conn.Context().Done():
			do = w.conn.Context().Err
		case <-wake:
		case <-busy:
		}
		if wake != nil { // first: what the group slept through is not what a new watcher may miss
			w.at = max(w.at, w.waker.Wake())
		}
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// do does what the client asked for.
func (w *stream) do(job func() error, ok bool) error {
	if !ok { // it asks for no more; what it asked for goes on
		w.jobs = nil
		return nil
	}
	return job()
}

// tick looks for the leader, and has progress told.
func (w *stream) tick(local bool) error {
	if !local {
		if err := w.leader.tick(); err != nil {
			return err
		}
	}
	if w.at == w.told {
		return nil
	}
	for _, one := range w.watchers {
		if one.progress && one.synced {
			w.asked = true
			break
		}
	}
	return nil
}

// work sends some of what there is, and tells whether there was something.
func (w *stream) work() (worked bool, err error) {
	if w.group.members > 0 {
		if worked, err = w.follow(); err != nil {
			return worked, err
		}
	}
	if len(w.behind) > 0 {
		one := w.behind[0]
		w.behind = w.behind[1:]
		if err := w.catchUp(one); err != nil {
			return true, err
		}
		worked = true
	}
	return worked, w.answer()
}

// follow moves the group on.
func (w *stream) follow() (moved bool, err error) {
	entries, at, err := w.server.cfg.Store.Entries(w.at, w.buffer[:0])
	defer clear(w.buffer[:len(entries)]) // what was read is not held while the stream sleeps
	if err != nil {
		return true, w.cancelGroup(err)
	}
	for _, e := range entries {
		for _, one := range w.group.read(e) {
			if err := w.sendEvents(one, e.Revision()); err != nil {
				return true, err
			}
		}
		w.at = e.Revision()
	}
	moved = at > w.at || len(entries) > 0
	w.at = max(w.at, at)
	return moved, w.arrive()
}

// arrive tells those that waited for a revision which is there now.
func (w *stream) arrive() error {
	waiting := w.future
	w.future = nil
	for _, one := range waiting {
		if one.at > w.at {
			w.future = append(w.future, one)
			continue
		}
		if err := w.sendSynced(one, w.at); err != nil {
			return err
		}
	}
	return nil
}

// catchUp moves a watcher on that is behind the group, and puts it there if it gets so far.
func (w *stream) catchUp(one *watcher) error {
	if one.initial != nil {
		return w.sendInitial(one)
	}
	if w.group.members == 0 {
		w.at = max(w.at, w.server.cfg.Store.Root().Revision())
	}
	entries, _, err := w.server.cfg.Store.Entries(one.at, w.buffer[:0])
	defer clear(w.buffer[:len(entries)])
	if err != nil {
		return w.cancel(one, err)
	}
	for _, e := range entries {
		one.read(e)
		if err := w.sendEvents(one, e.Revision()); err != nil {
			return err
		}
		if w.watchers[one.id] != one { // its events could not be sent
			return nil
		}
		one.at = e.Revision()
	}
	return w.place(one)
}

// place puts a watcher into the group, or behind it.
func (w *stream) place(one *watcher) error {
	if one.initial != nil || one.at < w.at {
		w.behind = append(w.behind, one)
		return nil
	}
	w.group.add(one)
	one.grouped = true
	switch {
	case one.synced:
		return nil
	case one.at > w.at:
		w.future = append(w.future, one)
		return nil
	}
	return w.sendSynced(one, w.at)
}

// sendInitial sends some of the objects that are there at the start.
func (w *stream) sendInitial(one *watcher) error {
	found, done, err := one.initial.next(w.server.cfg.Store, one.at, w.server.cfg.FragmentBytes)
	if err != nil {
		return w.cancel(one, err)
	}
	if len(found) > 0 {
		if err := w.conn.Send(&holdfast.WatchResponse{
			WatcherID: one.id, Revision: one.at,
			Message: &holdfast.WatchResponse_Objects{Objects: &holdfast.WatcherObjects{Objects: found}},
		}); err != nil {
			return err
		}
	}
	if done {
		one.initial = nil
		if err := w.sendSynced(one, one.at); err != nil {
			return err
		}
	}
	return w.place(one)
}
