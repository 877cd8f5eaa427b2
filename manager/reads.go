package manager

import (
	"context"

	"holdfast/internal/wire"
	"holdfast/manager/state/raft"
	"holdfast/manager/state/store"
)

// reader gives the services a view that is as fresh as the caller asked for.
type reader struct {
	node  *raft.Node
	store *store.MemoryStore
}

// Read returns a view. It blocks until the view is as fresh as the Read header of the call
// asks for, or ctx ends.
func (r reader) Read(ctx context.Context) (store.ReadTx, error) {
	fresh, err := wire.ParseFreshness(wire.Incoming(ctx, wire.Read))
	if err != nil {
		return nil, err
	}
	switch fresh.Mode {
	case wire.Local:
		return r.store.Root(), nil
	case wire.Min:
		err = r.node.WaitFor(ctx, func() bool { return r.store.Root().Revision() >= fresh.Revision })
	case wire.At:
		return r.store.At(fresh.Revision)
	case wire.Linearizable:
		err = r.node.ReadIndex(ctx)
	}
	if err != nil {
		return nil, err
	}
	return r.store.Root(), nil
}
