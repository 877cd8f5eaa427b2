package raft

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"holdfast/api/holdfast"
	"holdfast/manager/state"
)

// ledger is a state machine that remembers all that it was told, and fails if it was told in
// another way than the contract of state.Machine says.
type ledger struct {
	at      state.Applied
	entries []ledgerEntry
	applied func(ledgerEntry) // called for each entry, and each restore with the last one
	elect   func(term uint64)

	leads   bool
	term    uint64 // newest that it leads or led in
	waiting [][]byte
	handed  int // in this term
	refused int
	calls   []string // of Elected, Lost and Refused
	faults  []string
	stopped bool
}

type ledgerEntry struct {
	Index, Term uint64
	Data        string
	Change      state.ChangeType
	Peer        uint64
}

func (l *ledger) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

func (l *ledger) Apply(entries []state.Committed) error {
	if len(entries) == 0 {
		l.fault("nothing to apply")
	}
	for _, e := range entries {
		if e.Index != l.at.Index+1 || e.Term < l.at.Term {
			return fmt.Errorf("entry %d of term %d after entry %d of term %d", e.Index, e.Term, l.at.Index, l.at.Term)
		}
		l.at.Index, l.at.Term = e.Index, e.Term
		if e.Change != state.NoChange {
			l.changePeers(e)
		}
		entry := ledgerEntry{e.Index, e.Term, string(e.Data), e.Change, e.Peer.RaftID}
		l.entries = append(l.entries, entry)
		if l.applied != nil {
			l.applied(entry)
		}
	}
	return nil
}

func (l *ledger) changePeers(e state.Committed) {
	peers := slices.DeleteFunc(slices.Clone(l.at.Peers), func(p holdfast.Peer) bool { return p.RaftID == e.Peer.RaftID })
	switch e.Change {
	case state.RemovePeer:
		l.at.Removed = append(slices.Clone(l.at.Removed), e.Peer.RaftID)
	default:
		p := e.Peer
		p.Learner = e.Change == state.AddLearner
		if old, ok := l.at.Peer(p.RaftID); e.Change == state.UpdatePeer {
			if !ok {
				break
			}
			p.Learner = old.Learner
		}
		if slices.Contains(l.at.Removed, p.RaftID) {
			l.fault("member %d was removed and is added", p.RaftID)
		}
		peers = append(peers, p)
	}
	slices.SortFunc(peers, func(a, b holdfast.Peer) int { return int(a.RaftID) - int(b.RaftID) })
	l.at.Peers = peers
}

func (l *ledger) Applied() state.Applied { return l.at }

func (l *ledger) Image() state.Image { return ledgerImage{l.at, slices.Clone(l.entries)} }

type ledgerImage struct {
	At      state.Applied
	Entries []ledgerEntry
}

func (i ledgerImage) Applied() state.Applied { return i.At }

func (i ledgerImage) Save(w state.SectionWriter) error {
	data, err := json.Marshal(i)
	if err != nil {
		return err
	}
	if err := w.Section("ledger"); err != nil {
		return err
	}
	return w.Record(data)
}

func (l *ledger) Restore(r state.SectionReader) error {
	_, data, err := r.Next()
	if err != nil {
		return err
	}
	var i ledgerImage
	if err := json.Unmarshal(slices.Clone(data), &i); err != nil {
		return err
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("no end: %w", err)
	}
	l.at, l.entries = i.At, i.Entries
	if n := len(l.entries); n > 0 && l.applied != nil {
		l.applied(l.entries[n-1])
	}
	return nil
}

// propose queues what the leader is to propose; false if it may not.
func (l *ledger) propose(data string) bool {
	if !l.leads || l.at.Term != l.term {
		return false
	}
	l.waiting = append(l.waiting, []byte(data))
	return true
}

func (l *ledger) Elected(term uint64) {
	if l.leads || term <= l.term {
		l.fault("elected in term %d after term %d, leads: %v", term, l.term, l.leads)
	}
	l.leads, l.term, l.handed = true, term, 0
	l.calls = append(l.calls, fmt.Sprint("elected ", term))
	if l.elect != nil {
		l.elect(term)
	}
}

func (l *ledger) Lost(term uint64) {
	if !l.leads || term != l.term {
		l.fault("lost term %d, leads: %v in term %d", term, l.leads, l.term)
	}
	l.leads, l.waiting = false, nil
	l.calls = append(l.calls, fmt.Sprint("lost ", term))
}

func (l *ledger) Next(term uint64) []byte {
	if !l.leads || term != l.term || len(l.waiting) == 0 {
		return nil
	}
	data := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.handed++
	return data
}

func (l *ledger) Refused(term uint64) {
	l.refused++
	l.waiting = nil
	l.calls = append(l.calls, fmt.Sprint("refused ", term))
}

func (l *ledger) Stop() { l.stopped = true }
