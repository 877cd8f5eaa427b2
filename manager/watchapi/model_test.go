package watchapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
	"holdfast/manager/watchapi"
)

// choice is a selector, and what it picks, told in another way.
type choice struct {
	selector holdfast.Selector
	picks    func(c holdfast.Kind, name string, label string) bool
}

// choices are the selectors that the watchers of the model have. Objects of it are named by a
// letter, and have a label x of 0 to 2.
func choices() []choice {
	return []choice{
		{holdfast.Selector{}, func(holdfast.Kind, string, string) bool { return true }},
		{holdfast.Selector{Labels: map[string]string{"x": "1"}}, func(_ holdfast.Kind, _, x string) bool { return x == "1" }},
		{holdfast.Selector{Where: "x in (0,2)"}, func(_ holdfast.Kind, _, x string) bool { return x == "0" || x == "2" }},
		{holdfast.Selector{Names: []string{"a", "C"}}, func(_ holdfast.Kind, n, _ string) bool { return n == "a" || n == "c" }},
		{
			holdfast.Selector{IDs: []string{"a-id", "b-id"}, Where: "x!=1"},
			func(_ holdfast.Kind, n, x string) bool { return (n == "a" || n == "b") && x != "1" },
		},
		{holdfast.Selector{NamePrefixes: []string{"b", "d"}}, func(_ holdfast.Kind, n, _ string) bool { return n == "b" || n == "d" }},
		{holdfast.Selector{NodeIDs: []string{"nx=2"}}, func(k holdfast.Kind, _, x string) bool {
			return k == holdfast.Kind_KIND_TASK && x == "2"
		}},
	}
}

// want gives the events that a watcher must get, by revision.
func (c choice) want(log []store.Revision, after uint64, kinds []holdfast.Kind) map[uint64]string {
	want := map[uint64]string{}
	for _, r := range log {
		line := ""
		for _, change := range r.Changes {
			if r.Revision <= after || len(kinds) > 0 && kinds[0] != change.Kind {
				continue
			}
			line += c.event(change)
		}
		if line != "" {
			want[r.Revision] = line
		}
	}
	return want
}

func (c choice) event(change state.Change) string {
	picks := func(o state.Object) bool {
		if o == nil {
			return false
		}
		a := annotations(o)
		return c.picks(change.Kind, a.Name, a.Labels["x"])
	}
	was, is := picks(change.Old), picks(change.New)
	switch {
	case is && !was:
		return " +" + change.New.GetID()
	case is:
		return " ~" + change.New.GetID()
	case was:
		return " -" + change.Old.GetID()
	}
	return ""
}

func annotations(o state.Object) *api.Annotations {
	switch o := o.(type) {
	case *api.Service:
		return &o.Spec.Annotations
	case *api.Network:
		return &o.Spec.Annotations
	case *api.Task:
		return &o.Annotations
	}
	panic("a kind that the model does not have")
}

// write does a random transaction.
func (f *fixture) write(r *rand.Rand) error {
	_, err := f.store.Update(f.t.Context(), func(tx *store.Tx) error {
		for range 1 + r.IntN(3) {
			kind := []string{"service", "network", "task"}[r.IntN(3)]
			name := string(rune('a' + r.IntN(4)))
			if r.IntN(3) > 0 {
				if err := put(tx, []string{kind, name, fmt.Sprintf("x=%d", r.IntN(3))}); err != nil && !strings.Contains(err.Error(), "was removed in this") {
					return err
				}
				continue
			}
			switch kind {
			case "service":
				ignoreMissing(store.Services.Delete(tx, name+"-id"))
			case "network":
				ignoreMissing(store.Networks.Delete(tx, name+"-id"))
			case "task":
				ignoreMissing(store.Tasks.Delete(tx, name+"-id"))
			}
		}
		return nil
	})
	return err
}

// ignoreMissing takes what a removal gave: what is not there need not be removed.
func ignoreMissing[T any](T, error) {}

