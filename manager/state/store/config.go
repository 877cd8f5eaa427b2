package store

import (
	"fmt"

	memdb "github.com/hashicorp/go-memdb"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
)

// config gives the table as the store uses it.
func (t *Table[T]) config() ObjectStoreConfig {
	return ObjectStoreConfig{
		Kind:             t.kind,
		Table:            t.schema(),
		Save:             t.save,
		Restore:          t.restore,
		ApplyStoreAction: t.apply,
		NewStoreAction:   t.newAction,
		Values:           t.valuesOf,
		Get:              t.get,
	}
}

func (t *Table[T]) valuesOf(index string, o state.Object) []string {
	if typed, ok := o.(T); ok {
		return t.Values(index, typed)
	}
	return nil
}

func (t *Table[T]) get(tx ReadTx, id string) state.Object {
	var zero T
	if o := t.Get(tx, id); o != zero {
		return o
	}
	return nil
}

func (t *Table[T]) save(tx ReadTx, emit func(api.StoreAction) error) error {
	for o := range t.find(tx, All()) {
		a := t.wrap(o)
		a.Action = api.StoreActionKind_STORE_ACTION_CREATE
		if err := emit(a); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table[T]) restore(tx *memdb.Txn, action *api.StoreAction, isNew bool) (bool, error) {
	o, ok := t.unwrap(action)
	if !ok {
		return false, nil
	}
	var zero T
	if !isNew && t.Get(rawTx{tx}, o.GetID()) != zero {
		return true, fmt.Errorf("%s %s comes twice", t.noun, o.GetID())
	}
	// What was created and not changed since has one time, as it had when it was made.
	if m := t.meta(o); m.UpdatedAt.Equal(m.CreatedAt) {
		m.UpdatedAt = m.CreatedAt
	}
	return true, tx.Insert(t.table(), o)
}

func (t *Table[T]) apply(tx *memdb.Txn, action *api.StoreAction) (state.Change, bool, error) {
	var none state.Change
	var zero T
	o, ok := t.unwrap(action)
	if !ok {
		return none, false, nil
	}
	old := t.Get(rawTx{tx}, o.GetID())
	fault := func(what string) (state.Change, bool, error) {
		return none, true, errkind.New(errkind.Internal, "%s", what).On(t.noun, o.GetID())
	}
	switch action.Action {
	case api.StoreActionKind_STORE_ACTION_CREATE:
		if old != zero {
			return fault("a committed create finds the object there")
		}
	case api.StoreActionKind_STORE_ACTION_UPDATE:
		if old == zero {
			return fault("a committed update does not find the object")
		}
		share(old, o)
	case api.StoreActionKind_STORE_ACTION_REMOVE:
		if old == zero {
			return fault("a committed remove does not find the object")
		}
		return t.change(old, zero), true, tx.Delete(t.table(), old)
	default:
		return fault(fmt.Sprintf("a committed action is of the unknown kind %d", action.Action))
	}
	return t.change(old, o), true, tx.Insert(t.table(), o)
}

func (t *Table[T]) newAction(c state.Change) api.StoreAction {
	o, ok := c.Object().(T)
	if !ok { // the kind was looked up from the change
		panic(fmt.Sprintf("store: change of kind %v holds %T", t.kind, c.Object()))
	}
	if c.New == nil { // to remove it, its ID is enough
		gone := t.blank()
		*t.id(gone), *t.meta(gone) = o.GetID(), o.GetMeta()
		o = gone
	}
	a := t.wrap(o)
	a.Action = c.Action()
	return a
}
