package controlapi

import (
	"context"

	"holdfast/api"
	"holdfast/manager/state/store"
)

// Store is where the server writes.
type Store interface {
	// Update runs fn in a transaction and returns when its outcome is known. fn may run
	// twice, and does not run if the request is one that was committed before.
	Update(ctx context.Context, fn func(*store.Tx) error) (store.Result, error)
	// At returns the state at a revision.
	At(revision uint64) (store.ReadTx, error)
}

// Reader is where the server reads.
type Reader interface {
	// Read returns a state that is as fresh as the caller asked for. It may block until one
	// is there, or until ctx ends.
	Read(ctx context.Context) (store.ReadTx, error)
}

// Server serves the Control service.
type Server struct {
	api.UnimplementedControlServer
	store  Store
	reader Reader
}

var _ api.ControlServer = (*Server)(nil)

// New returns a server that writes to s and reads from r.
func New(s Store, r Reader) *Server { return &Server{store: s, reader: r} }
