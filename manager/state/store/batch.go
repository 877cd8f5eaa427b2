package store

import (
	"context"
	"fmt"

	"holdfast/manager/state"
)

// maxBatch is the number of steps after which a batch goes on in a new transaction. It is a
// number of steps and not of changes so that a repeated batch is cut in the same places, and
// its parts find their first outcomes.
const maxBatch = 200

// Batch makes a change that may be larger than one transaction. Each transaction is atomic,
// the whole is not.
type Batch struct {
	ctx   context.Context //nolint:containedctx // a Batch lives within one call
	store *MemoryStore
	steps []func(*Tx) error
	parts int
	err   error
}

// Update adds a step, which runs with others in one transaction, now or later; it must be as
// the function of MemoryStore.Update. A step that fails ends the batch: the transaction that
// it is in is not made, those before it stay.
func (b *Batch) Update(step func(*Tx) error) error {
	if b.err != nil {
		return b.err
	}
	b.steps = append(b.steps, step)
	if len(b.steps) >= maxBatch {
		b.err = b.flush()
	}
	return b.err
}

func (b *Batch) flush() error {
	for len(b.steps) > 0 {
		ctx := b.ctx
		if req := state.RequestFrom(ctx); req.ID != "" {
			req.ID = fmt.Sprintf("%s/%d", req.ID, b.parts)
			ctx = state.WithRequest(ctx, req)
		}
		n := min(len(b.steps), maxBatch)
		if _, err := b.store.Update(ctx, func(tx *Tx) error {
			for _, step := range b.steps[:n] {
				if err := step(tx); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		b.parts++
		b.steps = b.steps[n:]
	}
	return nil
}

func runBatch(ctx context.Context, s *MemoryStore, fn func(*Batch) error) error {
	b := &Batch{ctx: ctx, store: s}
	if err := fn(b); err != nil {
		return err
	}
	if b.err == nil {
		b.err = b.flush()
	}
	return b.err
}
