package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// Script is raft in the hands of a test: the test says what raft takes, commits, refuses and
// loses, at which index and in which term. It starts no goroutine, and its clock and IDs are
// the same in each run.
type Script struct {
	Store *store.MemoryStore
	// Read is ReadIndex; nil is always right. It is set before it can be called.
	Read func(ctx context.Context) error

	t    testing.TB
	auto atomic.Bool

	mu    sync.Mutex
	log   []state.Committed
	index uint64
	term  uint64
}

// Start is what the clock of a Script begins at; it goes on by a millisecond a call.
func Start() time.Time { return time.Date(2020, 2, 29, 12, 0, 0, 0, time.UTC) }

// NewScript makes a member, whose name goes into its IDs.
func NewScript(t testing.TB, name string, o store.Options) *Script {
	t.Helper()
	s := &Script{t: t}
	var ticks, ids, txns atomic.Int64
	o.Proposer = s
	if o.ClusterID == "" {
		o.ClusterID = "test"
	}
	if o.Clock == nil {
		o.Clock = func() time.Time { return Start().Add(time.Duration(ticks.Add(1)) * time.Millisecond) }
	}
	if o.NewID == nil {
		o.NewID = func() string { return fmt.Sprintf("%s%0*d", name, 25-len(name), ids.Add(1)) }
	}
	if o.NewTxnID == nil {
		o.NewTxnID = func() []byte { return fmt.Appendf(nil, "%s%0*d", name, 16-len(name), txns.Add(1)) }
	}
	var err error
	if s.Store, err = store.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Store.Stop()
		if err := s.Store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// NewLeader makes a member that leads in term 1.
func NewLeader(t testing.TB, name string, o store.Options) *Script {
	t.Helper()
	s := NewScript(t, name, o)
	s.Elect(1)
	return s
}

// Auto makes every proposal committed at once, before Update waits for it, or no more.
func (s *Script) Auto(on bool) *Script {
	s.auto.Store(on)
	return s
}

// Elect makes the member lead in a term, and applies that term's first entry.
func (s *Script) Elect(term uint64) {
	s.t.Helper()
	s.Store.Elected(term)
	s.Apply(term, nil)
}

// Take hands what waits to raft, as the data of one entry; nil if nothing waits.
func (s *Script) Take() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Store.Next(s.term)
}

// Apply commits an entry of a term, at the next index.
func (s *Script) Apply(term uint64, data []byte) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applyLocked(state.Committed{Index: s.index + 1, Term: term, Data: data})
}

// Feed applies entries of another member's log; those that are applied already are left out.
func (s *Script) Feed(entries ...state.Committed) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		if e.Index > s.index {
			s.applyLocked(e)
		}
	}
}

func (s *Script) applyLocked(e state.Committed) {
	s.t.Helper()
	if err := s.Store.Apply([]state.Committed{e}); err != nil {
		s.t.Errorf("apply entry %d: %v", e.Index, err)
		s.Store.Stop() // so that nobody waits for ever
	}
	s.index, s.term = e.Index, e.Term
	s.log = append(s.log, e)
}

// Commit takes and applies all that waits, in the present term.
func (s *Script) Commit() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for data := s.Store.Next(s.term); data != nil; data = s.Store.Next(s.term) {
		s.applyLocked(state.Committed{Index: s.index + 1, Term: s.term, Data: data})
	}
}

// Log returns what was applied here, for other members.
func (s *Script) Log() []state.Committed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log
}

// Forget drops what Log would give, so that it takes no memory.
func (s *Script) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

// Restore installs a snapshot, and goes on behind it.
func (s *Script) Restore(snapshot *Snapshot) {
	s.t.Helper()
	if err := s.Store.Restore(snapshot.Reader()); err != nil {
		s.t.Fatalf("restore: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.Store.Applied()
	s.index, s.term = a.Index, a.Term
}

// Wake implements state.Proposer.
func (s *Script) Wake() {
	if s.auto.Load() {
		s.Commit()
	}
}

// ReadIndex implements state.Proposer.
func (s *Script) ReadIndex(ctx context.Context) error {
	if s.Read != nil {
		return s.Read(ctx)
	}
	return ctx.Err()
}
