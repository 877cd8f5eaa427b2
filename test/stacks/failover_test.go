package stacks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/compose"
	"holdfast/test/testcluster"
)

const (
	manyServices = 60
	manyNetworks = 6
)

// many is a Compose file of many services.
func many(version int) string {
	var b strings.Builder
	b.WriteString("services:\n")
	for i := range manyServices {
		fmt.Fprintf(&b, "  s%02d: {image: 's:%d', networks: [n%d]}\n", i, version, i%manyNetworks)
	}
	b.WriteString("networks:\n")
	for i := range manyNetworks {
		fmt.Fprintf(&b, "  n%d:\n", i)
	}
	return b.String()
}

// TestLeaderKilled kills the leader at various times in a deployment: the stack is there as a
// whole or not at all, at every moment, on each manager; and once it is deployed again, it is
// as if nothing had happened.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, 3)
	s := newSession(t, c)
	file := s.write("many.yml", many(1))
	began := time.Now()
	s.run(0, "stack", "deploy", "-c", file, "app")
	whole := time.Since(began)
	s.run(0, "stack", "rm", "app")

	// The leader has taken up the deployment, and does not know yet that it is alone.
	const inFlight = 500 * time.Millisecond
	kills := []kill{
		{name: "in flight", blow: blow{after: inFlight, pause: true}, timeout: "30s"},
		{name: "in flight, and ctl gives up", blow: blow{after: inFlight, pause: true}, timeout: "1s"},
		{name: "after 80%", blow: blow{after: whole * 80 / 100}, timeout: "30s"},
	}
	if testcluster.Soak(t) > 0 {
		for part := 10; part <= 120; part += 5 {
			after := whole * time.Duration(part) / 100
			kills = append(kills, kill{name: fmt.Sprintf("after %v", after), blow: blow{after: after}, timeout: "30s"})
		}
	}
	for _, k := range kills {
		t.Run(k.name, func(t *testing.T) { killed(newSession(t, c), file, k) })
	}
}

// kill is a way for the leader to die in a deployment.
type kill struct {
	name    string
	blow    blow
	timeout string // how long ctl tries
}

// killed deploys while the leader is killed, looks at what came of it, and deploys again.
func killed(s *session, file string, k kill) {
	t := s.t
	stop := watchStack(t, s.cluster)
	var r testcluster.Result
	lead := s.struck(k.blow, func() {
		// ctl would ask first which release is deployed, and get no answer while the others stand still.
		r = s.cluster.Ctl("--socket", s.socket, "--timeout", k.timeout,
			"stack", "deploy", "-c", file, "--expect-revision", "0", "app")
	})

	n := len(of("app", s.objects()))
	t.Logf("ctl: exit code %d, %d objects; %s", r.Code, n, strings.TrimSpace(r.Err))
	switch {
	case r.Code != 0 && r.Code != 5:
		t.Errorf("exit code %d:\n%s%s", r.Code, r.Out, r.Err)
	case r.Code == 0 && n == 0:
		t.Errorf("nothing came of a deployment that was said to be done:\n%s", r.Out)
	}
	s.run(0, "stack", "deploy", "-c", file, "app")
	s.unmoved("the deployment that was repeated", func() {
		s.says(s.run(0, "stack", "deploy", "-c", file, "app").Err, "nothing to change\n")
	})
	if n := len(of("app", s.objects())); n != manyServices+manyNetworks {
		t.Errorf("there are %d objects, want %d", n, manyServices+manyNetworks)
	}
	lead.Start()
	s.cluster.Same()
	s.run(0, "stack", "rm", "app")
	stop()
}

// watchStack looks at the stacks, as each manager has them, until the function is called that
// it returns; and that fails the test if a part of a stack was seen.
func watchStack(t testing.TB, c *testcluster.Cluster) (stop func()) {
	ctx, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	for _, m := range c.Members {
		wg.Go(func() {
			for ctx.Err() == nil {
				r, err := m.Once().Stacks().List(client.ReadLocal(ctx), &holdfast.ListStacksRequest{})
				if err != nil { // the manager may be dead
					time.Sleep(time.Millisecond)
					continue
				}
				for _, stack := range r.Stacks {
					if stack.Services != manyServices || stack.Networks != manyNetworks {
						cancel(fmt.Errorf("%s has a part of a stack: %v", m.Name, stack))
					}
				}
			}
		})
	}
	done := errors.New("done")
	return func() {
		cancel(done)
		wg.Wait()
		if err := context.Cause(ctx); !errors.Is(err, done) {
			t.Error(err)
		}
	}
}

// testAtOnce deploys two versions of a stack at the same time, through two managers: one comes
// after the other.
func testAtOnce(s *session) {
	ctx := testcluster.Context(s.t, testcluster.Bound)
	for range 3 {
		errs := make(chan error)
		for version := 1; version <= 2; version++ {
			through := s.cluster.Members[version].Client()
			go func() {
				loaded, err := compose.Load(ctx, compose.Options{
					Files: []string{"-"}, Stdin: strings.NewReader(many(version)), Stack: "app",
				})
				if err == nil {
					_, err = through.Stacks().Deploy(ctx, loaded.Request)
				}
				errs <- err
			}()
		}
		if err := errors.Join(<-errs, <-errs); err != nil {
			s.t.Fatal(err)
		}
		images := map[string]int{}
		for service, err := range s.client.Services(ctx, nil) {
			if err != nil {
				s.t.Fatal(err)
			}
			images[service.Spec.Task.GetContainer().Image]++
		}
		if len(images) != 1 || images["s:1"]+images["s:2"] != manyServices {
			s.t.Errorf("the stack is of more than one version: %v", images)
		}
	}
	s.run(0, "stack", "rm", "app")
}
