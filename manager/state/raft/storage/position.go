package storage

import (
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"holdfast/internal/mutant"
)

// position is where a log stands: what the next batch must fit. The writer
// checks each batch against it before anything is written, the reader each
// record it finds, with the same rules.
type position struct {
	term, vote, commit uint64
	marker             Marker
	planted            mutant.Set
	last, lastTerm     uint64 // of the last entry, or of the snapshot
}

func (p *position) hardState() *raftpb.HardState {
	return &raftpb.HardState{
		Term:   proto.Uint64(p.term),
		Vote:   proto.Uint64(p.vote),
		Commit: proto.Uint64(p.commit),
	}
}

// entry takes an entry record. It voids those at and above its index.
func (p *position) entry(index, term uint64) error {
	switch {
	case index == 0 || term == 0:
		return refuse("entry %d of term %d", index, term)
	case index > p.last+1:
		return refuse("entry %d follows entry %d: those between are missing", index, p.last)
	case index <= p.marker.Index:
		return refuse("entry %d is at or below the snapshot's index %d", index, p.marker.Index)
	case index <= p.commit:
		return refuse("entry %d is at or below the commit index %d", index, p.commit)
	case index == p.last+1 && term < p.lastTerm:
		return refuse("entry %d has term %d, the one before it term %d", index, term, p.lastTerm)
	}
	p.last, p.lastTerm = index, term
	return nil
}

func (p *position) setHardState(hs *raftpb.HardState) error {
	if hs.GetTerm() < p.term || hs.GetCommit() < p.commit {
		return refuse("hard state with term %d and commit %d follows one with term %d and commit %d",
			hs.GetTerm(), hs.GetCommit(), p.term, p.commit)
	}
	if hs.GetTerm() == p.term && p.vote != 0 && hs.GetVote() != p.vote {
		return refuse("hard state of term %d has the vote for %x and before it for %x", p.term, hs.GetVote(), p.vote)
	}
	p.term, p.vote, p.commit = hs.GetTerm(), hs.GetVote(), hs.GetCommit()
	return nil
}

// setMarker takes a marker record that is not a carried one.
func (p *position) setMarker(m Marker) error {
	switch {
	case m.Index == 0 || m.Term == 0:
		return refuse("snapshot marker %d of term %d", m.Index, m.Term)
	case m.Index < p.marker.Index || m.Index == p.marker.Index && m.Term != p.marker.Term:
		return refuse("snapshot marker %d of term %d follows the one at %d of term %d",
			m.Index, m.Term, p.marker.Index, p.marker.Term)
	case !m.Received && m.Index > p.last && p.last > 0:
		return refuse("local snapshot marker %d is above the last entry, %d", m.Index, p.last)
	case !m.Received && m.Index == p.last && m.Term != p.lastTerm:
		return refuse("local snapshot marker %d has term %d, the entry there term %d", m.Index, m.Term, p.lastTerm)
	}
	p.marker = m
	if m.Received && !p.keepsSuffix(m) || p.last == 0 {
		p.last, p.lastTerm = m.Index, m.Term
	}
	return nil
}

// consistent checks what must hold after each batch.
func (p *position) consistent() error {
	switch {
	case p.commit > p.last:
		return refuse("the hard state says that entries up to %d are committed, and the log ends at entry %d: "+
			"entries that were acknowledged are gone", p.commit, p.last)
	case p.marker.Index > p.commit:
		return refuse("the snapshot marker is at index %d, and the hard state says that entries only up to %d are committed",
			p.marker.Index, p.commit)
	case p.lastTerm > p.term || p.marker.Term > p.term:
		return refuse("the last entry is of term %d, the snapshot of term %d, and the hard state of term %d",
			p.lastTerm, p.marker.Term, p.term)
	}
	return nil
}

// after returns the position once b is written, or why b cannot be.
func (p *position) after(b *Batch) (position, error) {
	q := *p
	if b.Snapshot != nil {
		m := *b.Snapshot
		m.ConfState = cloneConf(m.ConfState)
		if err := q.setMarker(m); err != nil {
			return q, err
		}
	}
	for _, e := range b.Entries {
		if err := q.entry(e.GetIndex(), e.GetTerm()); err != nil {
			return q, err
		}
		if t := e.GetType(); t < 0 || t > 255 {
			return q, refuse("entry %d of type %d", e.GetIndex(), t)
		}
	}
	if b.HardState != nil {
		if err := q.setHardState(b.HardState); err != nil {
			return q, err
		}
	}
	if b.NoSync && (len(b.Entries) > 0 || b.Snapshot != nil || q.term != p.term || q.vote != p.vote) {
		return q, refuse("a batch that is not synced may only raise the commit index")
	}
	if p.planted.Has(mutant.SnapshotWithoutHardState) {
		return q, nil
	}
	return q, q.consistent()
}

func cloneConf(cs *raftpb.ConfState) *raftpb.ConfState {
	if cs == nil {
		return &raftpb.ConfState{}
	}
	return proto.CloneOf(cs)
}
