package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/errkind"
	"holdfast/test/testcluster"
)

const (
	loadServices = 10_000
	loadClients  = 64
	minInFlight  = 32
	// Each so many-th request is given up by its client at once: its outcome is unknown.
	cutEvery = 97
	cutAfter = 3 * time.Millisecond
)

// load creates services from many clients, through all members in turn. A create whose outcome
// is not known is repeated with its request ID, through another member.
type load struct {
	c     *testcluster.Cluster
	total int64
	any   *client.Client // of all members

	next     atomic.Int64
	inFlight atomic.Int64
	done     atomic.Int64

	unknown atomic.Int64 // outcomes that were not known
	proven  atomic.Int64 // of them, those that were found to be done before they were repeated

	mu       sync.Mutex
	outcomes map[string]outcome // by name
}

type outcome struct {
	made
	requestID string
	member    int // that acknowledged it
}

func newLoad(c *testcluster.Cluster, total int64) *load {
	return &load{c: c, total: total, any: c.Client(), outcomes: map[string]outcome{}}
}

// run creates all services, from as many goroutines as there are clients.
func (l *load) run(ctx context.Context, clients int) error {
	group, ctx := errgroup.WithContext(ctx)
	for range clients {
		group.Go(func() error {
			for n := l.next.Add(1) - 1; n < l.total; n = l.next.Add(1) - 1 {
				if err := l.one(ctx, n); err != nil {
					return err
				}
				l.done.Add(1)
			}
			return nil
		})
	}
	return group.Wait()
}

// one creates the n-th service.
func (l *load) one(ctx context.Context, n int64) error {
	name := fmt.Sprintf("load-%05d", n)
	requestID := l.any.NewRequestID()
	member := int(n) % len(l.c.Members)
	var seen *made
	var final error
	tries := 0
	err := testcluster.Poll(ctx, "service "+name, func(ctx context.Context) error {
		limit := 20 * time.Second
		if tries == 0 && n%cutEvery == 0 {
			limit = cutAfter
		}
		tries++
		got, err := l.attempt(ctx, limit, member, name, requestID)
		if err == nil {
			final = l.acknowledged(name, outcome{made: got, requestID: requestID, member: member}, seen)
			return nil
		}
		if !retriable(err) {
			final = fmt.Errorf("service %s: %w", name, err)
			return nil
		}
		if errkind.Is(err, errkind.UnknownOutcome) {
			l.unknown.Add(1)
			if seen == nil {
				if seen, final = l.look(ctx, name); final != nil {
					return nil
				}
			}
		}
		member = (member + 1) % len(l.c.Members)
		return err
	})
	return errors.Join(err, final)
}

func (l *load) attempt(ctx context.Context, limit time.Duration, member int, name, requestID string) (made, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l.inFlight.Add(1)
	defer l.inFlight.Add(-1)
	return create(ctx, l.c.Members[member].Once(), name, requestID)
}

// look finds what an earlier attempt has made, if it has.
func (l *load) look(ctx context.Context, name string) (*made, error) {
	ctx, cancel := context.WithTimeout(ctx, testcluster.Bound)
	defer cancel()
	r, err := l.any.Objects().Get(ctx, &holdfast.GetRequest{Kind: holdfast.Kind_KIND_SERVICE, Name: name})
	switch {
	case errkind.Is(err, errkind.NotFound):
		return nil, nil //nolint:nilnil // it is not there, and that is no error
	case err != nil:
		return nil, fmt.Errorf("look for service %s: %w", name, err)
	}
	m := madeOf(r.Object.GetService())
	return &m, nil
}

// acknowledged keeps an outcome. seen is what was found before it was asked for again.
func (l *load) acknowledged(name string, o outcome, seen *made) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[name] = o
	if seen == nil {
		return nil
	}
	l.proven.Add(1)
	if *seen != o.made {
		return fmt.Errorf("service %s: was made as %+v, and its request repeated was answered with %+v", name, *seen, o.made)
	}
	return nil
}

