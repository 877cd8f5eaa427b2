package raft

import (
	"context"

	etcdraft "go.etcd.io/raft/v3"

	"holdfast/api/holdfast"
	"holdfast/internal/mutant"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/storage"
)

// Steps drives a node without Run and without goroutines: each method does one piece of what
// one of Run's goroutines does, with the clock, the network and the disk of the caller. All is
// for one goroutine, and never blocks but on the disk. After an error, or to play a crash, the
// node is dropped, and its folder opened anew.
type Steps struct{ n *Node }

// Steps returns the steps of a node that Run is never called of.
func (n *Node) Steps() *Steps {
	n.appends.install = func(_ context.Context, marker storage.Marker) error {
		// The appender waits until all before it is applied, and the snapshot installed.
		for n.applies.queue.len() > 0 {
			w := n.applies.queue.takeSome(1)[0]
			if err := n.applies.do(w); err != nil {
				return err
			}
			n.afterApply(w)
		}
		return n.applies.do(applyWork{install: &install{marker: marker, done: make(chan error, 1)}})
	}
	n.setPeers()
	return &Steps{n}
}

// Tick lets one unit of time pass; Turn is to follow.
func (s *Steps) Tick() { s.n.core.tick() }

// Turn takes what was received, what is done and what was called, and hands on what follows.
// It returns ErrRemoved once this member knows that it was removed.
func (s *Steps) Turn() error {
	if err := s.n.turn(); err != nil {
		return err
	}
	select {
	case <-s.n.removed:
		return ErrRemoved
	default:
		return nil
	}
}

// Append does up to most of the log writes that wait: as one, as far as they can be.
func (s *Steps) Append(most int) error {
	for work := s.n.appends.queue.takeSome(most); len(work) > 0; {
		n, err := s.n.appends.write(context.Background(), work)
		if err != nil {
			return err
		}
		work = work[n:]
	}
	return nil
}

// Apply does one apply that waits. A snapshot may be due after it: see Save.
func (s *Steps) Apply() error {
	for _, w := range s.n.applies.queue.takeSome(1) {
		if err := s.n.applies.do(w); err != nil {
			return err
		}
		s.n.afterApply(w)
	}
	return nil
}

// Save writes the snapshot that is due. Its marker is then one of the log writes that wait.
func (s *Steps) Save() {
	for _, image := range s.n.snapshots.queue.takeSome(1) {
		s.n.saveSnapshot(image)
	}
}

// Waiting tells how much waits for Append, Apply and Save.
func (s *Steps) Waiting() (appends, applies, saves int) {
	return s.n.appends.queue.len(), s.n.applies.queue.len(), s.n.snapshots.queue.len()
}

// ReadIndex is Node.ReadIndex: the outcome is known later.
func (s *Steps) ReadIndex() *state.Outcome {
	r := &read{ctx: context.Background(), done: state.NewOutcome()}
	if s.n.cfg.Planted.Has(mutant.LocalRead) {
		r.done.Set(nil)
		return r.done
	}
	s.n.core.reads.add(r)
	return r.done
}

// Change is Node.Change, with the ID of the change.
func (s *Steps) Change(id []byte, change state.ChangeType, peer holdfast.Peer) (*state.Outcome, error) {
	call, err := newChange(id, change, peer)
	if err != nil {
		return nil, err
	}
	s.n.core.startChange(call)
	return call.done, nil
}

// Transfer is Node.Transfer.
func (s *Steps) Transfer() *state.Outcome {
	done := state.NewOutcome()
	s.n.core.handOver(done)
	return done
}

// Log is raft's view of the log, to be looked at only.
func (s *Steps) Log() etcdraft.Storage { return s.n.memory }

// Status is Node.Status.
func (s *Steps) Status() Status { return s.n.core.status() }
