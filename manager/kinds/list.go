package kinds

import (
	"iter"

	"holdfast/api/holdfast"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// List implements Kind.
func (t table[T]) List(tx store.ReadTx, s *holdfast.Selector, after string, limit int) (Page, error) {
	return t.ListIn(tx, s, objects.Order{}, after, limit)
}

// ListIn implements Kind.
func (t table[T]) ListIn(
	tx store.ReadTx, s *holdfast.Selector, o objects.Order, after string, limit int,
) (Page, error) {
	selection, err := t.selection(tx, s, o, after)
	if err != nil {
		return Page{}, err
	}
	found, remaining, err := selection.Page(limit)
	if err != nil {
		return Page{}, err
	}
	p := Page{Objects: make([]state.Object, len(found)), Remaining: remaining}
	for i, object := range found {
		p.Objects[i] = object
	}
	return p, nil
}

// Count implements Kind.
func (t table[T]) Count(tx store.ReadTx, s *holdfast.Selector, o objects.Order, after string) (uint64, error) {
	selection, err := t.selection(tx, s, o, after)
	if err != nil {
		return 0, err
	}
	return selection.Count()
}

// Scan implements Kind.
func (t table[T]) Scan(
	tx store.ReadTx, s *holdfast.Selector, o objects.Order, after string,
) (iter.Seq[state.Object], uint64, error) {
	selection, err := t.selection(tx, s, o, after)
	if err != nil {
		return nil, 0, err
	}
	found, total, err := selection.All()
	if err != nil {
		return nil, 0, err
	}
	return func(yield func(state.Object) bool) {
		for object := range found {
			if !yield(object) {
				return
			}
		}
	}, total, nil
}

func (t table[T]) selection(
	tx store.ReadTx, s *holdfast.Selector, o objects.Order, after string,
) (objects.Selection[T], error) {
	by, err := t.by(s)
	if err != nil {
		return objects.Selection[T]{}, err
	}
	keep, err := t.keep(s)
	if err != nil {
		return objects.Selection[T]{}, err
	}
	return objects.Selection[T]{Tx: tx, Table: t.Table, By: by, Keep: keep, Order: o, After: after}, nil
}
