package faults

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/test/testcluster"
)

// badStart is a start that must fail.
type badStart struct {
	name  string
	flags []string // after those of a start that works; the last of a kind wins
	code  int
	want  []string
	dir   string // whose content must not change; of a folder that has none yet, no log may come to be
}

// startBadly runs managerd until it has failed, and checks how.
func startBadly(t *testing.T, b badStart, good []string) {
	t.Helper()
	before := folder(t, b.dir)
	p := testcluster.Start(t, b.name, append(slices.Clone(good), b.flags...)...)
	code, err := p.WaitExit(testcluster.Bound)
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.Complaint()
	if code != b.code || err != nil || p.Stdout() != "" {
		t.Errorf("exit code %d, want %d; said %q, %v; on stdout %q", code, b.code, text, err, p.Stdout())
	}
	for _, want := range b.want {
		if !strings.Contains(text, want) {
			t.Errorf("said %q, which does not tell %q", text, want)
		}
	}
	after := folder(t, b.dir)
	for name := range after {
		// In a folder that is new, the next start finds the node's ID, and no cluster yet.
		if fresh := name == "lock" || name == "node-id"; before[name] == "" && !fresh {
			t.Errorf("the failed start left %s", name)
		}
	}
	for name, was := range before {
		if after[name] != was {
			t.Errorf("the failed start changed %s: it was %s, and is %s", name, was, after[name])
		}
	}
	t.Log(text)
}

