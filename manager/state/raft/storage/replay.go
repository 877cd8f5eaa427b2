package storage

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// replay turns records into state.
type replay struct {
	pos      position
	segments int // whose base was seen

	// entries are those in force, the first one at index first. The term of
	// the entry before is prevTerm if known.
	entries   []*raftpb.Entry
	first     uint64
	prevTerm  uint64
	prevKnown bool
}

// record takes the next record of the log. begin tells whether it is the first
// of a segment.
func (r *replay) record(rec *record, begin bool) error {
	if begin != (rec.kind == kindBase) {
		return fmt.Errorf("record kind %d at the start of a segment or base record elsewhere", rec.kind)
	}
	switch rec.kind {
	case kindBase:
		return r.base(rec)
	case kindEntry:
		return r.entry(rec)
	case kindHardState:
		hs := &raftpb.HardState{}
		if err := decode(rec, hs); err != nil {
			return err
		}
		if hs.GetCommit() != rec.index || hs.GetTerm() != rec.term || rec.typ != 0 {
			return fmt.Errorf("hard state differs from its record's header")
		}
		return r.pos.setHardState(hs)
	case kindMarker:
		return r.marker(rec)
	case kindOpened, kindClosed:
		return empty(rec)
	}
	return fmt.Errorf("unknown record kind %d", rec.kind)
}

func decode(rec *record, m proto.Message) error {
	if err := proto.Unmarshal(rec.body, m); err != nil {
		return fmt.Errorf("decode record of kind %d: %w", rec.kind, err)
	}
	return nil
}

func empty(rec *record) error {
	if len(rec.body) != 0 || rec.typ != 0 {
		return fmt.Errorf("record of kind %d with a body", rec.kind)
	}
	return nil
}

// base is the first record of each segment: where the log stood.
func (r *replay) base(rec *record) error {
	r.segments++
	if r.segments > 1 && (rec.index != r.pos.last || rec.term != r.pos.lastTerm) {
		return fmt.Errorf("the segment continues a log that ends with entry %d of term %d, and it ended with %d of term %d",
			rec.index, rec.term, r.pos.last, r.pos.lastTerm)
	}
	if r.segments == 1 {
		r.pos.last, r.pos.lastTerm = rec.index, rec.term
		r.restart(rec.index, rec.term, true)
	}
	return empty(rec)
}

// restart drops all entries: the next one is at prev+1.
func (r *replay) restart(prev, prevTerm uint64, known bool) {
	r.entries, r.first, r.prevTerm, r.prevKnown = nil, prev+1, prevTerm, known
}

func (r *replay) entry(rec *record) error {
	e := &raftpb.Entry{}
	if err := decode(rec, e); err != nil {
		return err
	}
	if e.GetIndex() != rec.index || e.GetTerm() != rec.term || e.GetType() != raftpb.EntryType(rec.typ) {
		return fmt.Errorf("entry differs from its record's header")
	}
	if err := r.pos.entry(rec.index, rec.term); err != nil {
		return err
	}
	if rec.index < r.first {
		// It voids entries of segments that were removed.
		r.restart(rec.index-1, 0, false)
	}
	keep := rec.index - r.first
	if prev := r.at(rec.index - 1); prev != nil && prev.GetTerm() > rec.term {
		return fmt.Errorf("entry %d has term %d, the one before it term %d", rec.index, rec.term, prev.GetTerm())
	}
	clear(r.entries[keep:])
	r.entries = append(r.entries[:keep], e)
	return nil
}

// at returns the entry at an index, or nil.
func (r *replay) at(index uint64) *raftpb.Entry {
	if index < r.first || index-r.first >= uint64(len(r.entries)) {
		return nil
	}
	return r.entries[index-r.first]
}

func (r *replay) marker(rec *record) error {
	m := Marker{Index: rec.index, Term: rec.term, ConfState: &raftpb.ConfState{}}
	if err := decode(rec, m.ConfState); err != nil {
		return err
	}
	switch rec.typ {
	case markerCarriedLocal, markerCarriedReceived:
		m.Received = rec.typ == markerCarriedReceived
		return r.carried(m)
	case markerLocal:
	case markerReceived:
		m.Received = true
	default:
		return fmt.Errorf("unknown marker type %d", rec.typ)
	}
	fresh := r.pos.last == 0
	if err := r.pos.setMarker(m); err != nil {
		return err
	}
	if e := r.at(m.Index); e != nil && e.GetTerm() != m.Term && !m.Received {
		return fmt.Errorf("local snapshot marker %d has term %d, the entry there term %d", m.Index, m.Term, e.GetTerm())
	}
	if r.pos.keepsSuffix(m) {
		r.keepSuffix(m)
		return nil
	}
	if m.Received || fresh {
		r.restart(m.Index, m.Term, true)
	}
	return nil
}

// carried takes the marker that a segment repeats. It is news only in the
// first segment.
func (r *replay) carried(m Marker) error {
	if r.segments == 1 && r.pos.marker.IsZero() {
		if m.Index == 0 || m.Index > r.pos.last {
			return fmt.Errorf("repeated snapshot marker %d in a log that ends at %d", m.Index, r.pos.last)
		}
		r.pos.marker = m
		return nil
	}
	if was := r.pos.marker; m.Index != was.Index || m.Term != was.Term || m.Received != was.Received {
		return fmt.Errorf("repeated snapshot marker %d of term %d differs from the latest, %d of term %d",
			m.Index, m.Term, was.Index, was.Term)
	}
	return nil
}

// finish checks the whole and returns the state; dir and the oldest segment's
// name are for the error.
func (r *replay) finish(dir, oldest string) (*State, error) {
	if err := r.pos.consistent(); err != nil {
		return nil, &InconsistentError{Dir: dir, Reason: err.Error()}
	}
	m := r.pos.marker
	switch {
	case r.first-1 == m.Index && r.prevKnown && r.prevTerm != m.Term:
		return nil, &InconsistentError{Dir: dir, Reason: fmt.Sprintf(
			"the snapshot marker %d has term %d, the entry there had term %d", m.Index, m.Term, r.prevTerm)}
	case r.first-1 == m.Index:
		r.prevTerm, r.prevKnown = m.Term, true
	case !r.prevKnown && len(r.entries) > 0:
		// The term before the first entry went with a removed segment: the
		// first entry stands in its place.
		r.prevTerm, r.prevKnown = r.entries[0].GetTerm(), true
		r.first++
		r.entries = r.entries[1:]
	}
	if r.first-1 > m.Index {
		return nil, &InconsistentError{Dir: dir, Reason: fmt.Sprintf(
			"entries %d to %d are missing: a segment older than %s was removed", m.Index+1, r.first-1, oldest)}
	}
	if e := r.at(m.Index); e != nil && e.GetTerm() != m.Term {
		return nil, &InconsistentError{Dir: dir, Reason: fmt.Sprintf(
			"the snapshot marker %d has term %d, the entry there term %d", m.Index, m.Term, e.GetTerm())}
	}
	s := &State{
		HardState:  r.pos.hardState(),
		Snapshot:   m,
		Entries:    r.entries,
		FirstIndex: r.first,
		PrevTerm:   r.prevTerm,
	}
	s.Snapshot.ConfState = cloneConf(m.ConfState)
	return s, nil
}