// Watchers with random selectors and starts get exactly what the log has, in order, or are told
// that it has it no more.
func TestWatchersSeeTheLog(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, watchapi.Config{FragmentBytes: 200})
			m := &model{fixture: f, revisions: 300, done: make(chan struct{})}
			m.run(rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

type model struct {
	*fixture
	revisions uint64
	done      chan struct{}
	log       []store.Revision
}

func (m *model) run(r *rand.Rand) {
	var readers sync.WaitGroup
	failed := make(chan error, 64)
	for n := range 6 {
		seed := r.Uint64()
		readers.Go(func() {
			if err := m.watchSome(rand.New(rand.NewPCG(seed, uint64(n)))); err != nil {
				failed <- err
			}
		})
	}
	for m.store.Root().Revision() < m.revisions {
		if err := m.write(r); err != nil {
			m.t.Fatal(err)
		}
		if r.IntN(10) == 0 {
			m.keep()
		}
		if r.IntN(50) == 0 {
			m.keep()
			if _, err := m.store.Compact(m.t.Context(), m.store.Root().Revision()-uint64(r.IntN(40))); err != nil &&
				!strings.Contains(err.Error(), "future") {
				m.t.Fatal(err)
			}
		}
	}
	m.keep()
	close(m.done)
	readers.Wait()
	close(failed)
	for err := range failed {
		m.t.Error(err)
	}
}

// keep copies what the log has more than the model.
func (m *model) keep() {
	more, err := m.store.Changes(uint64(len(m.log)), 1<<20)
	if err != nil {
		m.t.Fatal(err)
	}
	m.log = append(m.log, more...)
}

// seen is what a client saw of one watcher.
type seen struct {
	choice  choice
	request *holdfast.CreateWatcher
	created uint64
	at      uint64 // all up to here was seen
	synced  bool
	events  map[uint64]string
	view    map[string]bool // IDs that are there, of a watcher that had the initial ones
	ended   string
}

// watchSome opens a stream with several watchers, and checks what they got when all is written.
func (m *model) watchSome(r *rand.Rand) error {
	ctx, cancel := context.WithCancel(m.t.Context())
	defer cancel()
	stream, err := holdfast.NewWatchClient(m.conn).Watch(ctx)
	if err != nil {
		return err
	}
	watchers := map[uint64]*seen{}
	for id := range uint64(1 + r.IntN(8)) {
		watchers[id+1] = m.newSeen(r, id+1)
	}
	send, again := make(chan error, 1), make(chan struct{}, 1)
	go func() {
		for _, s := range watchers {
			if err := stream.Send(&holdfast.WatchRequest{Request: &holdfast.WatchRequest_Create{Create: s.request}}); err != nil {
				send <- err
				return
			}
		}
		<-m.done
		var err error
		for err == nil {
			err = stream.Send(&holdfast.WatchRequest{Request: &holdfast.WatchRequest_Progress{Progress: &holdfast.AskProgress{}}})
			select {
			case <-again:
			case <-ctx.Done():
				send <- err
				return
			}
		}
		send <- err
	}()
	for live := len(watchers); live > 0; {
		msg, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("after %d revisions: %w", m.revisions, err)
		}
		switch p := msg.GetProgress(); {
		case p != nil && msg.WatcherID == 0 && msg.Revision >= m.revisions && allSynced(watchers):
			live = 0
		case p != nil && msg.WatcherID == 0 && msg.Revision >= m.revisions:
			select { // it does not speak of those that are not synced yet
			case again <- struct{}{}:
			default:
			}
		case p != nil && msg.WatcherID == 0:
			for _, s := range watchers { // it speaks of those that are synced
				if s.synced && s.ended == "" {
					s.at = max(s.at, msg.Revision)
				}
			}
		default:
			s := watchers[msg.WatcherID]
			if s == nil {
				return fmt.Errorf("a message of a watcher that is not there: %v", msg)
			}
			if err := s.take(msg); err != nil {
				return fmt.Errorf("watcher %d of %v: %w", msg.WatcherID, s.request, err)
			}
			if s.ended != "" {
				live--
			}
		}
	}
	<-m.done
	var errs []error
	for _, s := range watchers {
		if err := m.check(s); err != nil {
			errs = append(errs, fmt.Errorf("%v: %w", s.request, err))
		}
	}
	cancel()
	if err := <-send; err != nil && !errors.Is(err, io.EOF) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func allSynced(watchers map[uint64]*seen) bool {
	for _, s := range watchers {
		if !s.synced && s.ended == "" {
			return false
		}
	}
	return true
}

func (m *model) newSeen(r *rand.Rand, id uint64) *seen {
	c := choices()[r.IntN(len(choices()))]
	s := &seen{choice: c, events: map[uint64]string{}, request: &holdfast.CreateWatcher{
		WatcherID: id, Selector: c.selector, Fragment: r.IntN(2) == 0, Previous: r.IntN(2) == 0, Progress: r.IntN(2) == 0,
	}}
	if r.IntN(3) == 0 {
		s.request.Kinds = []holdfast.Kind{holdfast.Kind_KIND_TASK}
	}
	switch r.IntN(4) {
	case 0:
		s.request.Initial = true
		s.view = map[string]bool{}
	case 1:
		s.request.Start = after(uint64(r.IntN(int(m.revisions))))
	case 2:
		s.request.Start = from(1 + uint64(r.IntN(int(m.revisions))))
	}
	return s
}

// take takes in a message, and checks its order.
func (s *seen) take(msg *holdfast.WatchResponse) error {
	switch m := msg.Message.(type) {
	case *holdfast.WatchResponse_Created:
		s.created = msg.Revision
		s.at = msg.Revision
	case *holdfast.WatchResponse_Canceled:
		if s.ended = m.Canceled.Reason; s.ended != "OUT_OF_RANGE" {
			return fmt.Errorf("canceled: %v", m.Canceled)
		}
		s.at = max(s.at, msg.Revision)
	case *holdfast.WatchResponse_Objects:
		for _, o := range m.Objects.Objects {
			s.view[kindOf(o)+objectID(o)] = true
		}
	case *holdfast.WatchResponse_Events:
		if msg.Revision <= s.at {
			return fmt.Errorf("events of %d, and all up to %d was seen", msg.Revision, s.at)
		}
		for _, e := range m.Events.Events {
			s.events[msg.Revision] += fmt.Sprintf(" %c%s", "?+~-"[e.Action], objectID(e.Object))
			if s.view != nil {
				s.view[kindOf(e.Object)+objectID(e.Object)] = e.Action != holdfast.Action_ACTION_REMOVE
			}
		}
		if !m.Events.More {
			s.at = msg.Revision
		}
	default:
		s.synced = s.synced || msg.GetSynced() != nil
		s.at = max(s.at, msg.Revision)
	}
	return nil
}

func objectID(o *holdfast.Object) string {
	switch o := o.GetTarget().(type) {
	case *holdfast.Object_Service:
		return o.Service.ID
	case *holdfast.Object_Network:
		return o.Network.ID
	case *holdfast.Object_Task:
		return o.Task.ID
	}
	return "nothing"
}

// check compares what was seen with the log.
func (m *model) check(s *seen) error {
	want := s.choice.want(m.log, s.created, s.request.Kinds)
	upTo := m.revisions
	if s.ended != "" {
		upTo = s.at
	}
	for revision, line := range want {
		if revision <= upTo && s.events[revision] != line {
			return fmt.Errorf("at %d: got%s, want%s (created %d, at %d, ended %q, synced %v, all %v)", revision, s.events[revision], line, s.created, s.at, s.ended, s.synced, s.events)
		}
	}
	for revision, line := range s.events {
		if want[revision] != line {
			return fmt.Errorf("at %d: got%s, want%s", revision, line, want[revision])
		}
	}
	if s.view == nil || s.ended != "" {
		return nil
	}
	// What was there at the start and what changed since make what is there now.
	for o := range storetest.Objects(m.store.Root()) {
		a := annotations(o)
		kind, id := kindOf(objects.Wrap(o)), o.GetID()
		number := holdfast.Kind_KIND_TASK
		if kind != "task " {
			number = holdfast.Kind_KIND_SERVICE // the choices do not tell it from others
		}
		picked := s.choice.picks(number, a.Name, a.Labels["x"]) && (len(s.request.Kinds) == 0 || kind == "task ")
		if s.view[kind+id] != picked {
			return fmt.Errorf("%s%s is there: %v, and the watcher thinks %v", kind, id, picked, s.view[kind+id])
		}
		delete(s.view, kind+id)
	}
	for key, there := range s.view {
		if there {
			return fmt.Errorf("%s is not there, and the watcher thinks it is", key)
		}
	}
	return nil
}

func kindOf(o *holdfast.Object) string {
	switch o.GetTarget().(type) {
	case *holdfast.Object_Service:
		return "service "
	case *holdfast.Object_Network:
		return "network "
	}
	return "task "
}
