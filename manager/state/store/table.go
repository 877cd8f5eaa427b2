package store

import (
	"fmt"
	"iter"

	memdb "github.com/hashicorp/go-memdb"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
)

// object is what a kind's generated type has.
type object[T any] interface {
	comparable
	state.Object
	Copy() T
	Equal(any) bool
}

// Table is one kind of object: how it is stored, found and replicated. Everything about a
// kind stands in its Table.
type Table[T object[T]] struct {
	kind       holdfast.Kind
	noun       string // for people: "service"
	uniqueName bool   // without regard to case
	indexes    []*index[T]

	blank     func() T
	id        func(T) *string
	meta      func(T) *api.Meta
	name      func(T) string
	specEqual func(a, b T) bool
	wrap      func(T) api.StoreAction
	unwrap    func(*api.StoreAction) (T, bool)
}

// ObjectStoreConfig is a table as the store uses it, without its type.
type ObjectStoreConfig struct {
	Kind  holdfast.Kind
	Table *memdb.TableSchema
	// Save gives every object of the table, in the order of IDs, as StoreActions.
	Save func(tx ReadTx, emit func(api.StoreAction) error) error
	// Restore stores an object that Save gave; ok is false if it is of another kind. If isNew
	// says that no object has its ID, it does not look: memdb would have to copy, for each
	// object, what it could change in place.
	Restore func(tx *memdb.Txn, action *api.StoreAction, isNew bool) (ok bool, err error)
	// ApplyStoreAction does a committed action; ok is false if it is of another kind. An
	// action that does not fit the state is a fault.
	ApplyStoreAction func(tx *memdb.Txn, action *api.StoreAction) (change state.Change, ok bool, err error)
	// NewStoreAction makes the action of a change of this kind.
	NewStoreAction func(change state.Change) api.StoreAction
	// Values returns the values that an object has in an index; none if it is of another kind.
	Values func(index string, o state.Object) []string
	// Get returns the object with an ID, or nil.
	Get func(tx ReadTx, id string) state.Object
}

// Kind returns the kind of object in the table.
func (t *Table[T]) Kind() holdfast.Kind { return t.kind }

// Noun returns the kind for people: "service".
func (t *Table[T]) Noun() string { return t.noun }

// Name returns an object's name.
func (t *Table[T]) Name(o T) string { return t.name(o) }

// Action wraps an object in a StoreAction, whose action is not set.
func (t *Table[T]) Action(o T) api.StoreAction { return t.wrap(o) }

func (t *Table[T]) table() string { return t.noun }

func (t *Table[T]) index(name string) *index[T] {
	for _, x := range t.indexes {
		if x.name == name {
			return x
		}
	}
	return nil
}

// schema is the table's memdb schema. Names are not a unique index there: memdb does not
// enforce it, and overwrites; Create and Update do.
func (t *Table[T]) schema() *memdb.TableSchema {
	var kept valueIndex[T]
	for _, x := range t.indexes {
		if x.kept() && x.name != indexID {
			kept = append(kept, x)
		}
	}
	return &memdb.TableSchema{Name: t.table(), Indexes: map[string]*memdb.IndexSchema{
		indexID:     {Name: indexID, Unique: true, Indexer: idIndex[T]{}},
		indexValues: {Name: indexValues, AllowMissing: true, Indexer: kept},
	}}
}

// Get returns the object with an ID, or the zero T.
func (t *Table[T]) Get(tx ReadTx, id string) T {
	var zero T
	raw, err := tx.memdb().First(t.table(), indexID, id)
	o, ok := raw.(T)
	if p := tx.past(); p != nil && (!ok || !p.shows(o)) {
		o, ok = p.get(objectKey{t.kind, id}).(T)
	}
	if err != nil || !ok { // the schema is ours: memdb has no other error here
		return zero
	}
	return o
}

// Find returns the objects that a selector selects, in the order of its index: for All, of
// their IDs. It fails with errkind.Invalid if the table lacks one of the selector's indexes.
func (t *Table[T]) Find(tx ReadTx, by By) (iter.Seq[T], error) {
	if err := t.Check(by); err != nil {
		return nil, err
	}
	return t.find(tx, by), nil
}

// FindAll collects what Find returns.
func (t *Table[T]) FindAll(tx ReadTx, by By) ([]T, error) {
	seq, err := t.Find(tx, by)
	if err != nil {
		return nil, err
	}
	var all []T
	for o := range seq {
		all = append(all, o)
	}
	return all, nil
}

