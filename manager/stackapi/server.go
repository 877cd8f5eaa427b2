// Package stackapi serves holdfast.v1's Stacks: objects that are deployed and removed as one.
//
// A stack is not an object. It is the services, networks, secrets and configs whose label
// com.docker.stack.namespace is its name. Deploy and Remove change them in one transaction,
// all of them or none; inside of it they compare what is wanted with what is there, so two
// deployments of one stack at once end as if one had come after the other.
//
// The package keeps no state. A Server may be called from anywhere; the rules for what may be
// written are those of package objects. The data of secrets never leaves through it. Tasks
// are left to those who wrote them.
package stackapi

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"holdfast/api/holdfast"
	"holdfast/manager/objects"
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
}

var _ holdfast.StacksServer = (*Server)(nil)

// New returns a server that reads from r and writes to s.
func New(s Store, r Reader) *Server { return &Server{store: s, reader: r} }

// Deploy makes the stack's objects what the request says.
func (s *Server) Deploy(ctx context.Context, r *holdfast.DeployRequest) (*holdfast.DeployResponse, error) {
	want, err := prepare(r)
	if err != nil {
		return nil, err
	}
	var changes []*holdfast.StackChange
	result, err := s.store.Update(ctx, func(tx *store.Tx) error {
		d := deployment{tx: tx, stack: want.name}
		if err := d.run(want); err != nil {
			return err
		}
		changes = d.changes
		return nil
	})
	if err != nil {
		return nil, hinted(err, want.name, hintParts)
	}
	if result.Replayed {
		changes = s.replay(want.name, result)
	}
	return &holdfast.DeployResponse{Revision: result.Revision, Changes: sorted(changes)}, nil
}

// List returns all stacks by name, with the number of their objects.
func (s *Server) List(ctx context.Context, _ *holdfast.ListStacksRequest) (*holdfast.ListStacksResponse, error) {
	tx, err := s.reader.Read(ctx)
	if err != nil {
		return nil, err
	}
	stacks := map[string]*holdfast.Stack{}
	stack := func(name string) *holdfast.Stack {
		if stacks[name] == nil {
			stacks[name] = &holdfast.Stack{Name: name}
		}
		return stacks[name]
	}
	for _, err := range []error{
		count(tx, services(), func(name string) { stack(name).Services++ }),
		count(tx, networks(), func(name string) { stack(name).Networks++ }),
		count(tx, secrets(), func(name string) { stack(name).Secrets++ }),
		count(tx, configs(), func(name string) { stack(name).Configs++ }),
	} {
		if err != nil {
			return nil, err
		}
	}
	resp := &holdfast.ListStacksResponse{Revision: tx.Revision()}
	for _, name := range slices.Sorted(maps.Keys(stacks)) {
		resp.Stacks = append(resp.Stacks, stacks[name])
	}
	return resp, nil
}

// count calls add with the stack of each object of a kind that belongs to one.
func count[T objects.Object[T], S any](tx store.ReadTx, k kind[T, S], add func(stack string)) error {
	found, err := k.table.Find(tx, store.All())
	if err != nil {
		return err
	}
	for o := range found {
		if name := k.annotations(k.spec(o)).Labels[store.StackLabel]; name != "" {
			add(name)
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
