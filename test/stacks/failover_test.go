package stacks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
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
	blows := []blow{
		{name: "in flight", after: inFlight, pause: true, timeout: "30s"},
		{name: "in flight, and ctl gives up", after: inFlight, pause: true, timeout: "1s"},
		{name: "after 80%", after: whole * 80 / 100, timeout: "30s"},
	}
	if testcluster.Soak(t) > 0 {
		for part := 10; part <= 120; part += 5 {
			after := whole * time.Duration(part) / 100
			blows = append(blows, blow{name: fmt.Sprintf("after %v", after), after: after, timeout: "30s"})
		}
	}
	for _, b := range blows {
		t.Run(b.name, func(t *testing.T) { killed(newSession(t, c), file, b) })
	}
}

// blow is how the leader is killed.
type blow struct {
	name    string
	after   time.Duration // since ctl was started
	pause   bool          // the others, until the leader is dead, so that nothing is committed
	timeout string        // how long ctl tries
}

// strike kills the leader. It may be called from any goroutine.
func (b blow) strike(lead *testcluster.Process, others []*testcluster.Process) error {
	time.Sleep(b.after)
	if err := lead.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	if _, err := lead.WaitExit(testcluster.Bound); err != nil {
		return err
	}
	for _, p := range others {
		if err := p.Signal(syscall.SIGCONT); err != nil {
			return err
		}
	}
	return nil
}

// killed deploys while the leader is killed, looks at what came of it, and deploys again.
func killed(s *session, file string, b blow) {
	t, lead := s.t, s.cluster.Leader()
	sockets := []string{lead.Endpoint()}
	followers := s.cluster.Followers()
	var others []*testcluster.Process
	for _, m := range followers {
		others, sockets = append(others, m.Process), append(sockets, m.Endpoint())
	}
	stop := watchStack(t, s.cluster)
	if b.pause {
		for _, m := range followers {
			m.Pause()
		}
	}
	struck := make(chan error, 1)
	go func() { struck <- b.strike(lead.Process, others) }()
	r := s.cluster.Ctl("--socket", strings.Join(sockets, ","), "--timeout", b.timeout,
		"stack", "deploy", "-c", file, "app")
	if err := <-struck; err != nil {
		t.Fatal(err)
	}
	for _, m := range followers {
		m.Resume() // they run already; this is for the cluster to know it
	}

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
