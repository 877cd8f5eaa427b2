package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/client"
	"holdfast/internal/errkind"
)

func TestWatchEndsWithItsContext(t *testing.T) {
	for name, c := range map[string]struct {
		steps  []func(watchStream) error
		cancel bool
		kind   errkind.Kind
		text   string
	}{
		"canceled": {
			steps: []func(watchStream) error{func(s watchStream) error { return s.created(5).hang() }}, cancel: true,
			kind: errkind.Canceled, text: "the watch was canceled",
		},
		"deadline": {
			steps: []func(watchStream) error{func(s watchStream) error { return s.created(5).hang() }},
			kind:  errkind.DeadlineReached, text: "the time of the watch is over",
		},
		"deadline while it is broken": {
			steps: append([]func(watchStream) error{func(s watchStream) error { s.created(5); return noLeader() }},
				slices.Repeat([]func(watchStream) error{func(watchStream) error { return noLeader() }}, 1000)...),
			kind: errkind.DeadlineReached, text: "is over; no manager could be watched: unix:///a (",
		},
		"canceled before it began": {
			steps:  slices.Repeat([]func(watchStream) error{func(watchStream) error { return noLeader() }}, 1000),
			cancel: true, kind: errkind.Canceled, text: "was canceled; no manager could be watched: unix:///a (",
		},
		"deadline before it began": {
			steps: slices.Repeat([]func(watchStream) error{func(watchStream) error { return noLeader() }}, 1000),
			kind:  errkind.NoLeader, text: "the cluster has no leader",
		},
		"hangs before it began": {kind: errkind.DeadlineReached, text: "no answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sc := &script{steps: c.steps}
				cl := newWatchFake(t, abc(), sc.serve).client(t, client.Options{})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if c.cancel {
					time.AfterFunc(time.Minute/2, cancel)
				}
				var last error
				for _, err := range cl.Watch(ctx, client.WatchOptions{}) {
					last = err
				}
				if !errkind.Is(last, c.kind) || !errors.Is(last, ctx.Err()) || !strings.Contains(last.Error(), c.text) {
					t.Errorf("kind %v: %v", errkind.Of(last), last)
				}
			})
		})
	}
}

func TestWatchFindsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newWatchFake(t, abc(), (&script{}).serve)
		for _, m := range f.managers {
			m.kill()
		}
		begin := time.Now()
		for _, err := range f.client(t, client.Options{}).Watch(t.Context(), client.WatchOptions{}) {
			if !errkind.Is(err, errkind.NoLeader) || !strings.Contains(err.Error(), "cannot connect to any manager") {
				t.Errorf("got %v", err)
			}
		}
		if took := time.Since(begin); took < 2*time.Second || took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// A service that is not there is not looked for again and again.
func TestWatchUnimplemented(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{steps: []func(watchStream) error{
			func(watchStream) error { return status.Error(codes.Unimplemented, "unknown service") },
		}}
		var got []string
		for ev, err := range newWatchFake(t, abc(), sc.serve).client(t, client.Options{}).Watch(t.Context(), client.WatchOptions{}) {
			got = append(got, show(ev, err))
		}
		if want := []string{"error: unknown service"}; !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
}

// Once it has begun, a watch waits as long as it takes, and tells of each break once.
func TestWatchNeverGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{steps: []func(watchStream) error{
			func(s watchStream) error { return s.created(5).hang() },
			func(s watchStream) error { return s.created(5).synced(5).events(6, false, "a").hang() },
		}}
		f := newWatchFake(t, abc(), sc.serve)
		var told []string
		opts := client.WatchOptions{
			OnConnect: func(e string) { told = append(told, "connect "+e) },
			OnBreak:   func(err error) { told = append(told, "break "+err.Error()[:len("unix:///a: ")]) },
		}
		begin := time.Now()
		time.AfterFunc(20*time.Minute, func() {
			m := f.managers["b"]
			m.mu.Lock()
			defer m.mu.Unlock()
			m.dead = false
		})
		for ev, err := range f.client(t, client.Options{RetryFor: time.Minute}).Watch(t.Context(), opts) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Type == client.Changed {
				break
			}
			for _, m := range f.managers {
				m.kill()
			}
		}
		if took := time.Since(begin); took < 20*time.Minute || took > 20*time.Minute+5*time.Second {
			t.Errorf("took %v", took)
		}
		if want := []string{"connect unix:///a", "break unix:///a: ", "connect unix:///b"}; !slices.Equal(told, want) {
			t.Errorf("told %q", told)
		}
	})
}

