package faults

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"golang.org/x/sync/errgroup"

	"holdfast/api"
	"holdfast/test/testcluster"
)

// TestAllKilled kills all members at once, under load, and starts them in all orders.
func TestAllKilled(t *testing.T) {
	orders := [][3]int{{0, 1, 2}, {2, 1, 0}}
	if testcluster.Soak(t) > 0 {
		orders = append(orders, [3]int{0, 2, 1}, [3]int{1, 0, 2}, [3]int{1, 2, 0}, [3]int{2, 0, 1})
	}
	c := testcluster.New(t, 3)
	w := newWriter(c)
	for i, order := range orders {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			stop := w.start(t, fmt.Sprintf("round%d", i), 16)
			w.wait(t, 200)
			for _, m := range c.Members {
				m.Kill()
			}
			stop()
			for _, n := range order {
				m := c.Members[n]
				m.Launch()
				testcluster.Wait(t, m.Name+" serves", func(ctx context.Context) error {
					_, err := m.Once().Health().Check(ctx, &api.HealthCheckRequest{})
					return err
				})
			}
			for _, n := range order {
				c.Members[n].WaitReady()
			}
			if others := check(t, c.Same(), w.made()); others > w.unknown() {
				t.Errorf("%d services that were not acknowledged, and only %d outcomes were unknown", others, w.unknown())
			}
		})
	}
	for _, m := range c.Members {
		m.Stop()
	}
}

// TestFollowerKilled kills a follower again and again while services are created. No client
// notices more than a retry, and the follower catches up.
func TestFollowerKilled(t *testing.T) {
	c := testcluster.New(t, 3)
	w := newWriter(c)
	stop := w.start(t, "s", 16)
	rounds := 2
	if testcluster.Soak(t) > 0 {
		rounds = 10
	}
	for i := range rounds {
		w.wait(t, 300*(i+1))
		m := c.Followers()[i%2]
		m.Kill()
		w.wait(t, 300*(i+1)+150)
		m.Start()
	}
	stop()
	if n := w.unknown(); n > 0 {
		t.Errorf("%d outcomes stayed unknown", n)
	}
	if others := check(t, c.Same(), w.made()); others != 0 {
		t.Errorf("%d services that were not acknowledged", others)
	}
}

// TestClientsGone lets clients go away in the middle of their requests. What they had asked
// for is done or not, and the members go on.
func TestClientsGone(t *testing.T) {
	c := testcluster.New(t, 3)
	ctx := testcluster.Context(t, testcluster.Bound)
	group, groupCtx := errgroup.WithContext(ctx)
	for i := range 32 {
		group.Go(func() error {
			gone, leave := context.WithCancel(groupCtx)
			defer leave()
			own := c.Members[i%3].Once()
			var calls errgroup.Group
			for n := range 8 {
				calls.Go(func() error {
					_, err := create(gone, own, fmt.Sprintf("gone-%d-%d", i, n), "")
					if n == 0 {
						leave()
						return err
					}
					return nil
				})
			}
			return calls.Wait()
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	content := c.Same()
	found := map[string]made{}
	for _, s := range content.Services {
		found[s.Spec.Annotations.Name] = madeOf(s)
	}
	for i := range 32 {
		if name := fmt.Sprintf("gone-%d-0", i); found[name] == (made{}) {
			t.Errorf("service %s was acknowledged and is not there", name)
		}
	}
	before := maps.Clone(found)
	check(t, c.Same(), before)
}
