package raft

import (
	"context"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/internal/mutant"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/storage"
)

// applyWork is entries to apply, a snapshot to install, or the wish for a snapshot.
type applyWork struct {
	message  *pb.Message
	install  *install
	snapshot bool
}

type install struct {
	marker storage.Marker
	done   chan error
}

// applier owns the store's Apply and Restore.
type applier struct {
	machine state.Machine
	fsys    storage.FS
	dir     string
	planted mutant.Set

	queue   *workQueue[applyWork]
	results *workQueue[applied]
	after   func(applyWork) // called after each piece of work, on the applier's goroutine
}

// applied is what the loop hears of applied entries, or of an installed snapshot.
type applied struct {
	entries     []*pb.Entry
	responses   []*pb.Message
	index, term uint64 // of a snapshot
}

// run applies what is queued, until ctx ends. An error is final.
func (a *applier) run(ctx context.Context) error {
	for {
		for _, w := range a.queue.take() {
			if ctx.Err() != nil {
				return nil
			}
			if err := a.do(w); err != nil {
				return err
			}
			a.after(w)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.queue.wake:
		}
	}
}

func (a *applier) do(w applyWork) error {
	if w.snapshot {
		return nil // after has it taken
	}
	if w.install != nil {
		err := a.restore(w.install.marker)
		if err == nil {
			a.results.put(applied{index: w.install.marker.Index, term: w.install.marker.Term})
		}
		w.install.done <- err
		return err
	}
	entries, err := committed(w.message.GetEntries())
	if err != nil {
		return err
	}
	if err := a.machine.Apply(entries); err != nil && !a.planted.Has(mutant.ApplyErrorIgnored) {
		return err
	}
	a.results.put(applied{entries: w.message.GetEntries(), responses: w.message.GetResponses()})
	return nil
}

// restore replaces the store's state by the snapshot that the log names, and makes sure that it
// is what the log says: the state at that very entry, with that membership.
func (a *applier) restore(marker storage.Marker) error {
	r, err := storage.OpenSnapshot(a.fsys, a.dir, marker.Index, marker.Term)
	if err != nil {
		return fmt.Errorf("open snapshot at entry %d: %w", marker.Index, err)
	}
	err = a.machine.Restore(r)
	if closeErr := r.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("load snapshot at entry %d: %w", marker.Index, err)
	}
	at := a.machine.Applied()
	if at.Index != marker.Index || at.Term != marker.Term {
		return fmt.Errorf("snapshot at entry %d of term %d holds the state at entry %d of term %d",
			marker.Index, marker.Term, at.Index, at.Term)
	}
	if err := confState(at.Peers).Equivalent(pb.EnsureConfState(marker.ConfState)); err != nil {
		return fmt.Errorf("snapshot at entry %d has another membership than the log says: %w", marker.Index, err)
	}
	return nil
}

// save writes a snapshot file, complete and durable, and returns its marker.
func save(fsys storage.FS, dir string, image state.Image) (storage.Marker, error) {
	at := image.Applied()
	marker := storage.Marker{Index: at.Index, Term: at.Term, ConfState: confState(at.Peers)}
	w, err := storage.CreateSnapshot(fsys, dir, at.Index, at.Term)
	if err != nil {
		return marker, err
	}
	if err := image.Save(w); err != nil {
		if abortErr := w.Abort(); abortErr != nil {
			return marker, fmt.Errorf("%w (and its file was not removed: %w)", err, abortErr)
		}
		return marker, err
	}
	return marker, w.Commit()
}