// Check fails with errkind.Invalid if the table lacks one of the selector's indexes.
func (t *Table[T]) Check(by By) error {
	if by.op == opValue && t.index(by.index) == nil {
		return errkind.New(errkind.Invalid, "%ss cannot be selected by %s", t.noun, by.index)
	}
	for _, b := range by.of {
		if err := t.Check(b); err != nil {
			return err
		}
	}
	return nil
}

// After goes through all objects whose ID is after one, in the order of IDs. Where it begins it
// finds at once.
func (t *Table[T]) After(tx ReadTx, id string) iter.Seq[T] {
	now := func(yield func(T) bool) {
		it, err := tx.memdb().LowerBound(t.table(), indexID, id)
		if err != nil { // cannot be: the schema is ours
			return
		}
		for raw := it.Next(); raw != nil; raw = it.Next() {
			if o, ok := raw.(T); ok && o.GetID() != id && !yield(o) {
				return
			}
		}
	}
	p := tx.past()
	if p == nil {
		return now
	}
	return func(yield func(T) bool) {
		for o := range t.was(p, now, t.index(indexID), "", true) {
			if o.GetID() > id && !yield(o) {
				return
			}
		}
	}
}

func (t *Table[T]) find(tx ReadTx, by By) iter.Seq[T] {
	switch by.op {
	case opValue:
		switch {
		case by.index == indexID:
			return t.scan(tx, t.index(indexID), by.value, by.prefix)
		case !t.index(by.index).kept():
			return t.find(tx, And(All(), by))
		}
		return t.scan(tx, t.index(by.index), by.value, by.prefix)
	case opOr:
		return func(yield func(T) bool) {
			seen := map[string]struct{}{}
			for _, b := range by.of {
				for o := range t.find(tx, b) {
					if _, dup := seen[o.GetID()]; dup {
						continue
					}
					seen[o.GetID()] = struct{}{}
					if !yield(o) {
						return
					}
				}
			}
		}
	case opAnd:
		if len(by.of) == 0 {
			return t.scan(tx, t.index(indexID), "", true)
		}
		return func(yield func(T) bool) {
			for o := range t.find(tx, by.of[0]) {
				if t.selects(And(by.of[1:]...), o) && !yield(o) {
					return
				}
			}
		}
	}
	return t.scan(tx, t.index(indexID), "", true)
}

// scan reads an index. A prefix of an index with several values could lead to one object twice;
// no selector makes one.
func (t *Table[T]) scan(tx ReadTx, x *index[T], value string, prefix bool) iter.Seq[T] {
	name, args := indexValues, []any{x.name, value}
	if x.name == indexID {
		name, args = indexID, []any{value}
	}
	if prefix {
		name += "_prefix"
	}
	now := func(yield func(T) bool) {
		it, err := tx.memdb().Get(t.table(), name, args...)
		if err != nil { // cannot be: Check has seen the index
			return
		}
		for raw := it.Next(); raw != nil; raw = it.Next() {
			if o, ok := raw.(T); ok && !yield(o) {
				return
			}
		}
	}
	if p := tx.past(); p != nil {
		return t.was(p, now, x, value, prefix)
	}
	return now
}

// Values returns the values that an object has in an index of the table.
func (t *Table[T]) Values(index string, o T) []string {
	if x := t.index(index); x != nil {
		return x.values(o)
	}
	return nil
}

// Selected returns what tells whether a selector, which Check has passed, selects an object.
func (t *Table[T]) Selected(by By) func(T) bool { return func(o T) bool { return t.selects(by, o) } }

// selects tells whether a selector selects an object.
func (t *Table[T]) selects(by By, o T) bool {
	switch by.op {
	case opValue:
		return t.index(by.index).matches(o, by.value, by.prefix)
	case opOr:
		for _, b := range by.of {
			if t.selects(b, o) {
				return true
			}
		}
		return false
	case opAnd:
		for _, b := range by.of {
			if !t.selects(b, o) {
				return false
			}
		}
	}
	return true
}

// Create adds an object. Its ID is made if it is empty, its Meta is the store's. The store
// keeps a copy and returns it. It fails with errkind.Exists if the ID or a unique name is
// taken.
func (t *Table[T]) Create(tx *Tx, o T) (T, error) {
	var zero T
	o = o.Copy()
	if *t.id(o) == "" {
		*t.id(o) = tx.newID()
	}
	id := o.GetID()
	if t.Get(tx, id) != zero {
		return zero, errkind.New(errkind.Exists, "exists already").On(t.noun, id)
	}
	if tx.removed(t.kind, id) {
		return zero, errkind.New(errkind.Exists, "was removed in this transaction").On(t.noun, id)
	}
	if err := t.checkName(tx, o); err != nil {
		return zero, err
	}
	*t.meta(o) = tx.createdMeta()
	return o, t.put(tx, zero, o)
}

