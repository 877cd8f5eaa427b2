package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/errkind"
	"holdfast/test/testcluster"
)

// TestLeaderStopped asks the leader to stop while services are created: it hands over, and
// every client gets an answer.
func TestLeaderStopped(t *testing.T) {
	c := testcluster.New(t, 3)
	w := newWriter(c)
	stop := w.start(t, "s", 32)
	rounds := 2
	if testcluster.Soak(t) > 0 {
		rounds = 10
	}
	for i := range rounds {
		w.wait(t, 500*(i+1))
		lead := c.Leader()
		before := w.acknowledged()
		lead.Stop()
		w.wait(t, before+200)
		for _, bad := range []string{"not handed over", "level=ERROR", "panic"} {
			if strings.Contains(lead.Process.Stderr(), bad) {
				t.Errorf("%s said %q when it was stopped", lead.Name, bad)
			}
		}
		if next := c.Leader(); next == lead {
			t.Errorf("%s leads and was stopped", lead.Name)
		}
		lead.Start()
	}
	stop()
	t.Logf("%d services; the longest time between two was %v", w.acknowledged(), w.longestGap().Round(time.Millisecond))
	if n := w.unknown(); n > 0 {
		t.Errorf("%d outcomes stayed unknown", n)
	}
	if others := check(t, c.Same(), w.made()); others != 0 {
		t.Errorf("%d services that were not acknowledged", others)
	}
}

// TestLeaderPaused stops the leader's process where it is, lets the others elect another one
// and write, and asks the old one, which believes that it leads: it must not answer with what
// it has, and what it had promised is not lost.
func TestLeaderPaused(t *testing.T) {
	const writes = 64
	c := testcluster.New(t, 3)
	old := c.Leader()
	ctx := testcluster.Context(t, testcluster.Bound)
	first, err := create(ctx, old.Client(), "before", "")
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := map[string]made{"before": first}
	var during [writes]made
	var open [writes]bool
	var writing errgroup.Group
	old.Pause()
	for i := range writes { // these reach the old leader only when it goes on
		writing.Go(func() (err error) {
			during[i], err = create(ctx, old.Once(), fmt.Sprint("during-", i), "")
			if open[i] = err != nil; open[i] && !retriable(err) {
				return err
			}
			return nil
		})
	}
	w := c.Client(c.Running()...)
	newest := uint64(0)
	for i := range 20 {
		name := fmt.Sprint("after-", i)
		m, err := create(ctx, w, name, "")
		if err != nil {
			t.Fatal(err)
		}
		acknowledged[name], newest = m, max(newest, m.revision)
	}
	if err := readWhileResumed(ctx, old, newest); err != nil {
		t.Error(err)
	}
	if err := writing.Wait(); err != nil {
		t.Error(err)
	}
	unknown := 0
	for i := range writes {
		if open[i] {
			unknown++
			continue
		}
		acknowledged[fmt.Sprint("during-", i)] = during[i]
	}
	t.Logf("%d of %d writes to the paused leader were acknowledged", writes-unknown, writes)
	if others := check(t, c.Same(), acknowledged); others > unknown {
		t.Errorf("%d services that were not acknowledged, and only %d outcomes were unknown", others, unknown)
	}
}

// readWhileResumed reads from a paused member, some before it goes on and some after.
func readWhileResumed(ctx context.Context, old *testcluster.Member, newest uint64) error {
	const reads = 64
	var reading errgroup.Group
	for range reads {
		reading.Go(func() error { return notStale(ctx, old.Once(), newest) })
	}
	old.Resume()
	for range reads {
		reading.Go(func() error { return notStale(ctx, old.Once(), newest) })
	}
	return reading.Wait()
}

// notStale reads as fresh as can be. No answer is as good as one that is fresh.
func notStale(ctx context.Context, c *client.Client, newest uint64) error {
	r, err := c.Objects().List(ctx, &holdfast.ListRequest{
		Kind: holdfast.Kind_KIND_SERVICE, Selector: holdfast.Selector{Names: []string{"after-19"}},
	})
	switch {
	case errkind.Is(err, errkind.NoLeader), errkind.Is(err, errkind.DeadlineReached):
		return nil
	case err != nil:
		return err
	case r.Revision < newest || len(r.Objects) != 1:
		return fmt.Errorf("stale read: revision %d with %d objects, after %d was acknowledged", r.Revision, len(r.Objects), newest)
	}
	return nil
}
