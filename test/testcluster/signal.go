package testcluster

import (
	"syscall"
)

// Kill ends the member's process without a warning.
func (m *Member) Kill() {
	m.cluster.t.Helper()
	m.signal(syscall.SIGKILL)
	if code, err := m.Process.WaitExit(Bound); err != nil || code != -1 {
		m.cluster.t.Fatalf("%s was killed: exit code %d, %v", m.Name, code, err)
	}
}

// Stop asks the member's process to end, and expects that it does so well.
func (m *Member) Stop() {
	m.cluster.t.Helper()
	m.signal(syscall.SIGTERM)
	if code, err := m.Process.WaitExit(Bound); err != nil || code != 0 {
		m.cluster.t.Fatalf("%s was stopped: exit code %d, %v", m.Name, code, err)
	}
}

// Pause stops the process where it is, until Resume.
func (m *Member) Pause() {
	m.cluster.t.Helper()
	m.signal(syscall.SIGSTOP)
	m.paused = true
}

// Resume lets a paused process go on.
func (m *Member) Resume() {
	m.cluster.t.Helper()
	m.signal(syscall.SIGCONT)
	m.paused = false
}

func (m *Member) signal(s syscall.Signal) {
	m.cluster.t.Helper()
	if m.Process == nil {
		m.cluster.t.Fatalf("%s was never started", m.Name)
	}
	if err := m.Process.Signal(s); err != nil {
		m.cluster.t.Fatalf("signal %v to %s: %v", s, m.Name, err)
	}
}
