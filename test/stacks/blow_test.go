package stacks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"holdfast/test/testcluster"
)

// blow is how the leader is killed while a call is under way.
type blow struct {
	// after is how long after the call began the kill comes, at the latest.
	after time.Duration
	// grown, if it is set, has it come before that, when the leader's log has grown by so many
	// entries: the leader has taken up what it was asked for.
	grown uint64
	// pause stops the others until the leader is dead: it can take a call up, but neither commit
	// it nor find out that it is alone.
	pause bool
	// late lets the others go on before the leader is dead, while it stands still itself: they
	// get what it sent, and the client no answer. It goes with pause.
	late bool
	// passedOn has a follower called, which passes the call on to the leader.
	passedOn bool
}

// String tells how the leader is killed.
func (b blow) String() string {
	return fmt.Sprintf("after %v or %d entries of its log; pause %t, late %t, passed on %t",
		b.after, b.grown, b.pause, b.late, b.passedOn)
}

// struck makes a call with the session's socket set to those of all members, and kills the leader
// meanwhile. It returns that one, when the call has ended, for it to be started again.
func (s *session) struck(b blow, call func()) *testcluster.Member {
	s.t.Helper()
	var lead *testcluster.Member
	before := uint64(0)
	testcluster.Wait(s.t, "a leader that tells of its log", func(ctx context.Context) (err error) {
		lead = s.cluster.Leader()
		before, err = lead.LogIndex(ctx)
		return err
	})
	sockets := []string{lead.Endpoint()}
	var followers []*testcluster.Member
	for _, m := range s.cluster.Running() {
		if m != lead {
			followers, sockets = append(followers, m), append(sockets, m.Endpoint())
		}
	}
	if b.passedOn {
		sockets = append(sockets[1:], sockets[0])
	}
	defer func(before string) { s.socket = before }(s.socket)
	s.socket = strings.Join(sockets, ",")

	if b.pause {
		for _, m := range followers {
			m.Pause()
		}
	}
	struck := make(chan error, 1)
	go func() { struck <- b.strike(lead, before, followers) }()
	call()
	if err := <-struck; err != nil {
		s.t.Fatal(err)
	}
	if b.pause {
		for _, m := range followers {
			m.Resume() // they run already; this is for the cluster to know it
		}
	}
	return lead
}

// strike kills the leader, and lets the others go on. It may be called from any goroutine.
func (b blow) strike(lead *testcluster.Member, before uint64, others []*testcluster.Member) error {
	b.wait(lead, before)
	goOn := func() (err error) {
		for _, m := range others {
			err = errors.Join(err, m.Process.Signal(syscall.SIGCONT))
		}
		return err
	}
	if b.late {
		const enough = 100 * time.Millisecond // for the others to write down what was sent
		if err := errors.Join(lead.Process.Signal(syscall.SIGSTOP), goOn()); err != nil {
			return err
		}
		time.Sleep(enough)
	}
	if err := lead.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	if _, err := lead.Process.WaitExit(testcluster.Bound); err != nil {
		return err
	}
	return goOn()
}

// wait waits for the moment of the kill. A leader that does not tell of its log is killed when the
// time is over: the moment is for the test to be worth something, and not for its outcome.
func (b blow) wait(lead *testcluster.Member, before uint64) {
	if b.grown == 0 {
		time.Sleep(b.after)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.after)
	defer cancel()
	testcluster.Poll(ctx, "the leader's log to grow", func(ctx context.Context) error { //nolint:errcheck // see above
		if now, err := lead.LogIndex(ctx); err != nil || now < before+b.grown {
			return errors.Join(err, errors.New("it has not"))
		}
		return nil
	})
}
