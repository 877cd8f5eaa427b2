package faults

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/test/testcluster"
)

// members returns the members' raft IDs by name, as the leader has them.
func members(t *testing.T, c *testcluster.Cluster) map[string]uint64 {
	t.Helper()
	st, err := c.Client(c.Running()...).Cluster().Status(
		testcluster.Context(t, testcluster.Bound), &holdfast.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]uint64{}
	for _, m := range st.Members {
		all[m.Hostname] = m.RaftID
	}
	return all
}

// seenAway fails if the leader takes a member for reachable.
func seenAway(ctx context.Context, c *testcluster.Cluster, name string) error {
	st, err := c.Leader().Client().Cluster().Status(ctx, &holdfast.StatusRequest{})
	for _, m := range st.GetMembers() {
		if m.Hostname == name && m.Reachable {
			return fmt.Errorf("%s is reachable", name)
		}
	}
	return err
}

// wasRemoved checks that a member's process has ended, and said why.
func wasRemoved(t *testing.T, m *testcluster.Member) {
	t.Helper()
	code, err := m.Process.WaitExit(testcluster.Bound)
	if err != nil || code != 1 {
		t.Fatalf("%s was removed: exit code %d, %v", m.Name, code, err)
	}
	text, err := m.Process.Complaint()
	if err != nil || !strings.Contains(text, "removed") {
		t.Errorf("%s was removed, and said %q, %v", m.Name, text, err)
	}
	t.Logf("%s said: %s", m.Name, text)
}

func TestMembersRemoved(t *testing.T) {
	c := testcluster.New(t, 3)
	ctx := testcluster.Context(t, 3*testcluster.Bound)
	first, err := create(ctx, c.Client(), "kept", "")
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := map[string]made{"kept": first}
	before := members(t, c)

	// One is away: those that would remain without another are no quorum.
	followers := c.Followers()
	away, there := followers[0], followers[1]
	away.Kill()
	testcluster.Wait(t, "the leader sees that one is away", func(ctx context.Context) error {
		return seenAway(ctx, c, away.Name)
	})
	got := c.Ctl("member", "rm", there.Name)
	if got.Code != 6 || !strings.Contains(got.Err, "quorum") || !strings.Contains(got.Err, away.Name) || len(members(t, c)) != 3 {
		t.Errorf("removing %s while %s is away: %+v; members %v", there.Name, away.Name, got, members(t, c))
	}
	// The one that is away can be removed, by its raft ID; once more does no harm.
	id := strconv.FormatUint(before[away.Name], 10)
	if got := c.Ctl("member", "rm", id); got.Code != 0 || strings.TrimSpace(got.Out) != id {
		t.Fatalf("ctl member rm %s: %+v", id, got)
	}
	if _, err := c.Client(c.Running()...).Cluster().RemoveMember(ctx, &holdfast.RemoveMemberRequest{RaftID: before[away.Name]}); err != nil {
		t.Errorf("removed twice: %v", err)
	}
	if got := c.Ctl("member", "rm", id); got.Code != 7 {
		t.Errorf("ctl member rm of one that is gone: %+v", got)
	}
	away.Launch()
	wasRemoved(t, away)
	rejoin(t, away)

	// The leader hands over before it goes.
	lead := c.Leader()
	if got := c.Ctl("member", "rm", lead.Name); got.Code != 0 {
		t.Fatalf("ctl member rm of the leader: %+v", got)
	}
	wasRemoved(t, lead)
	if next := c.Leader(); next == lead {
		t.Errorf("%s leads and was removed", lead.Name)
	}
	rejoin(t, lead)
	second, err := create(ctx, c.Client(), "after", "")
	if err != nil {
		t.Fatal(err)
	}
	acknowledged["after"] = second
	if others := check(t, c.Same(), acknowledged); others != 0 || len(members(t, c)) != 3 {
		t.Errorf("%d other services; members %v", others, members(t, c))
	}
	lastRemains(t, c)
}

// lastRemains removes all members but one, and tries to remove that.
func lastRemains(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	for _, m := range c.Followers() {
		if got := c.Ctl("member", "rm", m.Name); got.Code != 0 {
			t.Fatalf("ctl member rm %s: %+v", m.Name, got)
		}
		wasRemoved(t, m)
	}
	last := c.Leader()
	_, err := last.Client().Cluster().RemoveMember(testcluster.Context(t, testcluster.Bound),
		&holdfast.RemoveMemberRequest{RaftID: members(t, c)[last.Name]})
	refused(t, err, errkind.Refused, "last voter")
	if _, err := create(testcluster.Context(t, testcluster.Bound), last.Client(), "alone", ""); err != nil {
		t.Error(err)
	}
}

// rejoin empties the folder of a member that was removed, and starts it again.
func rejoin(t *testing.T, m *testcluster.Member) {
	t.Helper()
	if err := os.RemoveAll(m.StateDir); err != nil {
		t.Fatal(err)
	}
	m.Start()
}

const (
	bigConfigs     = 120
	bigConfigBytes = 900 << 10
	bigSnapshot    = 100 << 20
)

// TestRejoinBySnapshot removes a member of a cluster whose log is compacted, and lets it join
// again: it gets everything by one big snapshot.
func TestRejoinBySnapshot(t *testing.T) {
	c := testcluster.New(t, 3)
	c.Configure(func(s *api.ClusterSpec) {
		s.Raft.SnapshotInterval, s.Raft.LogEntriesForSlowFollowers = 1<<20, 10
	})
	fillConfigs(t, c)
	c.Snapshot(1 << 20)
	// The newest snapshots are older than the member that joins.
	if _, err := create(testcluster.Context(t, testcluster.Bound), c.Client(), "before", ""); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Members {
		if first := m.LogSegments()[0]; strings.HasSuffix(first, "0000000000000001.log") {
			t.Errorf("the log of %s was not cut: %v", m.Name, m.LogSegments())
		}
	}

	gone := c.Followers()[0]
	if got := c.Ctl("member", "rm", gone.Name); got.Code != 0 {
		t.Fatalf("ctl member rm: %+v", got)
	}
	wasRemoved(t, gone)
	rejoin(t, gone)
	received := regexp.MustCompile(`msg="receiving snapshot".* bytes=(\d+)`).FindStringSubmatch(gone.Process.Stderr())
	if received == nil {
		t.Fatalf("%s joined without a snapshot", gone.Name)
	}
	size, err := strconv.Atoi(received[1])
	if err != nil || size < bigSnapshot {
		t.Errorf("the snapshot had %s bytes, want %d at least", received[1], bigSnapshot)
	}
	content := c.Same()
	if content.Len() < bigConfigs {
		t.Errorf("%d objects", content.Len())
	}
	t.Logf("%s received a snapshot of %d bytes", gone.Name, size)
	if _, err := create(testcluster.Context(t, testcluster.Bound), gone.Client(), "after", ""); err != nil {
		t.Error(err)
	}
	c.Same()
}

// fillConfigs creates configs of random data.
func fillConfigs(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	cl := c.Client()
	group, ctx := errgroup.WithContext(testcluster.Context(t, 2*testcluster.Bound))
	group.SetLimit(4)
	for i := range bigConfigs {
		group.Go(func() error {
			data := make([]byte, bigConfigBytes)
			rand.Read(data)
			_, err := cl.Control().CreateConfig(ctx, &api.CreateConfigRequest{Spec: &api.ConfigSpec{
				Annotations: api.Annotations{Name: fmt.Sprint("big-", i)}, Data: data,
			}})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
