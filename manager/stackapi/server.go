// Package stackapi serves holdfast.v1's Stacks: objects that are deployed and removed as one.
//
// A stack is not an object. It is the services, networks, secrets and configs whose label
// com.docker.stack.namespace is its name. Deploy and Remove change them in one transaction,
// all of them or none; inside of it they compare what is wanted with what is there, so two
// deployments of one stack at once end as if one had come after the other. The same
// transaction writes the record of the release, and removes what no release names any more,
// so there is no release that is not quite there.
//
// Where releases are kept in an archive instead, the store has the one that is deployed, and the
// archive follows it: see archive. Then calls for one stack come one after another.
//
// The state is the store's and the archive's. A Server may be called from anywhere; the rules for
// what may be written are those of package objects. The data of secrets never leaves through it. Tasks
// are left to those who wrote them.
package stackapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"holdfast/api/holdfast"
	"holdfast/internal/apijson"
	"holdfast/internal/descriptors"
	"holdfast/internal/errkind"
	"holdfast/internal/fielddiff"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/release/driver"
)

// Store is what the server writes to, and where it finds past states.
type Store interface {
	// Update runs fn in a transaction and returns when its outcome is known. fn may run
	// twice, and does not run if the request is one that was committed before.
	Update(ctx context.Context, fn func(*store.Tx) error) (store.Result, error)
	// At returns the state at a revision, or an errkind.OutOfRange error whose Now is the
	// floor.
	At(revision uint64) (store.ReadTx, error)
}

// Reader is where the server reads.
type Reader interface {
	// Read returns a state as fresh as the caller asked for.
	Read(ctx context.Context) (store.ReadTx, error)
	// Newest returns a state that has all that was committed before, whatever the caller asked for.
	Newest(ctx context.Context) (store.ReadTx, error)
}

// Config is what a server works on. All but the archive's part must be given.
type Config struct {
	Store  Store
	Reader Reader
	Files  *descriptors.Files // describe the objects
	// Key is for the digests of secrets that are told: random, and known to nobody.
	Key []byte
	// Archive keeps the releases of all stacks, and the store only those that are deployed. Nil
	// means that the store keeps all.
	Archive driver.Driver
	// Namespace is that of the archive's records: no other cluster may have it.
	Namespace string
	// Logger is told what goes wrong in the archive after an outcome is known.
	Logger *slog.Logger
}

// Server implements holdfast.StacksServer.
type Server struct {
	holdfast.UnimplementedStacksServer
	store   Store
	reader  Reader
	key     []byte
	archive *archive // nil if there is none
	json    apijson.Converter
	differ  fielddiff.Differ
}

var _ holdfast.StacksServer = (*Server)(nil)

// New returns a server. There must not be another one in the process for the same archive.
func New(c Config) *Server {
	s := &Server{
		store: c.Store, reader: c.Reader, key: c.Key, json: apijson.New(c.Files), differ: fielddiff.New(c.Files),
	}
	if c.Archive != nil {
		s.archive = &archive{driver: c.Archive, namespace: c.Namespace, reader: c.Reader, logger: c.Logger}
	}
	return s
}

// Deploy makes the stack's objects what the request says, and writes a release.
func (s *Server) Deploy(ctx context.Context, r *holdfast.DeployRequest) (*holdfast.DeployResponse, error) {
	want, err := s.prepare(r)
	if err != nil {
		return nil, err
	}
	return s.deploy(ctx, change{
		stack: want.name, dry: r.DryRun, run: func(d *deployment) error { return d.run(want) },
	})
}

// errGivenUp ends the transaction of a dry run: like any error, it is told only once it is
// certain that what the transaction saw is true.
var errGivenUp = errors.New("a dry run writes nothing")

// change is what is to be done to a stack.
type change struct {
	stack string
	dry   bool
	run   func(*deployment) error
	// source picks the record whose body run reads, if there is one. It may be nil.
	source func(*holdings) *record
}

// deploy runs a deployment.
func (s *Server) deploy(ctx context.Context, c change) (*holdfast.DeployResponse, error) {
	d, result, err := s.change(ctx, c)
	switch {
	case c.dry && errors.Is(err, errGivenUp):
		if err := s.tellDryRun(d); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, hinted(err, c.stack, hintParts)
	case result.Replayed:
		changes, release := s.replay(ctx, c.stack, result)
		return &holdfast.DeployResponse{Revision: result.Revision, Changes: sorted(changes), Release: release}, nil
	}
	return &holdfast.DeployResponse{Revision: result.Revision, Changes: sorted(d.changes), Release: d.number}, nil
}

// update makes a change in a transaction. With an archive, h is what is there of the releases; it
// fails with errMoved if it is not any more.
func (s *Server) update(ctx context.Context, c change, h *holdings) (*deployment, store.Result, error) {
	request := state.RequestFrom(ctx)
	d := &deployment{}
	result, err := s.store.Update(ctx, func(tx *store.Tx) error {
		d = &deployment{tx: tx, stack: c.stack, request: request, dry: c.dry}
		var err error
		if d.records, err = openRecords(tx, c.stack, h); err != nil {
			return err
		}
		if err := c.run(d); err != nil || !c.dry {
			return err
		}
		if err := d.fits(); err != nil {
			return err
		}
		return errGivenUp
	})
	return d, result, err
}

// fits refuses what the store would refuse when it puts the transaction together, which it does
// not for one that is given up.
func (d *deployment) fits() error {
	if d.bytes <= store.MaxTransactionBytes {
		return nil
	}
	return (&errkind.Error{
		Kind: errkind.Limit, Max: "4 MiB", Hint: hintParts,
		Msg: fmt.Sprintf("transaction of %d bytes is over the limit of 4 MiB", d.bytes),
	}).On("stack", d.stack)
}

// tellDryRun makes the changes of a dry run what can be said of them: an update has its fields,
// and what was created has no ID, nor a secret its random name.
func (s *Server) tellDryRun(d *deployment) error {
	for _, u := range d.updates {
		var err error
		if u.change.Fields, err = s.fields(u.before, u.after); err != nil {
			return err
		}
	}
	names := map[string]string{}
	for name, stored := range d.secretNames {
		names[stored] = name
	}
	for _, c := range d.changes {
		if c.Action != holdfast.StackChange_CREATED {
			continue
		}
		c.ID = ""
		if c.Kind == holdfast.Kind_KIND_SECRET {
			c.Name = names[c.Name]
		}
	}
	return nil
}

// sorted puts changes in the order of kinds, and of names within a kind.
func sorted(changes []*holdfast.StackChange) []*holdfast.StackChange {
	slices.SortFunc(changes, func(a, b *holdfast.StackChange) int {
		return cmp.Or(
			cmp.Compare(a.Kind, b.Kind),
			strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)),
			strings.Compare(a.ID, b.ID),
		)
	})
	return changes
}