func (l *load) made() map[string]made {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]made, len(l.outcomes))
	for name, o := range l.outcomes {
		all[name] = o.made
	}
	return all
}

// killLeaders kills the leader a number of times while the load runs, each with many requests
// in flight, and starts it again.
func (l *load) killLeaders(t *testing.T, kills int) {
	t.Helper()
	for i := range kills {
		from := l.total * int64(i+1) / int64(kills+1)
		testcluster.Wait(t, "services", func(context.Context) error {
			if n := l.done.Load(); n < from {
				return fmt.Errorf("%d of %d", n, from)
			}
			return nil
		})
		lead := l.c.Leader()
		testcluster.Wait(t, "requests in flight", func(context.Context) error {
			if n := l.inFlight.Load(); n < minInFlight {
				return fmt.Errorf("only %d requests are in flight", n)
			}
			return nil
		})
		inFlight, done := l.inFlight.Load(), l.done.Load()
		lead.Kill()
		t.Logf("killed %s, the leader, after %d services with %d requests in flight", lead.Name, done, inFlight)
		if inFlight < minInFlight {
			t.Errorf("only %d requests were in flight", inFlight)
		}
		began := time.Now()
		next := l.c.Leader()
		t.Logf("%s leads after %v", next.Name, time.Since(began).Round(time.Millisecond))
		lead.Start()
	}
}

// repeat asks for some of the outcomes again, each through another member than the one that
// had acknowledged it. The newest come first: a member that has made the state of one revision
// finds the one before it at hand.
func (l *load) repeat(ctx context.Context, every int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for name := range l.outcomes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Compare(l.outcomes[b].revision, l.outcomes[a].revision)
	})
	for i := 0; i < len(names); i += every {
		o := l.outcomes[names[i]]
		through := l.c.Members[(o.member+1)%len(l.c.Members)]
		again, err := create(ctx, through.Client(), names[i], o.requestID)
		if err != nil {
			return fmt.Errorf("service %s, asked again through %s: %w", names[i], through.Name, err)
		}
		if again != o.made {
			return fmt.Errorf("service %s is %+v, and through %s %+v", names[i], o.made, through.Name, again)
		}
	}
	return nil
}

func TestLeaderKilledUnderLoad(t *testing.T) {
	kills := 2
	if testcluster.Soak(t) > 0 {
		kills = 5
	}
	c := testcluster.New(t, 3)
	l := newLoad(c, loadServices)
	ctx := testcluster.Context(t, 4*testcluster.Bound)
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- l.run(ctx, loadClients) }()
	l.killLeaders(t, kills)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d services in %v; %d outcomes were unknown, %d of those requests repeated were seen done before",
		loadServices, time.Since(began).Round(time.Millisecond), l.unknown.Load(), l.proven.Load())
	if l.proven.Load() == 0 {
		t.Error("no request that was repeated had been done before")
	}
	content := c.Same()
	if others := check(t, content, l.made()); others != 0 || len(content.Services) != loadServices {
		t.Errorf("%d services, %d of them never asked for; want %d", len(content.Services), others, loadServices)
	}

	again := func(when string) {
		if err := l.repeat(ctx, 50); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if diff := content.Diff(c.SameAt(content.Revision)); diff != "" {
			t.Errorf("%s: other content at revision %d: %s", when, content.Revision, diff)
		}
		if n := len(c.Same().Services); n != loadServices {
			t.Errorf("%s: %d services, want %d", when, n, loadServices)
		}
	}
	again("asked again")
	c.Snapshot(10_000)
	for _, m := range c.Members {
		m.Kill()
	}
	for _, m := range c.Members {
		m.Launch()
	}
	for _, m := range c.Members {
		m.WaitReady()
	}
	again("asked again after a snapshot and a restart of all")
}
