package stackapi

import (
	"context"
	"maps"
	"slices"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// List returns all stacks by name, with the number of their objects and their newest release.
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
	newest, err := newestRecords(tx)
	if err != nil {
		return nil, err
	}
	for name, r := range newest {
		stack(name).Release = r.release()
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
		if name := k.labels(o)[store.StackLabel]; name != "" {
			add(name)
		}
	}
	return nil
}

// History returns the releases of a stack, the oldest first.
func (s *Server) History(ctx context.Context, r *holdfast.StackHistoryRequest) (*holdfast.StackHistoryResponse, error) {
	tx, all, err := s.releases(ctx, r.Name, false)
	if err != nil {
		return nil, err
	}
	resp := &holdfast.StackHistoryResponse{Revision: tx.Revision()}
	for _, r := range all {
		resp.Releases = append(resp.Releases, r.release())
	}
	return resp, nil
}

// GetRelease returns one release and what it deployed.
func (s *Server) GetRelease(ctx context.Context, r *holdfast.GetReleaseRequest) (*holdfast.GetReleaseResponse, error) {
	tx, all, err := s.releases(ctx, r.Name, false)
	if err != nil {
		return nil, err
	}
	var found *record
	switch {
	case r.Number != 0:
		if found, err = numbered(all, r.Name, r.Number); err != nil {
			return nil, err
		}
	case len(all) == 0:
		return nil, errkind.New(errkind.NotFound, "has no release").On("stack", r.Name).
			WithHint("it was deployed before there were releases; deploy it again")
	default:
		if found = deployedOf(all); found == nil {
			found = all[len(all)-1]
		}
	}
	request, content, err := s.read(ctx, tx, found)
	if err != nil {
		return nil, err
	}
	return &holdfast.GetReleaseResponse{Release: found.release(), Compose: content.Compose, Request: request}, nil
}

// releases reads the heads of a stack's releases. Unless it may lack, it fails with
// errkind.NotFound if there is neither a release nor an object of the stack.
func (s *Server) releases(ctx context.Context, stack string, mayLack bool) (store.ReadTx, []*record, error) {
	if stack == "" {
		return nil, nil, errkind.Field("name", "is empty").On("stack", "")
	}
	tx, all, err := s.heads(ctx, stack)
	if err != nil || len(all) > 0 || mayLack {
		return tx, all, err
	}
	there, err := size(tx, stack)
	switch {
	case err != nil:
		return nil, nil, err
	case there == 0:
		return nil, nil, notFound(stack)
	}
	return tx, nil, nil
}

func (s *Server) heads(ctx context.Context, stack string) (store.ReadTx, []*record, error) {
	if s.archive != nil {
		h, err := s.archive.look(ctx, stack)
		if err != nil {
			return nil, nil, err
		}
		return h.tx, h.all(), nil
	}
	tx, err := s.reader.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, err := readRecords(tx, stack)
	return tx, all, err
}

// read reads what a release deployed, wherever that is kept.
func (s *Server) read(ctx context.Context, tx store.ReadTx, r *record) (*holdfast.DeployRequest, content, error) {
	if s.archive != nil {
		if err := s.archive.fetch(ctx, r); err != nil {
			return nil, content{}, err
		}
	}
	return s.request(tx, r)
}

func notFound(stack string) error {
	return errkind.New(errkind.NotFound, "not found").On("stack", stack)
}

// numbered returns the release with a number.
func numbered(all []*record, stack string, n uint64) (*record, error) {
	for _, r := range all {
		if r.number() == n {
			return r, nil
		}
	}
	return nil, errkind.New(errkind.NotFound, "has no release %d", n).On("stack", stack).
		WithHint("it may be too long ago; its history tells which there are")
}

// size returns the number of a stack's objects.
func size(tx store.ReadTx, stack string) (int, error) {
	total := 0
	for _, of := range []func() (map[string]bool, error){
		func() (map[string]bool, error) { return idsOf(tx, services(), stack) },
		func() (map[string]bool, error) { return idsOf(tx, networks(), stack) },
		func() (map[string]bool, error) { return idsOf(tx, secrets(), stack) },
		func() (map[string]bool, error) { return idsOf(tx, configs(), stack) },
	} {
		ids, err := of()
		if err != nil {
			return 0, err
		}
		total += len(ids)
	}
	return total, nil
}

// idsOf returns the IDs of a stack's objects of a kind.
func idsOf[T objects.Object[T], S any](tx store.ReadTx, k kind[T, S], stack string) (map[string]bool, error) {
	found, err := k.table.Find(tx, store.ByStack(stack))
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for o := range found {
		ids[o.GetID()] = true
	}
	return ids, nil
}
