package call

import (
	"context"

	"holdfast/internal/mutant"
	"holdfast/internal/wire"
	"holdfast/manager/state/raft"
	"holdfast/manager/state/store"
)

// Reader gives the services a view that is as fresh as the caller asked for.
type Reader struct {
	Node    *raft.Node
	Store   *store.MemoryStore
	Planted mutant.Set // a fault planted on purpose, by the simulator; zero: none
}

// Read returns a view. It blocks until the view is as fresh as the Read header of the call
// asks for, or ctx ends.
func (r Reader) Read(ctx context.Context) (store.ReadTx, error) {
	fresh, err := wire.ParseFreshness(wire.Incoming(ctx, wire.Read))
	if err != nil {
		return nil, err
	}
	switch fresh.Mode {
	case wire.Local:
		return r.Store.Root(), nil
	case wire.Min:
		if r.Planted.Has(mutant.MinRead) {
			break
		}
		err = r.Node.WaitFor(ctx, func() bool { return r.Store.Root().Revision() >= fresh.Revision })
	case wire.At:
		return r.Store.At(fresh.Revision)
	case wire.Linearizable:
		return r.Newest(ctx)
	}
	if err != nil {
		return nil, err
	}
	return r.Store.Root(), nil
}

// Newest returns a view that has all that was committed before, whatever the Read header of the
// call asks for: for what is done because of it. It blocks as Read does.
func (r Reader) Newest(ctx context.Context) (store.ReadTx, error) {
	if err := r.Node.ReadIndex(ctx); err != nil {
		return nil, err
	}
	return r.Store.Root(), nil
}
