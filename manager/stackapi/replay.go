package stackapi

import (
	"context"
	"slices"

	"holdfast/api/holdfast"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// replay tells what a transaction did to a stack that was committed before, and the release that
// was deployed then. Where the history of it is compacted, it tells what can still be known: of
// an object that was removed then, the ID alone; later, only of those objects that are still
// there.
func (s *Server) replay(
	ctx context.Context, stack string, result store.Result,
) (changes []*holdfast.StackChange, release uint64) {
	p := past{stack: stack, revision: result.Revision, changed: map[string]bool{}, named: map[string]bool{}}
	after, err := s.store.At(result.Revision)
	if err != nil {
		if after, err = objects.PastTx(s.store, result.Revision); err != nil {
			return nil, 0
		}
		p.late = true
	}
	archived := s.archivedReleases(ctx, stack)
	own, release, told := p.releases(after, archived, result.IDs)
	for _, id := range own {
		p.changed[id] = true
	}
	before, err := s.store.At(result.Revision - 1)
	if err != nil {
		before = nil
	} else {
		p.namedBefore(before, archived)
	}
	compare(&p, services(), before, after)
	compare(&p, networks(), before, after)
	compare(&p, secrets(), before, after)
	compare(&p, configs(), before, after)
	if before != nil || p.late || !told {
		return p.changes, release
	}
	for _, id := range own {
		if p.changed[id] { // it was not found after the transaction
			p.changes = append(p.changes, &holdfast.StackChange{Action: holdfast.StackChange_REMOVED, ID: id})
		}
	}
	return p.changes, release
}

// archivedReleases returns the records that are only in the archive and whose revision is known.
// If the archive cannot be read, less can be told.
func (s *Server) archivedReleases(ctx context.Context, stack string) []*record {
	if s.archive == nil {
		return nil
	}
	h, err := s.archive.newest(ctx, stack)
	if err != nil {
		s.archive.logger.Warn("a repeated call is answered without the archive of releases", "stack", stack, "err", err)
		return nil
	}
	return slices.DeleteFunc(slices.Clone(h.all()), func(r *record) bool { return r.stored() || r.revision == 0 })
}

// past is what a transaction did.
type past struct {
	stack    string
	revision uint64
	changed  map[string]bool // IDs that it changed, but for those that were found
	named    map[string]bool // IDs of secrets and configs that its release names
	old      map[string]bool // IDs that releases before it named; nil if they are not known
	late     bool            // the state after it is compacted; a later one stands for it
	changes  []*holdfast.StackChange
}

// releases reads what the releases tell of the transaction: which was deployed, and which of
// the objects that it changed are the stack's own. Those of releases come after them, and begin
// with the head of a record; told is false if it did not change one that is still there.
func (p *past) releases(after store.ReadTx, archived []*record, ids []string) (own []string, release uint64, told bool) {
	all, err := readRecords(after, p.stack)
	if err != nil { // the table has the index
		return ids, 0, false
	}
	all = append(archived, all...)
	slices.SortStableFunc(all, (*record).compare)
	own = ids
	var last *record
	for _, r := range all {
		if r.revision > p.revision {
			continue
		}
		last, release = r, r.number()
		if !r.stored() {
			told = told || r.revision == p.revision
			continue
		}
		if i := slices.Index(own, r.object.ID); i >= 0 {
			own, told = own[:i], true
		}
	}
	if last != nil && (last.revision == p.revision || !told) { // else it was a removal
		last.addObjects(p.named)
	}
	return own, release, told
}

// namedBefore reads what the releases named that were there before the transaction.
func (p *past) namedBefore(before store.ReadTx, archived []*record) {
	all, err := readRecords(before, p.stack)
	if err != nil { // the table has the index
		return
	}
	p.old = map[string]bool{}
	for _, r := range append(all, archived...) {
		if r.revision < p.revision {
			r.addObjects(p.old)
		}
	}
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
			if k.contents != nil && !p.named[o.GetID()] {
				continue // it is there for the releases of before
			}
			if _, ours := k.labels(o)[nameLabel]; k.contents != nil && ours && p.old != nil && !p.old[o.GetID()] {
				action = holdfast.StackChange_CREATED // it was staged for this one
			}
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
