package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/errkind"
)

// world is a log of changes, and managers that tell of it badly: each is behind by as much as it
// pleases, may go back when it is started again, and breaks each stream sooner or later.
type world struct {
	mu      sync.Mutex
	random  *rand.Rand
	log     [][]string        // of revision i+1: the objects that it changed and the watch sees
	applied map[string]uint64 // by manager
	changed chan struct{}     // closed when applied changes
	floor   uint64            // changes up to it are compacted
	streams int
}

// errAgain is what a manager breaks a stream with that is to be tried elsewhere.
func (w *world) errAgain() error {
	return []error{
		nil, // the stream just ends
		errkind.Status(errkind.New(errkind.NoLeader, "no leader")).Err(),
		errkind.Status(errkind.New(errkind.UnknownOutcome, "lost")).Err(),
		errkind.Status(errkind.New(errkind.Canceled, "stopping")).Err(),
		errkind.Status(errkind.New(errkind.DeadlineReached, "late")).Err(),
		status.Error(codes.Unavailable, "reset"),
		status.Error(codes.Canceled, "gone"),
		status.Error(codes.DeadlineExceeded, "late"),
	}[w.random.IntN(8)]
}

// chance is true once in n times.
func (w *world) chance(n int) bool { return w.random.IntN(n) == 0 }

// run adds revisions, moves the managers on, and breaks their connections, until the watch has
// seen all.
func (w *world) run(ctx context.Context, f *fake, revisions int) {
	for w.sleep(ctx, 300) {
		w.mu.Lock()
		if len(w.log) < revisions {
			w.add(len(w.log) == revisions-1)
		}
		for _, name := range slices.Sorted(maps.Keys(w.applied)) {
			at := w.applied[name]
			w.applied[name] = at + w.random.Uint64N(uint64(len(w.log))-at+1)
		}
		close(w.changed)
		w.changed = make(chan struct{})
		kill := ""
		if w.chance(10) {
			kill = []string{"a", "b", "c"}[w.random.IntN(3)]
			w.applied[kill] -= w.random.Uint64N(min(w.applied[kill], 3) + 1) // it lost what it had not on disk
		}
		w.mu.Unlock()
		if kill != "" {
			f.managers[kill].kill()
			w.sleep(ctx, 2000)
			f.managers[kill].revive()
		}
	}
}

// sleep sleeps for up to n milliseconds, and tells whether the watch goes on.
func (w *world) sleep(ctx context.Context, n int) bool {
	select {
	case <-time.After(time.Duration(w.draw(n)) * time.Millisecond):
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *world) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// add adds a revision; the watch may see nothing of it, unless it is the last one.
func (w *world) add(last bool) {
	var objects []string
	for range w.random.IntN(4) {
		objects = append(objects, fmt.Sprintf("%d", w.random.IntN(10)))
	}
	if last {
		objects = append(objects, "last")
	}
	w.log = append(w.log, objects)
}

// state is what is there at a revision: each object that was ever named, and its version.
func (w *world) state(revision uint64) map[string]bool {
	there := make(map[string]bool)
	for _, objects := range w.log[:revision] {
		for _, o := range objects {
			there[o] = true
		}
	}
	return there
}

// serve serves a stream of the manager m.
func (w *world) serve(m *manager, stream holdfast.Watch_WatchServer) error {
	r, err := stream.Recv()
	if err != nil {
		return err
	}
	create, s := r.GetCreate(), watchStream{stream}
	w.mu.Lock()
	w.streams++
	life := w.random.IntN(12) // messages until it breaks
	w.mu.Unlock()
	spend := func() bool { life--; return life < 0 }
	if spend() {
		return w.breakOff()
	}

	w.mu.Lock()
	at := w.applied[m.name]
	there := slices.Sorted(maps.Keys(w.state(at)))
	floor := w.floor
	w.mu.Unlock()
	after := at
	switch start := create.Start.(type) {
	case *holdfast.CreateWatcher_From:
		after = start.From - 1
	case *holdfast.CreateWatcher_After:
		after = start.After
	}
	if after < floor {
		return s.canceled(1, &errkind.Error{Kind: errkind.OutOfRange, Now: floor, Msg: fmt.Sprintf("%d is compacted", after)}).hang()
	}
	s.created(at)
	if create.Initial {
		for len(there) > 0 {
			if spend() {
				return w.breakOff()
			}
			n := 1 + w.draw(len(there))
			s.objects(at, there[:n]...)
			there = there[n:]
		}
		if spend() {
			return w.breakOff()
		}
		s.synced(at)
	}
	return w.follow(m, s, after, create.Initial, spend)
}

// breakOff is errAgain for who does not hold the lock.
func (w *world) breakOff() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.errAgain()
}

// follow sends what the manager applies after a revision.
func (w *world) follow(m *manager, s watchStream, after uint64, synced bool, spend func() bool) error {
	for next := after + 1; ; {
		w.mu.Lock()
		at, changed := w.applied[m.name], w.changed
		var objects []string
		if next <= at {
			objects = w.log[next-1]
		}
		split := 0
		if len(objects) > 1 && w.chance(4) {
			split = 1 + w.random.IntN(len(objects)-1)
		}
		tell, cancel := w.random.IntN(6), w.chance(4)
		w.mu.Unlock()
		if spend() {
			if cancel {
				return s.canceled(1, errkind.New(errkind.NoLeader, "canceled")).hang()
			}
			return w.breakOff()
		}
		if next > at {
			if !synced {
				s.synced(at)
				synced = true
			}
			if tell < 2 {
				s.progress(uint64(tell), at) // of this watcher, or of all that are synced
			}
			select {
			case <-changed:
			case <-s.Context().Done():
				return nil
			}
			continue
		}
		if split > 0 {
			s.events(next, true, objects[:split]...)
			if spend() {
				return w.breakOff()
			}
		}
		if len(objects) > 0 {
			s.events(next, false, objects[split:]...)
		}
		next++
	}
}

