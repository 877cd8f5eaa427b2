package stacks_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/test/testcluster"
)

// TestDemo runs scripts/demo, and expects that it succeeds and cleans up behind itself.
func TestDemo(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	bin, temp := t.TempDir(), testcluster.ShortDir(t)
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "./cmd/managerd", "./cmd/ctl")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	demo := exec.CommandContext(testcluster.Context(t, 2*testcluster.Bound), filepath.Join(root, "scripts", "demo"), bin)
	demo.Env = append(os.Environ(), "TMPDIR="+temp, "MANAGERD_HOSTNAME=nobody", "CTL_SOCKET=unix:///nowhere")
	out, err := demo.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "As before, to the last byte."); n != 2 {
		t.Errorf("%d managers had what was there before, want 2:\n%s", n, out)
	}
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("the demo left %v", left)
	}
}