// folder gives the files below a folder, by name, with what they hold.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if _, err := os.Stat(dir); err != nil {
		return files
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, relErr := filepath.Rel(dir, path)
		if relErr != nil {
			return relErr
		}
		files[name] = fmt.Sprintf("%d bytes %x", len(data), sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// goodStart gives flags of a start in a folder that works.
func goodStart(dir, name string) []string {
	return []string{
		"--state-dir", filepath.Join(dir, name), "--hostname", name, "--listen-remote-api", "127.0.0.1:0",
		"--listen-control-api", "unix://" + filepath.Join(dir, name+".sock"),
	}
}

func badFolders(live, other *testcluster.Member, token string) []badStart {
	return []badStart{
		{
			name: "another cluster's folder", dir: other.StateDir, code: 1,
			flags: []string{"--state-dir", other.StateDir, "--join-addr", live.Remote, "--join-token", token},
			want:  []string{other.StateDir, "cluster", "hint: "},
		},
		{
			name: "folder in use", dir: live.StateDir, code: 1,
			flags: []string{"--state-dir", live.StateDir}, want: []string{"--state-dir", live.StateDir, "in use", "hint: "},
		},
	}
}

func badListeners(live *testcluster.Member, fresh, file string) []badStart {
	return []badStart{
		{
			name: "busy port", dir: fresh, code: 1,
			flags: []string{"--listen-remote-api", live.Remote}, want: []string{"--listen-remote-api", live.Remote, "in use"},
		},
		{
			name: "busy socket", dir: fresh, code: 1,
			flags: []string{"--listen-control-api", live.Endpoint()}, want: []string{"--listen-control-api", live.Socket},
		},
		{
			name: "file instead of a socket", dir: fresh, code: 1,
			flags: []string{"--listen-control-api", "unix://" + file}, want: []string{"--listen-control-api", file},
		},
		{
			name: "address of everybody", dir: fresh, code: 1,
			flags: []string{"--listen-remote-api", "0.0.0.0:0"}, want: []string{"--listen-remote-api", "0.0.0.0:0", "loopback", "hint: "},
		},
		{
			name: "address that is none", dir: fresh, code: 1,
			flags: []string{"--listen-remote-api", "127.0.0.1"}, want: []string{"--listen-remote-api", "HOST:PORT"},
		},
	}
}

func badJoins(live *testcluster.Member, fresh, wrong string) []badStart {
	return []badStart{
		{
			name: "wrong token", dir: fresh, code: 1,
			flags: []string{"--join-addr", live.Remote, "--join-token", wrong}, want: []string{live.Remote, "token", "hint: "},
		},
		{
			name: "no token", dir: fresh, code: 1,
			flags: []string{"--join-addr", live.Remote}, want: []string{"--join-token", "hint: "},
		},
	}
}

func badUsage(fresh string) []badStart {
	return []badStart{
		{name: "unknown flag", dir: fresh, code: 2, flags: []string{"--nonsense"}, want: []string{"--nonsense"}},
		{name: "argument", dir: fresh, code: 2, flags: []string{"nonsense"}, want: []string{"nonsense"}},
		{
			name: "control API that is no socket", dir: fresh, code: 2,
			flags: []string{"--listen-control-api", "127.0.0.1:1"}, want: []string{"--listen-control-api", "unix://PATH"},
		},
		{
			name: "log level", dir: fresh, code: 2,
			flags: []string{"--log-level", "loud"}, want: []string{"--log-level", "loud"},
		},
	}
}

func TestBadStarts(t *testing.T) {
	c := testcluster.New(t, 1)
	live := c.Members[0]
	settled(t, c)
	token := c.Token()
	stopped := testcluster.New(t, 1)
	other := stopped.Members[0]
	stopped.Members[0].Stop()

	dir := testcluster.ShortDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("not a socket"), 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(dir, "fresh")
	wrong := token[:len(token)-1] + "x"
	if wrong == token {
		wrong = token[:len(token)-1] + "y"
	}
	starts := append(badFolders(live, other, token), badListeners(live, fresh, file)...)
	starts = append(starts, badJoins(live, fresh, wrong)...)
	starts = append(starts, badUsage(fresh)...)
	for _, b := range starts {
		t.Run(b.name, func(t *testing.T) { startBadly(t, b, goodStart(dir, "fresh")) })
	}
	t.Run("goes on after all", func(t *testing.T) { goesOn(t, c, stopped, dir, token) })
}

// goesOn starts well what was started badly before.
func goesOn(t *testing.T, c, stopped *testcluster.Cluster, dir, token string) {
	t.Helper()
	ctx := testcluster.Context(t, testcluster.Bound)
	p := testcluster.Start(t, "fresh", append(goodStart(dir, "fresh"), "--join-addr", c.Members[0].Remote, "--join-token", token)...)
	testcluster.Wait(t, "member that joins", becomesReady(p))
	if n := len(members(t, c)); n != 2 {
		t.Errorf("%d members", n)
	}
	stopped.Members[0].Start()
	stopped.Same()
	if _, err := create(ctx, c.Members[0].Client(), "after", ""); err != nil {
		t.Error(err)
	}
}

// TestUnreachableJoin joins where nobody answers. That is tried for a while.
func TestUnreachableJoin(t *testing.T) {
	t.Parallel()
	nobody := testcluster.ReservePort(t)
	dir := testcluster.ShortDir(t)
	startBadly(t, badStart{
		name: "unreachable", dir: filepath.Join(dir, "away"), code: 1,
		flags: []string{"--join-addr", nobody, "--join-token", "SWMTKN-1-" + strings.Repeat("0", 50) + "-" + strings.Repeat("0", 25)},
		want:  []string{nobody, "refused"},
	}, goodStart(dir, "away"))
}

// TestStaleSocket starts a manager whose last process was killed, and left its socket.
func TestStaleSocket(t *testing.T) {
	c := testcluster.New(t, 1)
	m := c.Members[0]
	m.Kill()
	info, err := os.Lstat(m.Socket)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the socket is %v", info.Mode())
	}
	m.Start()
	if _, err := m.Client().Health().Check(testcluster.Context(t, testcluster.Bound), &api.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	m.Stop()
	if _, err := os.Lstat(m.Socket); err == nil {
		t.Error("the socket is there and nobody serves it")
	}
}
