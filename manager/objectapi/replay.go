package objectapi

import (
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/kinds"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// past is what the history still has of a transaction that was committed before.
type past struct {
	revision uint64
	after    store.ReadTx // at its revision, or at the floor if that is higher
	before   store.ReadTx // nil if it is compacted
}

// replay gives what the operations of a request left that was committed before: the objects
// as they were at its revision, and what it removed as it was before. What is not in the
// history any more is given by its ID alone.
func (s *Server) replay(operations []*holdfast.Operation, result store.Result) ([]*holdfast.Object, error) {
	after, err := objects.PastTx(s.store, result.Revision)
	if err != nil {
		return nil, err
	}
	p := past{after: after, revision: result.Revision}
	if before, err := s.store.At(result.Revision - 1); err == nil {
		p.before = before
	}
	made, err := p.created(operations, result.IDs)
	if err != nil {
		return nil, err
	}
	left := make([]*holdfast.Object, len(operations))
	for i, operation := range operations {
		k, id, err := target(operation)
		if err != nil {
			return nil, err
		}
		if id == "" {
			id, made = made[0], made[1:]
		}
		left[i] = p.object(k, id, operation.GetRemove() != nil)
	}
	return left, nil
}

// target returns the kind of the object that an operation is on, and its ID, which may be
// empty for a create.
func target(operation *holdfast.Operation) (kinds.Kind, string, error) {
	var given *holdfast.Object
	switch op := operation.GetOp().(type) {
	case *holdfast.Operation_Create:
		given = op.Create
	case *holdfast.Operation_Update:
		given = op.Update.GetObject()
	case *holdfast.Operation_Remove:
		k, err := kinds.Of("kind", op.Remove.GetKind())
		return k, op.Remove.GetID(), err
	}
	o := objects.Unwrap(given)
	if o == nil {
		return nil, "", errkind.Field("object", "is empty")
	}
	k, err := kinds.OfObject(o)
	return k, o.GetID(), err
}

// created returns the IDs that were made for the operations that create an object without
// one, in their order. ids are those of all objects that the transaction changed, in order:
// they are the ones that no operation names and that are no older than the transaction. (An
// operation can change others than the one it names: the tasks of a node that is removed.)
func (p past) created(operations []*holdfast.Operation, ids []string) ([]string, error) {
	want := 0
	named := map[string]bool{}
	for _, operation := range operations {
		_, id, err := target(operation)
		if err != nil {
			return nil, err
		}
		if id == "" {
			want++
		}
		named[id] = true
	}
	if want == 0 {
		return nil, nil
	}
	var made []string
	for _, id := range ids {
		if !named[id] && !p.existed(id) {
			made = append(made, id)
		}
	}
	if len(made) != want {
		e := errkind.New(errkind.OutOfRange,
			"the request was done before, at revision %d; what it made is not there any more", p.revision)
		e.Seen, e.Now = p.revision, p.after.Revision()
		return nil, e.WithHint("do not repeat it")
	}
	return made, nil
}

// existed tells whether an object is known to be older than the transaction.
func (p past) existed(id string) bool {
	for number := range holdfast.Kind_name {
		k, err := kinds.Of("kind", holdfast.Kind(number))
		if err != nil { // KIND_UNSPECIFIED
			continue
		}
		if p.before != nil && k.Find(p.before, id) != nil {
			return true
		}
		if o := k.Find(p.after, id); o != nil {
			meta := o.GetMeta()
			return meta.CreatedVersion.Index < p.revision
		}
	}
	return false
}

// object returns an object as the transaction left it, or as it was before if it was removed.
func (p past) object(k kinds.Kind, id string, removed bool) *holdfast.Object {
	var o state.Object
	if !removed {
		o = k.Find(p.after, id)
	}
	if o == nil && p.before != nil {
		o = k.Find(p.before, id)
	}
	if o == nil {
		o = k.Blank(id)
	}
	return objects.Wrap(objects.Redact(o))
}