// Update replaces an object. Its Meta.Version must be that of the object in the store, or the
// call fails with errkind.OutOfSequence. An update that changes nothing does nothing. The
// store keeps a copy and returns it.
func (t *Table[T]) Update(tx *Tx, o T) (T, error) {
	var zero T
	old := t.Get(tx, o.GetID())
	if old == zero {
		return zero, errkind.New(errkind.NotFound, "not found").On(t.noun, o.GetID())
	}
	if seen, now := t.meta(o).Version.Index, t.meta(old).Version.Index; seen != now {
		return zero, (&errkind.Error{
			Kind: errkind.OutOfSequence, Seen: seen, Now: now, Field: "meta.version",
			Msg:  fmt.Sprintf("update out of sequence: made from revision %d, it is at %d now", seen, now),
			Hint: "read it again and repeat the change",
		}).On(t.noun, o.GetID())
	}
	o = o.Copy()
	*t.meta(o) = *t.meta(old)
	if o.Equal(old) {
		return old, nil
	}
	if err := t.checkName(tx, o); err != nil {
		return zero, err
	}
	*t.meta(o) = tx.updatedMeta(*t.meta(old), !t.specEqual(old, o))
	share(old, o)
	return o, t.put(tx, old, o)
}

// Same tells whether two objects are equal but for their Meta.
func (t *Table[T]) Same(a, b T) bool {
	c := a.Copy()
	*t.meta(c) = *t.meta(b)
	return c.Equal(b)
}

// CheckSpecVersion tells whether a spec that was made from revision seen may replace that of
// o: the spec has not changed since. Status writes in between do no harm.
func (t *Table[T]) CheckSpecVersion(o T, seen uint64) error {
	m := t.meta(o)
	if m.SpecVersion.Index <= seen && seen <= m.Version.Index {
		return nil
	}
	return (&errkind.Error{
		Kind: errkind.OutOfSequence, Seen: seen, Now: m.Version.Index, Field: "version",
		Msg: fmt.Sprintf("update out of sequence: made from revision %d, the spec last changed at %d",
			seen, m.SpecVersion.Index),
		Hint: "read it again and repeat the change",
	}).On(t.noun, o.GetID())
}

// Delete removes an object and returns what it was. It fails with errkind.NotFound.
func (t *Table[T]) Delete(tx *Tx, id string) (T, error) {
	var zero T
	old := t.Get(tx, id)
	if old == zero {
		return zero, errkind.New(errkind.NotFound, "not found").On(t.noun, id)
	}
	if err := tx.txn.Delete(t.table(), old); err != nil {
		return zero, fmt.Errorf("delete %s %s: %w", t.noun, id, err)
	}
	return old, tx.record(t.change(old, zero))
}

func (t *Table[T]) put(tx *Tx, old, o T) error {
	if n := o.Size(); n > MaxObjectBytes {
		return (&errkind.Error{
			Kind: errkind.Limit, Max: "1 MiB", Msg: fmt.Sprintf("object of %d bytes is over the limit of 1 MiB", n),
		}).On(t.noun, t.name(o))
	}
	if err := tx.txn.Insert(t.table(), o); err != nil {
		return fmt.Errorf("store %s %s: %w", t.noun, o.GetID(), err)
	}
	return tx.record(t.change(old, o))
}

func (t *Table[T]) change(old, o T) state.Change {
	var zero T
	c := state.Change{Kind: t.kind}
	if old != zero {
		c.Old = old
	}
	if o != zero {
		c.New = o
	}
	return c
}

func (t *Table[T]) checkName(tx *Tx, o T) error {
	name := t.name(o)
	if !t.uniqueName || name == "" {
		return nil
	}
	for other := range t.find(tx, ByName(name)) {
		if other.GetID() != o.GetID() {
			return (&errkind.Error{
				Kind: errkind.Exists, Field: "spec.annotations.name",
				Msg:  fmt.Sprintf("name conflicts with an existing object: %s is %s", name, other.GetID()),
				Hint: "choose another name, or remove that one first",
			}).On(t.noun, name)
		}
	}
	return nil
}
