package stackapi

import (
	"holdfast/api/holdfast"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// replay tells what a transaction did to a stack that was committed before. Where the history
// of it is compacted, it tells what can still be known: of an object that was removed then,
// the ID alone; later, only of those objects that are still there.
func (s *Server) replay(stack string, result store.Result) []*holdfast.StackChange {
	p := past{stack: stack, revision: result.Revision, changed: map[string]bool{}}
	for _, id := range result.IDs {
		p.changed[id] = true
	}
	after, err := s.store.At(result.Revision)
	if err != nil {
		if after, err = objects.PastTx(s.store, result.Revision); err != nil {
			return nil
		}
		p.late = true
	}
	before, err := s.store.At(result.Revision - 1)
	if err != nil {
		before = nil
	}
	compare(&p, services(), before, after)
	compare(&p, networks(), before, after)
	compare(&p, secrets(), before, after)
	compare(&p, configs(), before, after)
	if before != nil || p.late {
		return p.changes
	}
	for _, id := range result.IDs {
		if p.changed[id] { // it was not found after the transaction
			p.changes = append(p.changes, &holdfast.StackChange{Action: holdfast.StackChange_REMOVED, ID: id})
		}
	}
	return p.changes
}

// past is what a transaction did.
type past struct {
	stack    string
	revision uint64
	changed  map[string]bool // IDs that it changed, but for those that were found
	late     bool            // the state after it is compacted; a later one stands for it
	changes  []*holdfast.StackChange
}

// compare adds what the transaction did to a stack's objects of one kind. before is nil if it
// is compacted.
func compare[T objects.Object[T], S any](p *past, k kind[T, S], before, after store.ReadTx) {
	var have, had []T
	var err error
	if have, err = k.table.FindAll(after, store.ByStack(p.stack)); err != nil { // the table has the index
		return
	}
	if before != nil {
		if had, err = k.table.FindAll(before, store.ByStack(p.stack)); err != nil {
			return
		}
	}
	left := map[string]bool{}
	for _, o := range have {
		meta := o.GetMeta()
		left[o.GetID()] = true
		action := holdfast.StackChange_UNCHANGED
		switch {
		case meta.CreatedVersion.Index > p.revision:
			continue // it came later
		case !p.changed[o.GetID()]:
		case meta.CreatedVersion.Index == p.revision:
			action = holdfast.StackChange_CREATED
		default:
			action = holdfast.StackChange_UPDATED
		}
		delete(p.changed, o.GetID())
		p.changes = append(p.changes, k.change(action, o))
	}
	for _, o := range had {
		if !left[o.GetID()] {
			p.changes = append(p.changes, k.change(holdfast.StackChange_REMOVED, o))
		}
	}
}