// A manager that takes a watch and does not begin it is passed over.
func TestWatchPassesOverOneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{steps: []func(watchStream) error{
			func(s watchStream) error { return s.hang() },
			func(s watchStream) error { return s.created(5).hang() },
		}}
		begin := time.Now()
		for _, err := range newWatchFake(t, abc(), sc.serve).client(t, client.Options{}).Watch(t.Context(), client.WatchOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if took := time.Since(begin); took > 11*time.Second {
			t.Errorf("took %v", took)
		}
		if want := []string{"a now", "b now"}; !slices.Equal(sc.asked(), want) {
			t.Errorf("asked %q", sc.asked())
		}
	})
}

// Managers that break each stream are not asked without end; one that is of use is asked again
// soon.
func TestWatchBackoff(t *testing.T) {
	useless := func(s watchStream) error { s.created(5); return noLeader() }
	for name, c := range map[string]struct {
		step        func(n uint64) func(watchStream) error
		least, most int
	}{
		"useless": {func(uint64) func(watchStream) error { return useless }, 25, 75},
		"of use": {func(n uint64) func(watchStream) error {
			return func(s watchStream) error {
				select {
				case <-time.After(time.Second / 2):
				case <-s.Context().Done():
				}
				s.created(5).events(5+n, false, "a")
				return noLeader()
			}
		}, 35, 65},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sc := &script{}
				for n := range uint64(1000) {
					sc.steps = append(sc.steps, c.step(n+1))
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				cl := newWatchFake(t, []string{"a"}, sc.serve).client(t, client.Options{Endpoints: []string{"unix:///a"}})
				for _, err := range cl.Watch(ctx, client.WatchOptions{}) {
					if err != nil && !errkind.Is(err, errkind.DeadlineReached) {
						t.Error(err)
					}
				}
				if n := len(sc.asked()); n < c.least || n > c.most {
					t.Errorf("%d streams in 30 s", n)
				}
			})
		})
	}
}

// To leave the loop ends the stream, and nothing is left of it.
func TestWatchLeavesNothingBehind(t *testing.T) {
	ended := make(chan struct{}, 1)
	sc := &script{}
	sc.steps = slices.Repeat([]func(watchStream) error{func(s watchStream) error {
		s.created(5).events(6, false, "a")
		<-s.Context().Done()
		ended <- struct{}{}
		return nil
	}}, 3)
	c := newWatchFake(t, abc(), sc.serve).client(t, client.Options{})
	watch := func() {
		for ev, err := range c.Watch(t.Context(), client.WatchOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Type == client.Changed {
				break
			}
		}
		<-ended
	}
	watch() // the connection stays
	before := goleak.IgnoreCurrent()
	watch()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range c.Watch(ctx, client.WatchOptions{}) {
		if cancel(); err != nil && !errkind.Is(err, errkind.Canceled) {
			t.Error(err)
		}
	}
	<-ended
	goleak.VerifyNone(t, before)
}

func TestWatchOfAClosedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{steps: []func(watchStream) error{func(s watchStream) error { return s.created(5).hang() }}}
		c := newWatchFake(t, abc(), sc.serve).client(t, client.Options{})
		var last error
		for _, err := range c.Watch(t.Context(), client.WatchOptions{}) {
			if last = err; err == nil {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		if !errkind.Is(last, errkind.Canceled) || !strings.Contains(last.Error(), "closed") {
			t.Errorf("got %v", last)
		}
	})
}
