package raft

import (
	"context"
	"encoding/binary"

	etcdraft "go.etcd.io/raft/v3"

	"holdfast/internal/mutant"
	"holdfast/manager/state"
)

// reads are calls that wait until what was committed when they began is applied here.
type reads struct {
	planted mutant.Set
	process uint64 // differs from that of the process before: answers to it may still come
	seq     uint64 // of the last read index asked for
	waiting []*read
	asked   []readBatch // in order
	reach   []*read     // index known, not applied yet
}

type read struct {
	ctx   context.Context //nolint:containedctx // a read is one call's
	done  *state.Outcome
	index uint64
}

type readBatch struct {
	seq   uint64
	reads []*read
	ticks int
}

func (r *reads) add(rd *read) { r.waiting = append(r.waiting, rd) }

// mayAsk tells whether there is a leader to ask for a read index, for a call or for a peer.
// While this member leads, it is one only once an entry of its own term is applied: raft's
// answer of a lone voter would be what it knew as committed when it began to lead, and a crash
// may have lost how far that was. A leader whose disk hangs does not answer: the heartbeats of
// each answer would keep it leader.
func (c *core) mayAsk() bool {
	return c.lead != 0 && (!c.leading || c.ownTermApplied() && !c.hangs())
}

// ask begins a read index for all that wait. A call never joins one that was begun before it.
func (r *reads) ask(raw *etcdraft.RawNode) {
	r.waiting = alive(r.waiting)
	if n := len(r.asked); n > 0 && r.planted.Has(mutant.JoinedReadIndex) {
		r.asked[n-1].reads = append(r.asked[n-1].reads, r.waiting...)
		r.waiting = nil
	}
	if len(r.waiting) == 0 || len(r.asked) >= maxReadsInRaft {
		return
	}
	r.seq++
	raw.ReadIndex(r.context())
	r.asked = append(r.asked, readBatch{seq: r.seq, reads: r.waiting})
	r.waiting = nil
}

// context is what tells the answer to the newest read index from all others.
func (r *reads) context() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 16), r.process)
	return binary.BigEndian.AppendUint64(b, r.seq)
}

// confirmed takes raft's answer.
func (r *reads) confirmed(rs etcdraft.ReadState, applied uint64) {
	if len(rs.RequestCtx) != 16 || binary.BigEndian.Uint64(rs.RequestCtx) != r.process {
		return
	}
	seq := binary.BigEndian.Uint64(rs.RequestCtx[8:])
	for i, b := range r.asked {
		if b.seq != seq {
			continue
		}
		r.asked = append(r.asked[:i:i], r.asked[i+1:]...)
		for _, rd := range b.reads {
			rd.index = rs.Index
		}
		r.reach = append(r.reach, b.reads...)
		r.reached(applied)
		return
	}
}

// reached ends the calls whose index is applied.
func (r *reads) reached(applied uint64) {
	keep := r.reach[:0]
	for _, rd := range r.reach {
		if rd.index <= applied {
			rd.done.Set(nil)
		} else {
			keep = append(keep, rd)
		}
	}
	r.reach = keep
}

// tick asks again what was not answered, with a fresh context: an answer to the old one may
// still come, and must not be taken for one to the new.
func (r *reads) tick(electionTicks int) {
	keep := r.asked[:0]
	for _, b := range r.asked {
		b.ticks++
		if b.ticks > electionTicks/2 {
			r.waiting = append(r.waiting, b.reads...)
			continue
		}
		keep = append(keep, b)
	}
	r.asked = keep
	r.waiting = alive(r.waiting)
	r.reach = alive(r.reach)
}

// fail ends the calls that no leader has answered.
func (r *reads) fail(err error) {
	for _, rd := range r.waiting {
		rd.done.Set(err)
	}
	for _, b := range r.asked {
		for _, rd := range b.reads {
			rd.done.Set(err)
		}
	}
	r.waiting, r.asked = nil, nil
}

// alive drops the calls that nobody waits for any more.
func alive(reads []*read) []*read {
	keep := reads[:0]
	for _, rd := range reads {
		if rd.ctx.Err() == nil {
			keep = append(keep, rd)
		}
	}
	return keep
}
