// Package stackapi serves holdfast.v1's Stacks: objects that are deployed and removed as one.
//
// A stack is not an object. It is the services, networks, secrets and configs whose label
// com.docker.stack.namespace is its name. Deploy and Remove change them in one transaction,
// all of them or none; inside of it they compare what is wanted with what is there, so two
// deployments of one stack at once end as if one had come after the other. The same
// transaction writes the record of the release, and removes what no release names any more,
// so there is no release that is not quite there.
//
// The package keeps no state. A Server may be called from anywhere; the rules for what may be
// written are those of package objects. The data of secrets never leaves through it. Tasks
// are left to those who wrote them.
package stackapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast/api/holdfast"
	"holdfast/internal/apijson"
	"holdfast/internal/descriptors"
	"holdfast/internal/errkind"
	"holdfast/internal/fielddiff"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
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
}

// Server implements holdfast.StacksServer.
type Server struct {
	holdfast.UnimplementedStacksServer
	store  Store
	reader Reader
	json   apijson.Converter
	differ fielddiff.Differ
}

var _ holdfast.StacksServer = (*Server)(nil)

// New returns a server that reads from r and writes to s. files describe the objects.
func New(s Store, r Reader, files *descriptors.Files) *Server {
	return &Server{store: s, reader: r, json: apijson.New(files), differ: fielddiff.New(files)}
}

// Deploy makes the stack's objects what the request says, and writes a release.
func (s *Server) Deploy(ctx context.Context, r *holdfast.DeployRequest) (*holdfast.DeployResponse, error) {
	want, err := s.prepare(r)
	if err != nil {
		return nil, err
	}
	return s.deploy(ctx, want.name, r.DryRun, func(d *deployment) error { return d.run(want) })
}

// errGivenUp ends the transaction of a dry run: like any error, it is told only once it is
// certain that what the transaction saw is true.
var errGivenUp = errors.New("a dry run writes nothing")

// deploy runs a deployment.
func (s *Server) deploy(
	ctx context.Context, stack string, dry bool, run func(*deployment) error,
) (*holdfast.DeployResponse, error) {
	var d *deployment
	result, err := s.update(ctx, stack, dry, func(made *deployment) error {
		d = made
		if err := run(d); err != nil || !dry {
			return err
		}
		if err := d.fits(); err != nil {
			return err
		}
		return errGivenUp
	})
	switch {
	case dry && errors.Is(err, errGivenUp):
		if err := s.tellDryRun(d); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, hinted(err, stack, hintParts)
	case result.Replayed:
		changes, release := s.replay(stack, result)
		return &holdfast.DeployResponse{Revision: result.Revision, Changes: sorted(changes), Release: release}, nil
	}
	return &holdfast.DeployResponse{Revision: result.Revision, Changes: sorted(d.changes), Release: d.number}, nil
}

// update runs a deployment or a removal in a transaction.
func (s *Server) update(
	ctx context.Context, stack string, dry bool, run func(*deployment) error,
) (store.Result, error) {
	request := state.RequestFrom(ctx)
	return s.store.Update(ctx, func(tx *store.Tx) error {
		d := &deployment{tx: tx, stack: stack, request: request, dry: dry}
		var err error
		if d.records, err = openRecords(tx, stack); err != nil {
			return err
		}
		return run(d)
	})
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
