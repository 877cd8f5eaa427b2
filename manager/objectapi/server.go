// Package objectapi serves holdfast.v1's Objects: objects of every kind read and changed in
// one form. It is what controllers are written against.
//
// It keeps no state. A Server may be called from anywhere; the rules for what may be written
// are those of package objects and run inside the transaction. The data of secrets and the
// keys of the cluster never leave through it.
package objectapi

import (
	"context"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/kinds"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// Store is what the server writes to, and where it finds past states.
type Store interface {
	// Update runs fn in a transaction and returns when its outcome is known. fn may run
	// twice, and does not run if the request is one that was committed before.
	Update(ctx context.Context, fn func(*store.Tx) error) (store.Result, error)
	// At returns the state at a revision, or an errkind.OutOfRange error whose Now is the
	// floor, or the present revision if that is lower.
	At(revision uint64) (store.ReadTx, error)
}

// Reader is where the server reads.
type Reader interface {
	// Read returns a state as fresh as the caller asked for.
	Read(ctx context.Context) (store.ReadTx, error)
}

// Server implements holdfast.ObjectsServer.
type Server struct {
	holdfast.UnimplementedObjectsServer
	store     Store
	reader    Reader
	pageBytes int // bound of a page's objects
}

var _ holdfast.ObjectsServer = (*Server)(nil)

// New returns a server that reads from r and writes to s.
func New(s Store, r Reader) *Server {
	return &Server{store: s, reader: r, pageBytes: maxPageBytes}
}

// Get returns one object, by its ID or by its name.
func (s *Server) Get(ctx context.Context, r *holdfast.GetRequest) (*holdfast.GetResponse, error) {
	k, err := kinds.Of("kind", r.Kind)
	if err != nil {
		return nil, err
	}
	switch {
	case r.ID == "" && r.Name == "":
		return nil, errkind.Field("id", "is empty, and name is too").On(k.Noun(), "").
			WithHint("give an ID or a name")
	case r.ID != "" && r.Name != "":
		return nil, errkind.Field("name", "is given, and id is too").On(k.Noun(), "").
			WithHint("give an ID or a name, not both")
	}
	tx, err := s.reader.Read(ctx)
	if err != nil {
		return nil, err
	}
	o, err := k.Get(tx, r.ID, r.Name)
	if err != nil {
		return nil, err
	}
	return &holdfast.GetResponse{Object: objects.Wrap(objects.Redact(o)), Revision: tx.Revision()}, nil
}
