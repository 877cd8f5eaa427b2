package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/test/testcluster"
)

const (
	bigServices     = 100_000
	bigServiceBytes = 512
	bigTxn          = 512
	bigEntries      = 10_000
)

// TestBigRestart loads many services, takes a snapshot, writes many log entries after it, and
// restarts the manager: everything is there. How long that takes is told, and not judged.
func TestBigRestart(t *testing.T) {
	t.Parallel() // others wait meanwhile
	c := testcluster.New(t, 1)
	m := c.Members[0]
	c.Configure(func(s *api.ClusterSpec) { s.Raft.SnapshotInterval = 1 << 20 })
	began := time.Now()
	loadBig(t, m)
	t.Logf("%d services loaded in %v", bigServices, time.Since(began).Round(time.Millisecond))
	c.Snapshot(1 << 20)
	from := c.LogIndex()
	began = time.Now()
	for n := uint64(0); n < bigEntries; n = c.LogIndex() - from {
		writeEntries(t, m, bigEntries-n)
	}
	t.Logf("%d log entries in %v", c.LogIndex()-from, time.Since(began).Round(time.Millisecond))
	if at := m.SnapshotIndex(); at > from {
		t.Errorf("there is a snapshot at entry %d, after entry %d", at, from)
	}
	before := c.Same()
	m.Kill()
	began = time.Now()
	m.Start()
	ready := time.Since(began)
	if _, err := m.Revision(testcluster.Context(t, testcluster.Bound)); err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %v, first linearizable list after %v", ready.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	after, err := m.Content(testcluster.Context(t, testcluster.Bound), before.Revision)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("all %d objects listed after %v", after.Len(), time.Since(began).Round(time.Millisecond))
	if diff := before.Diff(after); diff != "" || len(after.Services) != bigServices {
		t.Errorf("%d services; differences: %s", len(after.Services), diff)
	}
}

// loadBig creates services that have a given size when they are stored.
func loadBig(t *testing.T, m *testcluster.Member) {
	t.Helper()
	ctx := testcluster.Context(t, 2*testcluster.Bound)
	probe, err := m.Client().Control().CreateService(ctx, &api.CreateServiceRequest{Spec: sized(0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	padding := 1 + bigServiceBytes - probe.Service.Size()
	if _, err := m.Client().Control().RemoveService(ctx, &api.RemoveServiceRequest{ServiceID: probe.Service.ID}); err != nil {
		t.Fatal(err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for from := 0; from < bigServices; from += bigTxn {
		group.Go(func() error {
			r := &holdfast.TxnRequest{}
			for i := from; i < min(from+bigTxn, bigServices); i++ {
				r.Operations = append(r.Operations, &holdfast.Operation{Op: &holdfast.Operation_Create{
					Create: &holdfast.Object{Target: &holdfast.Object_Service{Service: &api.Service{Spec: *sized(i, padding)}}},
				}})
			}
			resp, err := m.Client().Objects().Txn(ctx, r)
			if err != nil {
				return err
			}
			if n := resp.Objects[0].GetService().Size(); n < bigServiceBytes || n > bigServiceBytes+16 { // its revisions take more bytes later
				return fmt.Errorf("a service has %d bytes", n)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func sized(i, padding int) *api.ServiceSpec {
	s := service(fmt.Sprintf("big-%06d", i))
	s.Annotations.Labels = map[string]string{"padding": strings.Repeat("x", padding)}
	return s
}

// writeEntries does n small writes, few at a time, so that most become an entry of their own.
func writeEntries(t *testing.T, m *testcluster.Member, n uint64) {
	t.Helper()
	const writers = 4
	first, err := client.Collect(m.Client().List(testcluster.Context(t, testcluster.Bound), holdfast.Kind_KIND_SERVICE,
		holdfast.Selector{NamePrefixes: []string{"big-00000"}}))
	if err != nil || len(first) < writers {
		t.Fatalf("%d services, %v", len(first), err)
	}
	group, ctx := errgroup.WithContext(testcluster.Context(t, 2*testcluster.Bound))
	for w := range writers {
		group.Go(func() error {
			s := first[w].GetService()
			for i := range n/writers + 1 {
				s.Spec.Task.ForceUpdate++
				r, err := m.Client().Control().UpdateService(ctx, &api.UpdateServiceRequest{
					ServiceID: s.ID, ServiceVersion: &s.Meta.Version, Spec: &s.Spec,
				})
				if err != nil {
					return fmt.Errorf("update %d: %w", i, err)
				}
				s = r.Service
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
