// Package objectapi serves holdfast.v1's Objects: objects of every kind, present and past, read
// and changed in one form. It is what controllers are written against.
//
// It keeps no state. A Server may be called from anywhere; the rules for what may be written
// are those of package objects and run inside the transaction. The data of secrets and the
// keys of the cluster never leave through it.
package objectapi

import (
	"context"
	"errors"

	"holdfast/api/holdfast"
	"holdfast/internal/descriptors"
	"holdfast/internal/errkind"
	"holdfast/internal/fielddiff"
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
	differ    fielddiff.Differ
	pageBytes int // bound of a page's objects
}

var _ holdfast.ObjectsServer = (*Server)(nil)

// New returns a server that reads from r and writes to s. files describe the objects.
func New(s Store, r Reader, files *descriptors.Files) *Server {
	return &Server{store: s, reader: r, differ: fielddiff.New(files), pageBytes: maxPageBytes}
}

// Get returns one object, by its ID or by its name.
func (s *Server) Get(ctx context.Context, r *holdfast.GetRequest) (*holdfast.GetResponse, error) {
	k, err := named(r.Kind, r.ID, r.Name)
	if err != nil {
		return nil, err
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

// named returns the kind of an object that a request names by its ID or by its name.
func named(number holdfast.Kind, id, name string) (kinds.Kind, error) {
	k, err := kinds.Of("kind", number)
	switch {
	case err != nil:
		return nil, err
	case id == "" && name == "":
		return nil, errkind.Field("id", "is empty, and name is too").On(k.Noun(), "").
			WithHint("give an ID or a name")
	case id != "" && name != "":
		return nil, errkind.Field("name", "is given, and id is too").On(k.Noun(), "").
			WithHint("give an ID or a name, not both")
	}
	return k, nil
}

// at returns the state at a revision that another call told of, which another manager may have
// served: if it is not applied here yet, a fresh read waits for it.
func (s *Server) at(ctx context.Context, revision uint64) (store.ReadTx, error) {
	tx, err := s.store.At(revision)
	e, ok := errors.AsType[*errkind.Error](err)
	if !ok || e.Kind != errkind.OutOfRange || e.Now >= revision {
		return tx, err
	}
	if _, err := s.reader.Read(ctx); err != nil {
		return nil, err
	}
	return s.store.At(revision)
}

// logOf returns the log that a view has been made from.
func logOf(tx store.ReadTx) (store.Log, error) {
	log, ok := store.LogOf(tx)
	if !ok {
		return store.Log{}, errkind.New(errkind.Internal, "the view of revision %d has no log", tx.Revision())
	}
	return log, nil
}
