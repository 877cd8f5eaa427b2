package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"holdfast/api"
	"holdfast/api/holdfast"
)

// SnapshotIndex returns the index of the newest snapshot in the member's folder, or 0.
func (m *Member) SnapshotIndex() uint64 {
	m.cluster.t.Helper()
	files, err := filepath.Glob(filepath.Join(m.StateDir, "raft", "snap", "snap-*.snap"))
	if err != nil {
		m.cluster.t.Fatal(err)
	}
	newest := uint64(0)
	for _, f := range files {
		var index, term uint64
		if _, err := fmt.Sscanf(filepath.Base(f), "snap-%16x-%16x.snap", &index, &term); err == nil {
			newest = max(newest, index)
		}
	}
	return newest
}

// LogSegments returns the names of the files of the member's log, oldest first.
func (m *Member) LogSegments() []string {
	m.cluster.t.Helper()
	entries, err := os.ReadDir(filepath.Join(m.StateDir, "raft", "log"))
	if err != nil {
		m.cluster.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".log") {
			names = append(names, filepath.Join(m.StateDir, "raft", "log", e.Name()))
		}
	}
	return names
}

// LogIndex returns the index of the newest entry that the leader has on disk.
func (c *Cluster) LogIndex() uint64 {
	c.t.Helper()
	index := uint64(0)
	cl := c.Client(c.Running()...)
	Wait(c.t, "the cluster's status", func(ctx context.Context) error {
		st, err := cl.Cluster().Status(ctx, &holdfast.StatusRequest{})
		for _, m := range st.GetMembers() {
			if m.Leader {
				index = m.MatchIndex
			}
		}
		return err
	})
	return index
}

// LogIndex is the cluster's of a member that leads. It also answers while the others do not.
func (m *Member) LogIndex(ctx context.Context) (uint64, error) {
	r, err := m.Once().Cluster().Members(ctx, &holdfast.MembersRequest{})
	for _, p := range r.GetMembers() {
		if p.Leader && p.NodeID == m.NodeID {
			return p.MatchIndex, nil
		}
	}
	return 0, errors.Join(err, fmt.Errorf("%s does not lead", m.Name))
}

// Snapshot makes every member that runs take a snapshot of all that was written before, and
// then none until interval entries more.
func (c *Cluster) Snapshot(interval uint64) {
	c.t.Helper()
	from := c.LogIndex()
	c.Configure(func(s *api.ClusterSpec) { s.Raft.SnapshotInterval = 1 })
	for tries := 0; c.snapshotsFrom(from) != nil; tries++ {
		// It begins after an entry, unless one is being written already.
		c.Configure(func(s *api.ClusterSpec) {
			s.Annotations.Labels = map[string]string{"snapshot": fmt.Sprint(tries)}
		})
	}
	c.Configure(func(s *api.ClusterSpec) { s.Raft.SnapshotInterval = interval })
}

// snapshotsFrom waits for a while until all members have a snapshot at an index or later.
func (c *Cluster) snapshotsFrom(index uint64) error {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), Bound/20)
	defer cancel()
	return Poll(ctx, "snapshots", func(context.Context) error {
		for _, m := range c.Running() {
			if at := m.SnapshotIndex(); at < index {
				return fmt.Errorf("%s has one at entry %d, want %d", m.Name, at, index)
			}
		}
		return nil
	})
}
