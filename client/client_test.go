package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/api"
	"holdfast/client"
	"holdfast/internal/errkind"
	"holdfast/internal/wire"
)

func abc() []string { return []string{"a", "b", "c"} }

func TestDeadEndpointIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, abc(), func(*manager, received) (any, error) {
			return &api.GetServiceResponse{Service: &api.Service{ID: "s"}}, nil
		})
		f.managers["a"].kill()
		c := f.client(t, client.Options{})
		for range 3 {
			r, err := c.Control().GetService(t.Context(), &api.GetServiceRequest{ServiceID: "s"})
			if err != nil || r.Service.ID != "s" {
				t.Fatalf("got %v, %v", r, err)
			}
		}
		for _, call := range f.received("GetService") {
			if call.manager != "b" || call.requestID != "" {
				t.Errorf("got %+v, want a read at b", call)
			}
		}
		if c.Revision() != 42 {
			t.Errorf("revision %d", c.Revision())
		}
	})
}

// A manager does what it was asked and dies before it answers: the retry must carry the same
// request ID, or it is done twice.
// Many calls may begin at once, also before there is a connection.
func TestManyCallsAtOnce(t *testing.T) {
	f := newFake(t, []string{"b"}, func(*manager, received) (any, error) { return created("s1"), nil })
	for range 20 {
		c := f.client(t, client.Options{})
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				if _, err := c.Control().CreateService(t.Context(), &api.CreateServiceRequest{}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
}

// An endpoint that was away for long is noticed soon when it comes back.
func TestEndpointComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, []string{"a"}, func(*manager, received) (any, error) { return created("s1"), nil })
		m := f.managers["a"]
		m.kill()
		c := f.client(t, client.Options{Endpoints: []string{"unix:///a"}, ConnectWait: time.Hour})
		var back time.Time
		time.AfterFunc(time.Minute, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.dead, back = false, time.Now()
		})
		if _, err := c.Control().CreateService(t.Context(), &api.CreateServiceRequest{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(back); took > 2*time.Second {
			t.Errorf("noticed after %v", took)
		}
	})
}

func TestRetryKeepsTheRequestID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		done := map[string]*api.CreateServiceResponse{}
		f := newFake(t, abc(), func(m *manager, c received) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			if first, ok := done[c.requestID]; ok {
				return first, nil
			}
			done[c.requestID] = created("first at " + m.name)
			m.kill()
			return done[c.requestID], nil
		})
		c := f.client(t, client.Options{})
		r, err := c.Control().CreateService(client.WithMessage(t.Context(), "why"), &api.CreateServiceRequest{Spec: &api.ServiceSpec{}})
		if err != nil {
			t.Fatal(err)
		}
		if r.Service.ID != "first at a" || len(done) != 1 {
			t.Errorf("got %v of %v", r.Service.ID, done)
		}
		calls := f.received("CreateService")
		if len(calls) != 2 || calls[0].requestID != calls[1].requestID || calls[1].manager != "b" || calls[1].message != "why" {
			t.Fatalf("calls: %+v", calls)
		}
		if seen, err := wire.ParseRequestID(calls[0].requestID); err != nil || seen != 42 {
			t.Errorf("the request ID %q does not begin with the revision of the cluster: %v", calls[0].requestID, err)
		}
		if _, err := c.Control().CreateService(t.Context(), &api.CreateServiceRequest{}); err != nil {
			t.Fatal(err)
		}
		if n := len(f.received("Check")); n != 1 {
			t.Errorf("asked for the revision %d times", n)
		}
		if len(done) != 2 {
			t.Errorf("a second write got the request ID of the first: %v", done)
		}
	})
}

func TestUnknownOutcomeIsRetriedWithTheSameID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, abc(), func(m *manager, _ received) (any, error) {
			if m.name == "a" {
				return nil, errkind.New(errkind.UnknownOutcome, "leadership lost")
			}
			return created("x"), nil
		})
		c := f.client(t, client.Options{})
		ctx := client.WithRequestID(t.Context(), "7.abcdefghijklmnopqrst")
		if _, err := c.Control().CreateService(ctx, &api.CreateServiceRequest{}); err != nil {
			t.Fatal(err)
		}
		for _, call := range f.received("CreateService") {
			if call.requestID != "7.abcdefghijklmnopqrst" {
				t.Errorf("request ID %q", call.requestID)
			}
		}
	})
}

func TestNoLeaderIsRetriedUntilThereIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		f := newFake(t, abc(), func(*manager, received) (any, error) {
			if time.Since(begin) < 3*time.Second {
				return nil, errkind.New(errkind.NoLeader, "no leader")
			}
			return created("x"), nil
		})
		c := f.client(t, client.Options{})
		if _, err := c.Control().CreateService(t.Context(), &api.CreateServiceRequest{}); err != nil {
			t.Fatal(err)
		}
		calls := f.received("CreateService")
		if n := len(calls); n < 6 || n > 60 {
			t.Errorf("%d attempts in 3 s", n)
		}
		for _, call := range calls {
			if call.requestID != calls[0].requestID {
				t.Errorf("request IDs %q, %q", calls[0].requestID, call.requestID)
			}
		}
	})
}

func TestFinalErrors(t *testing.T) {
	noLeader := func(*manager, received) (any, error) { return nil, errkind.New(errkind.NoLeader, "no leader") }
	unknown := func(*manager, received) (any, error) { return nil, errkind.New(errkind.UnknownOutcome, "lost") }
	asked := map[*manager]bool{}
	thenLate := func(m *manager, r received) (any, error) {
		if asked[m] {
			return nil, errkind.New(errkind.DeadlineReached, "late")
		}
		asked[m] = true
		return noLeader(m, r)
	}
	for name, c := range map[string]struct {
		handle  func(*manager, received) (any, error)
		kill    string
		opts    client.Options
		timeout time.Duration
		read    bool
		kind    errkind.Kind
		text    []string
		not     string
		took    time.Duration // at most
	}{
		"no leader until the context ends": {
			handle: noLeader, timeout: 5 * time.Second, kind: errkind.NoLeader,
			text: []string{"no leader, and nothing was done; gave up after 5s", "unix:///a (", "unix:///b (", "times): no leader"},
			took: 5 * time.Second,
		},
		"what an object needs is away": {
			handle: func(*manager, received) (any, error) {
				return nil, errkind.New(errkind.NoLeader, "the database is away").On("stack", "shop")
			},
			timeout: 5 * time.Second, kind: errkind.NoLeader, took: 5 * time.Second,
			text: []string{"nothing was done; gave up after 5s: unix:///a (", "times): stack shop: the database is away"},
			not:  "leader",
		},
		"a manager whose time is over says less than before": {
			handle: thenLate, timeout: 5 * time.Second, kind: errkind.UnknownOutcome, took: 5 * time.Second,
			text: []string{"whether it was done is not known", "times): no leader"}, not: "late",
		},
		"no leader until the budget is spent": {
			handle: noLeader, opts: client.Options{RetryFor: time.Second}, timeout: time.Minute,
			kind: errkind.NoLeader, took: 3 * time.Second,
		},
		"unknown outcome": {
			handle: unknown, timeout: 5 * time.Second, kind: errkind.UnknownOutcome,
			text: []string{"whether it was done is not known (request ID 42.", "unix:///c"}, took: 5 * time.Second,
		},
		"nobody there": {
			kill: "abc", timeout: time.Minute, kind: errkind.NoLeader,
			text: []string{"cannot connect to any manager: unix:///a (", "times), unix:///b (", "times): connection refused"}, took: 5 * time.Second,
		},
		"dies in the middle and nobody else is there": {
			handle: func(m *manager, _ received) (any, error) { m.kill(); return created("x"), nil },
			kill:   "bc", timeout: 10 * time.Second, kind: errkind.UnknownOutcome,
			text: []string{"whether it was done is not known"}, took: 10 * time.Second,
		},
		"a read that dies with all managers": {
			handle: func(m *manager, _ received) (any, error) { m.kill(); return created("x"), nil },
			kill:   "bc", timeout: time.Minute, read: true, kind: errkind.NoLeader,
			text: []string{"cannot connect to any manager"}, took: 5 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, abc(), c.handle)
				for _, m := range c.kill {
					f.managers[string(m)].kill()
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
				defer cancel()
				begin := time.Now()
				cl := f.client(t, c.opts)
				var err error
				if !c.read {
					_, err = cl.Control().CreateService(ctx, &api.CreateServiceRequest{})
				} else {
					_, err = cl.Control().GetService(ctx, &api.GetServiceRequest{})
				}
				if !errkind.Is(err, c.kind) {
					t.Fatalf("got %v, kind %v", err, errkind.Of(err))
				}
				if c.not != "" && strings.Contains(err.Error(), c.not) {
					t.Errorf("%q is in: %v", c.not, err)
				}
				for _, text := range c.text {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%q is not in: %v", text, err)
					}
				}
				if took := time.Since(begin); took > c.took {
					t.Errorf("took %v: %v", took, err)
				}
			})
		})
	}
}

