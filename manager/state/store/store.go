package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/mutant"
	"holdfast/manager/state"
)

// Options are what a store is made of. All fields without a default are needed.
type Options struct {
	ClusterID string
	Proposer  state.Proposer
	Clock     func() time.Time // the leader's clock
	NewID     func() string    // IDs of objects: 25 base-36 characters
	NewTxnID  func() []byte    // IDs of transactions: 16 random bytes
	Wait      state.Wait       // nil: state.Block
	Planted   mutant.Set       // a fault planted on purpose, by the simulator; zero: none

	MaxPending      int // transactions that wait for their outcome; 4096
	MaxPendingBytes int // 64 MiB
	MaxRequests     int // request IDs that are remembered; 100,000
	MaxEntryBytes   int // transactions are packed into an entry up to this size; 1 MiB

	// The change log has bounds of its own, as a last resort: they hold even if no leader
	// compacts it. What is kept depends on them, so they must be the same on all members, and
	// no flag sets them.
	MaxLog      int // revisions; 200,000
	MaxLogBytes int // bytes of changes; 512 MiB
}

func (o *Options) setDefaults() {
	if o.Wait == nil {
		o.Wait = state.Block
	}
	for _, d := range []struct {
		field *int
		value int
	}{
		{&o.MaxPending, 4096},
		{&o.MaxPendingBytes, 64 << 20},
		{&o.MaxLog, 200_000},
		{&o.MaxLogBytes, 512 << 20},
		{&o.MaxRequests, 100_000},
		{&o.MaxEntryBytes, 1 << 20},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
}

// Result tells what a transaction did.
type Result struct {
	Revision uint64
	IDs      []string // of the objects that it changed, in order
	// Replayed tells that the request was known: this is the outcome of its first run, and
	// the function did not run now.
	Replayed bool
}

// MemoryStore keeps the objects. The package comment says who may call what.
type MemoryStore struct {
	opts  Options
	root  atomic.Pointer[root]
	queue queue

	mu   sync.Mutex // the write lock
	head *head      // nil while this member does not lead

	requests requestIndex // of the root

	versions versionIndex // of the root's log

	events publisher
}

var _ state.Machine = (*MemoryStore)(nil)

// View calls fn with the state at the last committed revision.
func (s *MemoryStore) View(fn func(ReadTx) error) error { return fn(s.Root()) }

// Root returns a view of the last committed revision.
func (s *MemoryStore) Root() ReadTx { return s.root.Load().read() }

// Batch is Update for a change that may be larger than a transaction. See Batch.Update.
func (s *MemoryStore) Batch(ctx context.Context, fn func(*Batch) error) error {
	return runBatch(ctx, s, fn)
}
