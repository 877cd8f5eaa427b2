// Package storetest gives tests a store that commits at once, without raft.
package storetest

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"holdfast/internal/id"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// Loop is a cluster of one: what the store proposes, it commits, unless it is held.
type Loop struct {
	Store *store.MemoryStore

	wake chan struct{}
	mu   sync.Mutex
	next uint64 // index of the next entry
	term uint64
	held bool
}

// New returns a store whose proposals are committed at once, until the test ends.
func New(t testing.TB) *store.MemoryStore { return NewLoop(t, store.Options{}).Store }

// NewLoop is New with options, and the loop to hold.
func NewLoop(t testing.TB, o store.Options) *Loop {
	t.Helper()
	l := &Loop{wake: make(chan struct{}, 1), next: 1}
	o.Proposer = l
	if o.ClusterID == "" {
		o.ClusterID = "test"
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.NewID == nil {
		o.NewID = id.New
	}
	if o.NewTxnID == nil {
		o.NewTxnID = func() []byte {
			b := make([]byte, 16)
			rand.Read(b)
			return b
		}
	}
	s, err := store.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l.Store = s
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-l.wake:
				l.Commit(t)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	l.Lead(t)
	return l
}

// Lead begins a new term that the store leads.
func (l *Loop) Lead(t testing.TB) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term++
	l.Store.Elected(l.term)
	l.apply(t, nil)
}

// Hold keeps proposals from being committed, or lets them go.
func (l *Loop) Hold(held bool) {
	l.mu.Lock()
	l.held = held
	l.mu.Unlock()
	l.Wake()
}

// Commit commits what waits, unless it is held.
func (l *Loop) Commit(t testing.TB) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return
	}
	for data := l.Store.Next(l.term); data != nil; data = l.Store.Next(l.term) {
		l.apply(t, data)
	}
}

func (l *Loop) apply(t testing.TB, data []byte) {
	if err := l.Store.Apply([]state.Committed{{Index: l.next, Term: l.term, Data: data}}); err != nil {
		t.Errorf("apply: %v", err)
	}
	l.next++
}

// Wake implements state.Proposer.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// ReadIndex implements state.Proposer: a cluster of one is always right.
func (l *Loop) ReadIndex(ctx context.Context) error { return ctx.Err() }
