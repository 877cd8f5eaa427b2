package controlapi

import (
	"context"

	"holdfast/api"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// create makes an object from a spec.
func create[T objects.Object[T], S any](
	ctx context.Context, s *Server, t *store.Table[T], spec S, rule func(*store.Tx, S) (T, error),
) (T, error) {
	o, _, err := objects.Outcome(ctx, s.store, t, func(tx *store.Tx) (T, error) { return rule(tx, spec) })
	return o, err
}

// update replaces the spec of the object with an ID.
func update[T objects.Object[T], S any](
	ctx context.Context, s *Server, t *store.Table[T], id string, version *api.Version, spec S,
	rule func(*store.Tx, string, *api.Version, S) (T, error),
) (T, error) {
	var zero T
	if err := needID(t, id); err != nil {
		return zero, err
	}
	o, _, err := objects.Outcome(ctx, s.store, t, func(tx *store.Tx) (T, error) {
		return rule(tx, id, version, spec)
	})
	return o, err
}

// remove removes the object with an ID.
func remove[T objects.Object[T]](
	ctx context.Context, s *Server, t *store.Table[T], id string, rule func(*store.Tx, string) (T, error),
) error {
	if err := needID(t, id); err != nil {
		return err
	}
	_, err := s.store.Update(ctx, func(tx *store.Tx) error {
		_, err := rule(tx, id)
		return err
	})
	return err
}
