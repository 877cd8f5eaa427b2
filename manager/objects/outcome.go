package objects

import (
	"context"
	"errors"

	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// Store is what Outcome needs of a store.
type Store interface {
	// Update runs fn in a transaction and returns when its outcome is known. fn may run
	// twice, and does not run if the request is one that was committed before.
	Update(ctx context.Context, fn func(*store.Tx) error) (store.Result, error)
	// At returns the state at a revision, or an errkind.OutOfRange error whose Now is the
	// floor.
	At(revision uint64) (store.ReadTx, error)
}

// Outcome does a change of one object in a transaction and returns the object as it was left.
// For a request that was committed before it returns the object of then. change may run
// twice, and must change no other object before the one that it returns.
func Outcome[T Object[T]](
	ctx context.Context, s Store, t *store.Table[T], change func(*store.Tx) (T, error),
) (T, store.Result, error) {
	var o T
	result, err := s.Update(ctx, func(tx *store.Tx) error {
		var err error
		o, err = change(tx)
		return err
	})
	switch {
	case err != nil:
		var zero T
		return zero, result, err
	case !result.Replayed:
		return o, result, nil
	case len(result.IDs) == 0:
		var zero T
		return zero, result, errkind.New(errkind.Internal, "the outcome of the request names no object")
	}
	o, err = Past(s, t, result.IDs[0], result.Revision)
	return o, result, err
}

// Past returns an object as a transaction at revision left it. If that revision is compacted
// it returns the object as it is at the floor, and if it is not there any more it fails with
// errkind.OutOfRange, which tells that the request was done.
func Past[T Object[T]](s Store, t *store.Table[T], id string, revision uint64) (T, error) {
	var zero T
	tx, err := PastTx(s, revision)
	if err != nil {
		return zero, err
	}
	if o := t.Get(tx, id); o != zero {
		return o, nil
	}
	e := errkind.New(errkind.OutOfRange,
		"the request was done before, at revision %d; what it left is not there any more", revision)
	e.Seen, e.Now = revision, tx.Revision()
	return zero, e.On(t.Noun(), id).WithHint("do not repeat it")
}

// PastTx returns the state at a revision, or at the floor if that is higher. The floor moves,
// so it is asked for more than once.
func PastTx(s interface {
	At(revision uint64) (store.ReadTx, error)
}, revision uint64,
) (store.ReadTx, error) {
	const tries = 4
	var err error
	for range tries {
		var tx store.ReadTx
		if tx, err = s.At(revision); err == nil {
			return tx, nil
		}
		e, ok := errors.AsType[*errkind.Error](err)
		if !ok || e.Kind != errkind.OutOfRange || e.Now <= revision {
			break
		}
		revision = e.Now
	}
	return nil, err
}
