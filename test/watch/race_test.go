package watch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/errkind"
	"holdfast/test/testcluster"
)

const (
	raceWriters  = 8
	raceWatchers = 200
	raceClients  = 12 // that the watchers share
	raceKills    = 3
)

// TestRace has writers change what watchers with random selectors and starts watch, while the
// history is compacted and leaders are killed. In the end, every watcher has seen what the
// lists of each revision show, and nothing else.
func TestRace(t *testing.T) {
	long := testcluster.Soak(t)
	began := time.Now()
	for round := uint64(0); round == 0 || time.Since(began) < long && !t.Failed(); round++ {
		seed := uint64(7)
		if long > 0 {
			seed = uint64(time.Now().UnixNano())
		}
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { race(t, rand.New(rand.NewPCG(seed, round))) })
	}
}

type raceTest struct {
	t       *testing.T
	c       *testcluster.Cluster
	any     *client.Client
	random  *rand.Rand // of the test's own goroutine
	nodes   []string
	record  *record
	done    chan struct{} // closed when all is written
	end     uint64        // the last revision; set before done is closed
	behind  atomic.Int64  // times that a slow watcher waited
	release chan struct{} // closed when slow watchers may go on
}

func race(t *testing.T, random *rand.Rand) {
	ctx := testcluster.Context(t, 5*time.Minute)
	r := &raceTest{t: t, c: testcluster.New(t, 3), random: random, done: make(chan struct{}), release: make(chan struct{})}
	r.any = r.c.Client()
	for _, m := range r.c.Members {
		r.nodes = append(r.nodes, m.NodeID)
	}
	first, err := r.c.Leader().Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r.record = &record{c: r.any, first: first}
	state, err := r.record.state(ctx, first)
	if err != nil {
		t.Fatal(err)
	}
	r.record.states = append(r.record.states, state)

	var writers, readers errgroup.Group
	stop, stopWriting := context.WithCancel(ctx)
	defer stopWriting()
	for range raceWriters {
		w := &writer{c: r.c.Client(), random: rand.New(rand.NewPCG(random.Uint64(), 0)), nodes: r.nodes}
		writers.Go(func() error {
			for stop.Err() == nil {
				if err := w.write(ctx); err != nil {
					return fmt.Errorf("write: %w", err)
				}
			}
			return nil
		})
	}
	last := make(chan uint64, 1)
	readers.Go(func() error { return r.record.follow(ctx, last) })
	watchers := r.watch(ctx, &readers)
	stopWriting()
	if err := writers.Wait(); err != nil {
		t.Error(err)
	}
	if r.end, err = r.c.Leader().Revision(ctx); err != nil {
		t.Fatal(err)
	}
	last <- r.end
	close(r.done)
	// Those that had seen all before they were told that it is the end are to hear of more.
	if _, err := r.any.Control().CreateNetwork(ctx, &api.CreateNetworkRequest{
		Spec: &api.NetworkSpec{Annotations: api.Annotations{Name: "end"}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := readers.Wait(); err != nil {
		t.Fatal(err)
	}
	r.check(watchers)
}

// watch starts the watchers, some at a time, with kills and compactions in between.
func (r *raceTest) watch(ctx context.Context, readers *errgroup.Group) []*watcher {
	var clients []*client.Client
	for n := range raceClients {
		order := append(r.c.Members[n%3:], r.c.Members[:n%3]...)
		clients = append(clients, r.c.Client(order...))
	}
	const parts = raceKills + 1
	var all []*watcher
	for part := range parts {
		for range raceWatchers / parts {
			w := newWatcher(r.random, r.nodes, r.record.at())
			if r.random.IntN(10) == 0 {
				w.slow = r.wait
			}
			c := clients[r.random.IntN(len(clients))]
			all = append(all, w)
			readers.Go(func() error {
				if err := w.run(ctx, c, r.done, &r.end); err != nil {
					return fmt.Errorf("watch %+v: %w", w.opts, err)
				}
				return nil
			})
		}
		r.grow(ctx, 150)
		if part == raceKills {
			continue
		}
		lead := r.c.Leader()
		lead.Kill()
		r.c.Leader()
		r.grow(ctx, 50)
		lead.Start()
		if part == 1 {
			close(r.release)
		}
		r.compact(ctx)
	}
	return all
}

// wait is what a slow watcher does after each event, until it may go on.
func (r *raceTest) wait(ctx context.Context) {
	select {
	case <-r.release:
	case <-ctx.Done():
	default:
		r.behind.Add(1)
		select {
		case <-r.release:
		case <-ctx.Done():
		}
	}
}

// grow waits until there are some revisions more.
func (r *raceTest) grow(ctx context.Context, revisions uint64) {
	r.t.Helper()
	until := r.record.at() + revisions
	if err := testcluster.Poll(ctx, "revisions", func(context.Context) error {
		if at := r.record.at(); at < until {
			return fmt.Errorf("at %d of %d", at, until)
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
}

// compact forgets what is older than the last hundred revisions or so.
func (r *raceTest) compact(ctx context.Context) {
	r.t.Helper()
	revision := r.record.at() - uint64(50+r.random.IntN(100))
	if _, err := r.any.Cluster().Compact(ctx, &holdfast.CompactRequest{Revision: revision}); err != nil &&
		!errkind.Is(err, errkind.UnknownOutcome) {
		r.t.Fatal(err)
	}
}

func (r *raceTest) check(watchers []*watcher) {
	events, breaks, compacted := 0, 0, 0
	for _, w := range watchers {
		if err := w.check(r.record, r.end); err != nil {
			r.t.Errorf("watch %+v, from %d: %v", w.opts, w.began, err)
		}
		for _, e := range w.events {
			events += len(e)
		}
		breaks += w.breaks
		if w.floor > 0 {
			compacted++
		}
	}
	r.t.Logf("%d revisions; %d watchers: %d events, %d breaks, %d told of a compaction, %d waited",
		r.end-r.record.first, len(watchers), events, breaks, compacted, r.behind.Load())
	if breaks < raceWatchers/8 || compacted > raceWatchers/2 {
		r.t.Error("the watchers were hardly disturbed, or all of them ended early")
	}
}