func (m *manager) revive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = false
}

// A watch gives exactly the log, whatever happens to the managers.
func TestWatchGivesTheLog(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkLog(t, seed) })
		})
	}
}

func checkLog(t *testing.T, seed uint64) {
	const revisions = 40
	w := &world{
		random: rand.New(rand.NewPCG(seed, 0)), applied: map[string]uint64{"a": 0, "b": 0, "c": 0},
		changed: make(chan struct{}),
	}
	f := newWatchFake(t, abc(), w.serve)
	for range w.random.IntN(revisions / 2) {
		w.add(false)
	}
	for name := range w.applied {
		w.applied[name] = uint64(len(w.log))
	}
	first := uint64(len(w.log))
	opts := client.WatchOptions{Progress: true}
	switch seed % 4 {
	case 0:
		opts.Initial = true
	case 1:
		first = w.random.Uint64N(first + 2)
		opts.Start = client.After(first)
	case 2:
		first = w.random.Uint64N(first + 2)
		opts.Start = client.From(first + 1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { w.run(ctx, f, revisions) })
	seen := follow(t, f, opts)
	cancel()
	group.Wait()

	w.mu.Lock()
	defer w.mu.Unlock()
	if opts.Initial {
		if first = seen.synced; !maps.Equal(seen.present, w.state(first)) {
			t.Errorf("present at %d: %v, want %v", first, seen.present, w.state(first))
		}
	} else if seed%4 == 3 {
		first = seen.synced
	}
	var want []string
	for i := first; i < revisions; i++ {
		for _, o := range w.log[i] {
			want = append(want, fmt.Sprintf("%d %s", i+1, o))
		}
	}
	if !slices.Equal(seen.changes, want) {
		t.Errorf("got  %q\nwant %q", seen.changes, want)
	}
	if w.streams < 2 {
		t.Errorf("%d streams: nothing was broken", w.streams)
	}
}

// seen is what a watch gave.
type seen struct {
	present map[string]bool
	synced  uint64
	changes []string
}

// follow watches until the last object comes.
func follow(t *testing.T, f *fake, opts client.WatchOptions) seen {
	got := seen{present: make(map[string]bool)}
	marks, past := 0, uint64(0)
	for ev, err := range f.client(t, client.Options{}).Watch(t.Context(), opts) {
		if err != nil {
			t.Error(err)
			return got
		}
		switch id := ev.Object.GetService().GetID(); ev.Type {
		case client.Present:
			if got.present[id] || marks > 0 {
				t.Errorf("%s is present twice, or after %d marks", id, marks)
			}
			got.present[id] = true
		case client.Restarted:
			if len(got.present) == 0 || marks > 0 {
				t.Errorf("restarted after %d objects and %d marks", len(got.present), marks)
			}
			clear(got.present)
		case client.Synced:
			marks++
			got.synced = ev.Revision
		case client.Progressed:
			if ev.Revision < past {
				t.Errorf("progress %d after %d", ev.Revision, past)
			}
			past = ev.Revision
		case client.Changed:
			if ev.Revision <= past {
				t.Errorf("change of %d after progress %d", ev.Revision, past)
			}
			got.changes = append(got.changes, fmt.Sprintf("%d %s", ev.Revision, id))
			if id == "last" {
				if opts.Initial && marks != 1 || marks > 1 {
					t.Errorf("synced %d times", marks)
				}
				return got
			}
		}
	}
	t.Error("the watch ended without an error")
	return got
}

// A watch that sees little still does not fall behind the floor, for it hears how far it is.
func TestWatchIsNotOvertakenByCompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{random: rand.New(rand.NewPCG(1, 0)), applied: map[string]uint64{"a": 1}, changed: make(chan struct{})}
		w.log = [][]string{{"0"}}
		watch := func(_ *manager, stream holdfast.Watch_WatchServer) error {
			r, err := stream.Recv()
			if err != nil {
				return err
			}
			after := r.GetCreate().GetAfter()
			if r.GetCreate().Start == nil {
				after = 1
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			s := watchStream{stream}
			if after < w.floor {
				s.canceled(1, &errkind.Error{Kind: errkind.OutOfRange, Now: w.floor, Msg: "compacted"})
				return nil
			}
			if after >= 1000 {
				s.created(after).synced(after).events(after+1, false, "last")
				return nil
			}
			s.created(after).synced(after).progress(0, after+10)
			w.floor = after + 5
			return errors.New("broken")
		}
		if got := follow(t, newWatchFake(t, abc(), func(m *manager, s holdfast.Watch_WatchServer) error {
			if err := watch(m, s); err != nil {
				return status.Error(codes.Unavailable, err.Error())
			}
			return nil
		}), client.WatchOptions{}); !slices.Equal(got.changes, []string{"1002 last"}) && !slices.Equal(got.changes, []string{"1001 last"}) {
			t.Errorf("got %q", got.changes)
		}
	})
}
