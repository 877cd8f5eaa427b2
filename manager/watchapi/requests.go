package watchapi

import (
	"fmt"
	"slices"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
)

// receive takes in what the client asks for, until the call ends or the client asks for no
// more. What has to wait, waits here, and holds no watcher up.
func (w *stream) receive() {
	defer close(w.jobs)
	ctx := w.conn.Context()
	for {
		r, err := w.conn.Recv()
		if err != nil { // the end; what else it may be, the handler gets too, when it sends
			return
		}
		select {
		case w.jobs <- w.job(r):
		case <-ctx.Done():
			return
		}
	}
}

// job turns a request into what the handler does.
func (w *stream) job(r *holdfast.WatchRequest) func() error {
	switch r := r.Request.(type) {
	case *holdfast.WatchRequest_Create:
		one, err := w.server.newWatcher(w.conn.Context(), r.Create)
		return func() error { return w.create(r.Create.WatcherID, one, err) }
	case *holdfast.WatchRequest_Cancel:
		return func() error { return w.cancelAsked(r.Cancel.WatcherID) }
	case *holdfast.WatchRequest_Progress:
		return func() error { return w.progressAsked(r.Progress.WatcherID) }
	}
	return func() error {
		return errkind.Field("request", "is empty").WithHint("give one of create, cancel and progress")
	}
}

// create begins a watcher, or tells why it cannot be.
func (w *stream) create(id uint64, one *watcher, err error) error {
	if err == nil && w.watchers[id] != nil {
		// The ID is that of another watcher, which goes on.
		err = errkind.New(errkind.Exists, "the stream has a watcher with this ID").On("watcher", fmt.Sprint(id)).
			WithHint("choose another, or 0 to get one")
		return w.sendCanceled(0, w.at, err)
	}
	if err == nil {
		err = w.admit()
	}
	if err != nil {
		return w.sendCanceled(id, w.at, err)
	}
	for one.id == 0 || id == 0 && w.watchers[one.id] != nil {
		w.nextID++
		one.id = w.nextID
	}
	w.watchers[one.id] = one
	if err := w.conn.Send(&holdfast.WatchResponse{
		WatcherID: one.id, Revision: one.at,
		Message: &holdfast.WatchResponse_Created{Created: &holdfast.WatcherCreated{}},
	}); err != nil {
		return err
	}
	if w.group.members == 0 { // nobody else minds where the stream is
		w.at = max(w.at, w.server.cfg.Store.Root().Revision())
	}
	return w.place(one)
}

// admit counts a watcher more.
func (w *stream) admit() error {
	if most := w.server.cfg.MaxWatchers; len(w.watchers) == most {
		return &errkind.Error{
			Kind: errkind.Limit, Max: fmt.Sprint(most),
			Msg:  fmt.Sprintf("the stream has %d watchers, and takes no more", most),
			Hint: "open another stream, or cancel a watcher",
		}
	}
	return w.server.watchers.take()
}

// cancelAsked ends a watcher as the client asked.
func (w *stream) cancelAsked(id uint64) error {
	one, err := w.find(id)
	if err != nil {
		return w.sendCanceled(id, w.at, err)
	}
	return w.cancel(one, nil)
}

func (w *stream) find(id uint64) (*watcher, error) {
	if one := w.watchers[id]; one != nil {
		return one, nil
	}
	return nil, errkind.New(errkind.NotFound, "the stream has no such watcher").On("watcher", fmt.Sprint(id))
}

// progressAsked tells how far a watcher is, or all of the group.
func (w *stream) progressAsked(id uint64) error {
	if id == 0 {
		w.asked = true
		return nil
	}
	one, err := w.find(id)
	switch {
	case err != nil:
		return w.sendCanceled(id, w.at, err)
	case one.initial != nil: // synced tells it soon
		return nil
	}
	return w.sendProgress(id, w.position(one))
}

// answer tells how far the group is, if that was asked for. It waits until no watcher that the
// client takes for synced is behind.
func (w *stream) answer() error {
	if !w.asked || slices.ContainsFunc(w.behind, func(one *watcher) bool { return one.synced }) {
		return nil
	}
	w.asked, w.told = false, w.at
	return w.sendProgress(0, w.at)
}

// position returns up to where all events of a watcher were sent.
func (w *stream) position(one *watcher) uint64 {
	if one.grouped {
		return max(one.at, w.at)
	}
	return one.at
}

// cancel ends a watcher, for a reason or because it was asked for.
func (w *stream) cancel(one *watcher, why error) error {
	at := w.position(one)
	delete(w.watchers, one.id)
	w.server.watchers.give(1)
	is := func(o *watcher) bool { return o == one }
	w.future = slices.DeleteFunc(w.future, is)
	w.behind = slices.DeleteFunc(w.behind, is)
	if one.grouped {
		w.group.remove(one)
	}
	return w.sendCanceled(one.id, at, why)
}

// cancelGroup ends all watchers of the group: the log does not have what they have not seen.
func (w *stream) cancelGroup(why error) error {
	for _, one := range w.watchers {
		if one.grouped {
			if err := w.cancel(one, why); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendEvents sends what a watcher saw of a revision. A watcher whose events cannot be sent is
// canceled.
func (w *stream) sendEvents(one *watcher, revision uint64) error {
	messages, err := one.take(&w.server.cfg, revision)
	if err != nil {
		return w.cancel(one, err)
	}
	for _, m := range messages {
		if err := w.conn.Send(m); err != nil {
			return err
		}
	}
	return nil
}

func (w *stream) sendSynced(one *watcher, revision uint64) error {
	one.synced = true
	return w.conn.Send(&holdfast.WatchResponse{
		WatcherID: one.id, Revision: revision,
		Message: &holdfast.WatchResponse_Synced{Synced: &holdfast.WatcherSynced{}},
	})
}

func (w *stream) sendProgress(id, revision uint64) error {
	return w.conn.Send(&holdfast.WatchResponse{
		WatcherID: id, Revision: revision,
		Message: &holdfast.WatchResponse_Progress{Progress: &holdfast.WatcherProgress{}},
	})
}

func (w *stream) sendCanceled(id, revision uint64, why error) error {
	c := &holdfast.WatcherCanceled{}
	if why != nil {
		c.Reason, c.Message, c.Details = errkind.Info(why)
	}
	return w.conn.Send(&holdfast.WatchResponse{
		WatcherID: id, Revision: revision, Message: &holdfast.WatchResponse_Canceled{Canceled: c},
	})
}
