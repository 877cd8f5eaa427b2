package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/internal/cli"
	"holdfast/internal/errkind"
)

// ctl runs a command in this process.
func ctl(socket string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	streams := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
	code = run(args, streams, []string{"CTL_SOCKET=unix://" + socket}, time.Now)
	return code, out.String(), errs.String()
}

// Each kind of error has its exit code, its message and its hint.
func TestExitCodes(t *testing.T) {
	codes := map[errkind.Kind]int{
		errkind.NotFound: 7, errkind.Exists: 6, errkind.OutOfSequence: 6, errkind.Refused: 6,
		errkind.NoLeader: 5, errkind.UnknownOutcome: 5, errkind.NotAllowed: 4, errkind.Unauthenticated: 4,
	}
	for k := errkind.Internal; k <= errkind.DeadlineReached; k++ {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.fail = errkind.New(k, "told to fail").On("network", "x").WithHint("tell it not to")
			socket := filepath.Join(t.TempDir(), "s")
			stop, err := f.start(socket)
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			want, timeout := 1, "1m"
			if c, ok := codes[k]; ok {
				want = c
			}
			switch k {
			case errkind.NoLeader, errkind.UnknownOutcome:
				timeout = "3s"
			case errkind.Canceled, errkind.DeadlineReached:
				want, timeout = 5, "3s" // the manager's own end leaves open what was done
			}
			code, stdout, stderr := ctl(socket, "network", "create", "x", "--timeout", timeout)
			if code != want || stdout != "" {
				t.Errorf("exit code %d, want %d; stdout %q", code, want, stdout)
			}
			if !strings.HasPrefix(stderr, "error: ") || !strings.Contains(stderr, "told to fail") || !strings.Contains(stderr, "\nhint: ") {
				t.Errorf("stderr %q", stderr)
			}
		})
	}
}