// A call that hangs ends with its context, and says what is known.
func TestHangingCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := newFake(t, abc(), func(*manager, received) (any, error) { <-release; return created("x"), nil })
		c := f.client(t, client.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := c.Control().CreateService(ctx, &api.CreateServiceRequest{})
		if !errkind.Is(err, errkind.UnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("write: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err = c.Control().ListServices(ctx, &api.ListServicesRequest{})
		if !errkind.Is(err, errkind.DeadlineReached) || !strings.Contains(err.Error(), "no answer in time; gave up after 2s: unix:///a") {
			t.Errorf("read: %v", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = c.Control().ListServices(ctx, &api.ListServicesRequest{})
		if !errkind.Is(err, errkind.Canceled) || !errors.Is(err, context.Canceled) {
			t.Errorf("canceled read: %v", err)
		}
		close(release)
	})
}

func TestErrorsThatARetryWouldNotChange(t *testing.T) {
	for k := errkind.Internal; k <= errkind.Unauthenticated; k++ {
		if k == errkind.NoLeader || k == errkind.UnknownOutcome {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t, abc(), func(*manager, received) (any, error) {
				return nil, errkind.New(k, "no").On("service", "web").WithHint("do this")
			})
			_, err := f.client(t, client.Options{}).Control().CreateService(t.Context(), &api.CreateServiceRequest{})
			if !errkind.Is(err, k) || errkind.Hint(err) != "do this" || len(f.received("CreateService")) != 1 {
				t.Errorf("kind %v: got %v after %d attempts", k, err, len(f.received("CreateService")))
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, abc(), func(*manager, received) (any, error) { return nil, status.Error(codes.Unknown, "odd") })
		_, err := f.client(t, client.Options{}).Control().CreateService(t.Context(), &api.CreateServiceRequest{})
		if !errkind.Is(err, errkind.UnknownOutcome) || len(f.received("CreateService")) != 1 {
			t.Errorf("got %v after %d attempts", err, len(f.received("CreateService")))
		}
	})
}

func TestFreshness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, abc(), func(*manager, received) (any, error) { return &api.ListTasksResponse{}, nil })
		c := f.client(t, client.Options{})
		for _, ctx := range []context.Context{
			t.Context(), client.ReadLocal(t.Context()), client.ReadAtLeast(t.Context(), 5),
			client.ReadAt(client.ReadLocal(t.Context()), 6),
		} {
			if _, err := c.Control().ListTasks(ctx, &api.ListTasksRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, call := range f.received("ListTasks") {
			got = append(got, call.freshness)
		}
		if want := []string{"", "local", "min=5", "at=6"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, abc(), nil)
		f.managers["a"].kill()
		c := f.client(t, client.Options{})
		s, err := c.Conn().NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/x.Y/Watch")
		if err != nil {
			t.Fatal(err)
		}
		var r api.CreateServiceResponse
		if err := errors.Join(s.CloseSend(), s.RecvMsg(&r)); err != nil || r.Service.ID != "from b" {
			t.Fatalf("got %v, %v", r.Service, err)
		}
		if err := s.RecvMsg(&r); !errkind.Is(err, errkind.OutOfRange) {
			t.Errorf("got %v", err)
		}
		if c.Revision() != 43 {
			t.Errorf("revision %d", c.Revision())
		}
	})
}

func TestClosedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, abc(), func(*manager, received) (any, error) { return created("x"), nil })
		c := f.client(t, client.Options{})
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := c.Control().CreateService(t.Context(), &api.CreateServiceRequest{})
		if err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("got %v", err)
		}
	})
}

func TestEndpoints(t *testing.T) {
	for _, ok := range []string{"unix:///run/x.sock", "127.0.0.1:1", "127.8.0.1:1", "[::1]:99", "localhost:4000"} {
		c, err := client.New(client.Options{Endpoints: []string{ok}})
		if err != nil {
			t.Errorf("%s: %v", ok, err)
			continue
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "unix://rel", "10.0.0.1:4000", "example.com:80", "[::]:1", ":80", "127.0.0.1", "/run/x.sock", "http://127.0.0.1:80"} {
		_, err := client.New(client.Options{Endpoints: []string{"127.0.0.1:1", bad}})
		if !errkind.Is(err, errkind.Invalid) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
	if _, err := client.New(client.Options{}); !errkind.Is(err, errkind.Invalid) {
		t.Errorf("no endpoints: %v", err)
	}
}
