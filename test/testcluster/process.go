package testcluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// logTail is how much of a log is shown of a test that failed.
const logTail = 8 << 10

// Process is one managerd. Its methods but the constructor may be called from any goroutine.
type Process struct {
	name   string
	cmd    *exec.Cmd
	stdout buffer
	stderr buffer
	ready  chan struct{} // closed when the ready line was read
	done   chan struct{} // closed when the process has ended and all output was read
}

// Start starts managerd. It is killed when the test ends, if it still runs then.
func Start(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	p := &Process{
		name: name, cmd: exec.Command(program(t, "managerd"), args...),
		ready: make(chan struct{}), done: make(chan struct{}),
	}
	p.stdout.line = sync.OnceFunc(func() { close(p.ready) })
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.Env = environment()
	// Should this process be killed, those that it started go with it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		p.cmd.Wait() //nolint:errcheck // ProcessState has it
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Signal(syscall.SIGKILL) //nolint:errcheck // it may have ended before
		<-p.done
		for _, bad := range []string{"DATA RACE", "panic: ", "fatal error: "} {
			if strings.Contains(p.Stderr(), bad) {
				t.Errorf("%s said %q", p.name, bad)
			}
		}
		if t.Failed() {
			t.Logf("the end of what %s (%d) said:\n%s", p.name, p.cmd.Process.Pid, p.tail())
		}
	})
	return p
}

// environment is this process's without what would change how managerd and ctl run.
func environment() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "MANAGERD_") && !strings.HasPrefix(e, "CTL_") {
			env = append(env, e)
		}
	}
	return env
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Exited tells whether the process has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// waitReady waits for the ready line and returns it.
func (p *Process) waitReady(bound time.Duration) (string, error) {
	select {
	case <-p.ready:
		line, _, _ := strings.Cut(p.Stdout(), "\n")
		return line, nil
	case <-p.done:
		return "", fmt.Errorf("%s ended with code %d before it was ready: %s", p.name, p.cmd.ProcessState.ExitCode(), p.tail())
	case <-time.After(bound):
		return "", fmt.Errorf("%s is not ready after %v", p.name, bound)
	}
}

// WaitExit waits until the process has ended and returns its exit code, which is -1 if a
// signal ended it.
func (p *Process) WaitExit(bound time.Duration) (int, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(bound):
		return 0, fmt.Errorf("%s still runs after %v", p.name, bound)
	}
}

// Stdout returns what the process wrote there so far.
func (p *Process) Stdout() string { return p.stdout.String() }

// Stderr returns what the process wrote there so far: its log, and its last words.
func (p *Process) Stderr() string { return p.stderr.String() }

// Complaint returns the error and hint lines that a process that failed has left, and fails
// if there is not exactly one error line, with at most one hint after it, at the very end.
func (p *Process) Complaint() (string, error) {
	lines := strings.Split(strings.TrimSuffix(p.Stderr(), "\n"), "\n")
	from := len(lines)
	for i, l := range lines {
		if strings.HasPrefix(l, "error: ") {
			from = i
			break
		}
	}
	said := lines[from:]
	text := strings.Join(said, "\n")
	switch {
	case len(said) == 0:
		return "", errors.New("no line begins with \"error: \"")
	case len(said) > 2 || len(said) == 2 && !strings.HasPrefix(said[1], "hint: "):
		return "", fmt.Errorf("more than an error and a hint: %s", text)
	}
	return text, nil
}

func (p *Process) tail() string {
	text := p.Stdout() + p.Stderr()
	if len(text) > logTail {
		text = "…" + text[len(text)-logTail:]
	}
	return text
}

// buffer keeps what a process writes.
type buffer struct {
	line func() // called when there is a whole line, if it is not nil

	mu   sync.Mutex
	data bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.line != nil && bytes.IndexByte(p, '\n') >= 0 {
		defer b.line()
	}
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}
