package sim

import (
	"cmp"
	"maps"
	"slices"

	etcdraft "go.etcd.io/raft/v3"
	"google.golang.org/protobuf/proto"
)

// These are invariants of raft's TLA+ specification (Ongaro, "Consensus: Bridging Theory and
// Practice", appendix B), looked at whenever a log changes.

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// checkLog holds a member's log against all others: two entries of one index and term are the
// same, and so is all before them (log matching).
func (m *machine) checkLog(log etcdraft.Storage) {
	first, err := log.FirstIndex()
	if err != nil {
		m.fail("log matching", "n%d: %v", m.id, err)
	}
	last, err := log.LastIndex()
	if err != nil {
		m.fail("log matching", "n%d: %v", m.id, err)
	}
	if last < first {
		return
	}
	entries, err := log.Entries(first, last+1, 1<<40)
	if err != nil {
		m.fail("log matching", "n%d: %v", m.id, err)
	}
	before, err := log.Term(first - 1)
	if err != nil {
		before = 0
	}
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		at := logPlace{e.GetIndex(), e.GetTerm()}
		was, known := m.truth.logs[at]
		now := logEntry{before: before}
		if i > 0 {
			now.before = entries[i-1].GetTerm()
		}
		if known && was.before != 0 && now.before != 0 && was.before != now.before {
			m.fail("log matching", "n%d has before entry %d of term %d one of term %d, another member one of term %d",
				m.id, at.index, at.term, now.before, was.before)
		}
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(e)
		if err != nil {
			m.fail("log matching", "n%d: %v", m.id, err)
		}
		now.sum = sumOf(data)
		if known && was.sum != now.sum {
			m.fail("log matching", "n%d has another entry %d of term %d than another member", m.id, at.index, at.term)
		}
		if known && was.before != 0 {
			now.before = was.before
		}
		m.truth.logs[at] = now
	}
}

// checkComplete holds the log of a leader against all that was committed in terms before its
// own (leader completeness). Its log may not be on its disk yet when it is elected, so it is
// looked at when its first own entry is there.
func (p *process) checkComplete() {
	log, term := p.steps.Log(), p.elected
	first, err := log.FirstIndex()
	if err != nil {
		p.fail("leader completeness", "n%d: %v", p.id, err)
	}
	last, err := log.LastIndex()
	if err != nil {
		p.fail("leader completeness", "n%d: %v", p.id, err)
	}
	if of, err := log.Term(last); err != nil || of < term {
		return
	}
	p.elected = 0
	for i := max(first, 1); i <= p.truth.newest; i++ {
		want, applied := p.truth.entries[i]
		if !applied || want.term >= term { // its leadership may be over, and have begun late
			continue
		}
		if got, err := log.Term(i); err != nil || got != want.term {
			p.fail("leader completeness", "n%d leads in term %d and has at entry %d term %d; one of term %d was committed: %v",
				p.id, term, i, got, want.term, err)
		}
	}
}
