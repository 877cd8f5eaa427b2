package watch

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/errkind"
	"holdfast/test/testcluster"
)

// TestResumeAnywhere restarts all members, and adds one that gets a snapshot: from any revision
// in the history, every one of them goes on exactly as the others would have.
func TestResumeAnywhere(t *testing.T) {
	ctx := testcluster.Context(t, 3*time.Minute)
	c := testcluster.New(t, 3)
	record, nodes := written(ctx, t, c, 60)
	floor := record.first + 20
	if _, err := c.Client().Cluster().Compact(ctx, &holdfast.CompactRequest{Revision: floor}); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Members {
		m.Stop()
	}
	for _, m := range c.Members {
		m.Launch() // in any order: no one is ready before there is a quorum
	}
	for _, m := range c.Members {
		m.WaitReady()
	}
	c.Snapshot(1)
	c.Add().Start()
	random := rand.New(rand.NewPCG(1, 1))
	for _, m := range c.Members {
		for after := floor; after <= record.at(); after += 3 {
			w := newWatcher(random, nodes, record.at())
			w.opts.Initial, w.view, w.began, w.at = false, nil, after, 0
			w.opts.Start = client.After(after)
			end, done := record.at(), make(chan struct{})
			close(done)
			if err := w.run(ctx, m.Client(), done, &end); err != nil {
				t.Fatalf("%s, after %d: %v", m.Name, after, err)
			}
			if err := w.check(record, record.at()); err != nil {
				t.Errorf("%s, after %d: %v", m.Name, after, err)
			}
		}
		_, err := client.Collect(m.Client().Watch(ctx, client.WatchOptions{Start: client.After(floor - 1)}))
		if e, ok := asError(err); !ok || e.Kind != errkind.OutOfRange || e.Now != floor {
			t.Errorf("%s, below the floor of %d: %v", m.Name, floor, err)
		}
	}
}

// written does some transactions and records what lists show of each revision.
func written(ctx context.Context, t *testing.T, c *testcluster.Cluster, revisions uint64) (*record, []string) {
	t.Helper()
	w := &writer{c: c.Client(), random: rand.New(rand.NewPCG(2, 2))}
	for _, m := range c.Members {
		w.nodes = append(w.nodes, m.NodeID)
	}
	first, err := c.Leader().Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	last := first
	for last < first+revisions {
		if err := w.write(ctx); err != nil {
			t.Fatal(err)
		}
		if last, err = c.Members[0].Revision(ctx); err != nil {
			t.Fatal(err)
		}
	}
	r := &record{c: w.c, first: first}
	for revision := first; revision <= last; revision++ {
		state, err := r.state(ctx, revision)
		if err != nil {
			t.Fatal(err)
		}
		r.states = append(r.states, state)
	}
	return r, w.nodes
}

// TestSwarmWatchOverAFailover follows SwarmKit's Watch through one member after another, while
// each of them is killed: with the version of the last message it misses nothing.
func TestSwarmWatchOverAFailover(t *testing.T) {
	ctx := testcluster.Context(t, 3*time.Minute)
	c := testcluster.New(t, 3)
	all := c.Client()
	services := func(n int) {
		t.Helper()
		for i := range 10 {
			_, err := all.Control().CreateService(ctx, &api.CreateServiceRequest{Spec: &api.ServiceSpec{
				Annotations: api.Annotations{Name: fmt.Sprintf("s%d-%d", n, i)},
				Task: api.TaskSpec{Runtime: &api.TaskSpec_Container{
					Container: &api.ContainerSpec{Image: "nginx"},
				}},
				Mode: &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{}},
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	seen := map[string]uint64{}
	var at *api.Version
	for n := range 3 {
		m := c.Leader()
		watch, cancel := context.WithCancel(ctx)
		stream, err := api.NewWatchClient(m.Client().Conn()).Watch(watch, &api.WatchRequest{
			Entries: []*api.WatchRequest_WatchEntry{{
				Kind: "service", Action: api.WatchActionKind_WATCH_ACTION_CREATE | api.WatchActionKind_WATCH_ACTION_REMOVE,
			}},
			ResumeFrom: at,
		})
		if err != nil {
			t.Fatal(err)
		}
		first, err := stream.Recv()
		if err != nil || len(first.Events) > 0 || at != nil && first.Version.Index != at.Index {
			t.Fatalf("the first message is %v, %v", first, err)
		}
		services(n)
		for len(seen) < 10*n+5 { // the rest of them the next one has to tell
			msg, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range msg.Events {
				name := e.Object.GetService().Spec.Annotations.Name
				if seen[name] != 0 || msg.Version.Index <= at.GetIndex() {
					t.Fatalf("%s at %d, and before at %d", name, msg.Version.Index, seen[name])
				}
				seen[name] = msg.Version.Index
			}
			at = msg.Version
		}
		cancel()
		m.Kill()
		c.Leader()
		m.Start()
	}
	want := map[string]uint64{}
	for s, err := range all.Services(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Meta.Version.Index <= at.Index {
			want[s.Spec.Annotations.Name] = s.Meta.Version.Index
		}
	}
	if len(want) != 25 || !maps.Equal(seen, want) {
		t.Errorf("saw %v, want %v", seen, want)
	}
}
