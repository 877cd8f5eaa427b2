package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"holdfast/api"
	"holdfast/internal/cli"
	"holdfast/internal/errkind"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ctl-process": main})
}

type fakeKey struct{}

// TestScripts runs each script of testdata against a manager of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			f := newFake()
			e.Values[fakeKey{}] = f
			socket := filepath.Join(e.WorkDir, "m.sock")
			stop, err := f.start(socket)
			if err != nil {
				return err
			}
			e.Defer(stop)
			e.Setenv("CTL_SOCKET", "unix://"+socket)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ctl": cmdCtl, "exits": exits, "fake": cmdFake, "fill": fill,
		},
	})
}

// clock is what ctl takes for now: five minutes after all that the fake knows of began.
func clock() time.Time { return time.Unix(1_700_000_300, 0) }

// cmdCtl runs ctl in this process: "ctl ARG…" must succeed. What reads standard input, or is to
// be seen as a process, is run by "exec ctl-process".
func cmdCtl(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("say which exit code: exits CODE ARG…")
	}
	exits(ts, false, append([]string{"0"}, args...))
}

// exits runs ctl in this process and wants an exit code: "exits CODE ARG…".
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: exits CODE ARG…")
	}
	streams := cli.Streams{In: strings.NewReader(""), Out: ts.Stdout(), Err: ts.Stderr()}
	code := run(args[1:], streams, []string{"CTL_SOCKET=" + ts.Getenv("CTL_SOCKET")}, clock)
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// fill makes files of one long line KEY=VALUE: "fill SIZE FILE…".
func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fill SIZE FILE…")
	}
	size, err := strconv.Atoi(args[0])
	ts.Check(err)
	for _, name := range args[1:] {
		ts.Check(os.WriteFile(ts.MkAbs(name), append([]byte("k="), bytes.Repeat([]byte("x"), size-2)...), 0o600))
	}
}

// fake changes the manager: "conflict N", "task SERVICE SLOT STATE", "fail KIND". "end KIND…" ends
// watches, one after another, each as soon as it was sent all that there is; "watched N" waits
// until N watches were in sync; "breaks N" breaks off N of the lists that watches begin with;
// "staged" prints what was staged, request by request.
func cmdFake(ts *testscript.TestScript, _ bool, args []string) {
	f := ts.Value(fakeKey{}).(*fake)
	f.mu.Lock()
	defer f.mu.Unlock()
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		ts.Check(err)
		return n
	}
	switch args[0] {
	case "conflict":
		f.conflict = number(args[1])
	case "task":
		before := f.revision
		for _, s := range f.services {
			if s.Spec.Annotations.Name != args[1] {
				continue
			}
			f.tasks = append(f.tasks, &api.Task{
				ID: f.newID("task"), Meta: f.meta(), ServiceID: s.ID, Slot: uint64(number(args[2])),
				NodeID: f.nodes[0].ID, Spec: s.Spec.Task, ServiceAnnotations: s.Spec.Annotations,
				DesiredState: api.TaskState_RUNNING,
				Status:       api.TaskStatus{State: api.TaskState(api.TaskState_value[args[3]])},
			})
			f.record(before, "")
		}
	case "end":
		for _, kind := range args[1:] {
			f.watches.ends = append(f.watches.ends, &errkind.Error{
				Kind: errkind.Kind(number(kind)), Now: f.floor, Msg: "told to end", Hint: "tell it not to",
			})
		}
		f.wake()
	case "breaks":
		f.watches.breaks = number(args[1])
	case "watched":
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for f.watches.begun < number(args[1]) {
			ts.Check(f.wait(ctx))
		}
	case "rival":
		f.stacks.rival = true
	case "staged":
		for _, part := range f.stacks.parts {
			_, err := fmt.Fprintln(ts.Stdout(), part)
			ts.Check(err)
		}
	case "fail":
		f.fail = errkind.New(errkind.Kind(number(args[1])), "told to fail").WithHint("tell it not to")
	default:
		ts.Fatalf("unknown %q", args[0])
	}
}
