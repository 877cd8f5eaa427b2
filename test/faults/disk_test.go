package faults

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"holdfast/api"
	"holdfast/client"
	"holdfast/test/testcluster"
)

// becomesReady returns a condition: the process has said that it is ready.
func becomesReady(p *testcluster.Process) func(context.Context) error {
	return func(context.Context) error {
		if !strings.HasPrefix(p.Stdout(), "managerd: ready ") {
			return errors.New("it is not ready")
		}
		return nil
	}
}

// TestDiskFull lets the disk of a manager run full while it is written to. The manager ends,
// and after there is more room everything that it had acknowledged is there.
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a small file system can be mounted by root only")
	}
	c := testcluster.Empty(t)
	m := c.Add()
	if err := os.Mkdir(m.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", m.StateDir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		m.Process.Signal(syscall.SIGKILL) //nolint:errcheck // it may have ended before
		if _, err := m.Process.WaitExit(testcluster.Bound); err != nil {
			t.Error(err)
		}
		if err := syscall.Unmount(m.StateDir, 0); err != nil {
			t.Error(err)
		}
	})
	m.Start()
	c.Configure(func(s *api.ClusterSpec) { s.Raft.SnapshotInterval = 20 }) // they find the disk full, too
	acknowledged := fillDisk(t, m)
	code, err := m.Process.WaitExit(testcluster.Bound)
	if err != nil || code != 1 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	text, err := m.Process.Complaint()
	if err != nil || !strings.Contains(text, "no space left on device") {
		t.Errorf("said %q, %v", text, err)
	}
	t.Logf("after %d configs: %s", len(acknowledged), text)

	// As long as it is full, it may start or not, but it does not lose anything.
	m.Launch()
	if code, err := m.Process.WaitExit(testcluster.Bound / 12); err == nil && code != 1 {
		t.Errorf("exit code %d on a full disk", code)
	} else if err != nil {
		m.Kill()
	}
	if err := syscall.Mount("", m.StateDir, "", syscall.MS_REMOUNT, "size=256m"); err != nil {
		t.Fatal(err)
	}
	m.Start()
	checkConfigs(t, m, acknowledged)
	if _, err := create(testcluster.Context(t, testcluster.Bound), m.Client(), "after", ""); err != nil {
		t.Error(err)
	}
}

// checkConfigs checks that all that was acknowledged is there.
func checkConfigs(t *testing.T, m *testcluster.Member, acknowledged map[string]string) {
	t.Helper()
	all, err := client.Collect(m.Client().Configs(testcluster.Context(t, testcluster.Bound), nil))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, o := range all {
		found[o.ID] = o.Spec.Annotations.Name
	}
	for id, name := range acknowledged {
		if found[id] != name {
			t.Errorf("config %s was acknowledged as %s, and is %q", name, id, found[id])
		}
	}
}

// fillDisk creates configs until the manager is gone, and returns the names of those that it
// acknowledged by their IDs.
func fillDisk(t *testing.T, m *testcluster.Member) map[string]string {
	t.Helper()
	const writers = 4
	var all [writers]map[string]string
	group, ctx := errgroup.WithContext(testcluster.Context(t, testcluster.Bound))
	for w := range writers {
		all[w] = map[string]string{}
		group.Go(func() error {
			data := make([]byte, 64<<10)
			rand.Read(data)
			for i := range 10_000 {
				name := fmt.Sprintf("fill-%d-%d", w, i)
				r, err := m.Once().Control().CreateConfig(ctx, &api.CreateConfigRequest{Spec: &api.ConfigSpec{
					Annotations: api.Annotations{Name: name}, Data: data,
				}})
				switch {
				case err != nil && retriable(err) && !m.Running():
					return nil
				case err != nil && !retriable(err):
					return err
				case err == nil:
					all[w][r.Config.ID] = name
				}
			}
			return errors.New("the disk does not run full")
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	acknowledged := map[string]string{}
	for _, some := range all {
		for id, name := range some {
			acknowledged[id] = name
		}
	}
	return acknowledged
}

// TestBitRot flips a bit in the log of a member that is stopped. It does not start, the others
// go on, and with the bit put right it comes back.
func TestBitRot(t *testing.T) {
	c := testcluster.New(t, 3)
	w := newWriter(c)
	stop := w.start(t, "s", 8)
	w.wait(t, 300)
	stop()
	rotten := c.Followers()[0]
	rotten.Stop()
	segment := rotten.LogSegments()[0]
	for _, at := range []int{3, 600, fileSize(t, segment) / 2, fileSize(t, segment) - 20} {
		flip(t, segment, at)
		rotten.Launch()
		code, err := rotten.Process.WaitExit(testcluster.Bound)
		if err != nil || code != 1 {
			t.Fatalf("bit flipped at %d: exit code %d, %v", at, code, err)
		}
		text, err := rotten.Process.Complaint()
		if err != nil || !strings.Contains(text, filepath.Base(segment)) || !strings.Contains(text, "offset") {
			t.Errorf("bit flipped at %d: said %q, %v", at, text, err)
		}
		t.Log(text)
		flip(t, segment, at)
	}
	got, err := create(testcluster.Context(t, testcluster.Bound), c.Client(c.Running()...), "meanwhile", "")
	if err != nil {
		t.Fatal(err)
	}
	rotten.Start()
	all := w.made()
	all["meanwhile"] = got
	if others := check(t, c.Same(), all); others > w.unknown() {
		t.Errorf("%d services that were not acknowledged", others)
	}
}

func fileSize(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size())
}

// flip flips a bit of a file.
func flip(t *testing.T, path string, at int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 0x10
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
