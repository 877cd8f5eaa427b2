package stackapi

import (
	"maps"
	"slices"

	"holdfast/manager/state/store"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
)

// holdings is what there is of a stack's releases where they are in an archive.
type holdings struct {
	tx    store.ReadTx  // a state of the store, not older than heads
	heads []driver.Head // in the archive
	kept  []*record     // in the store

	merged []*record
}

// all returns the records, the oldest first. Of what both have, the store is right.
func (h *holdings) all() []*record {
	if h.merged != nil {
		return h.merged
	}
	h.merged = slices.Clone(h.kept)
	removed := h.removed()
	for _, head := range h.heads {
		if removed || h.keeps(head.Key) {
			continue
		}
		if head.Status == driver.StatusDeployed {
			head.Status = driver.StatusSuperseded
		}
		r := &record{Head: head}
		r.revision = r.count(labelRevision)
		h.merged = append(h.merged, r)
	}
	slices.SortFunc(h.merged, (*record).compare)
	return h.merged
}

// keeps tells whether the store has the record.
func (h *holdings) keeps(key driver.Key) bool {
	return slices.ContainsFunc(h.kept, func(r *record) bool { return r.Key == key })
}

// head returns what the archive has of a record.
func (h *holdings) head(key driver.Key) (driver.Head, bool) {
	at := slices.IndexFunc(h.heads, func(h driver.Head) bool { return h.Key == key })
	if at < 0 {
		return driver.Head{}, false
	}
	return h.heads[at], true
}

// removed tells whether the stack was removed with its history, and the archive has not followed:
// a removal begins with a record that is uninstalling, and takes it out of the store.
func (h *holdings) removed() bool {
	return slices.ContainsFunc(h.heads, func(head driver.Head) bool {
		return head.Status == driver.StatusUninstalling && !h.keeps(head.Key)
	})
}

// steps are what is to be done for the archive to say what the store says, in their order: no two
// records are deployed at once.
func (h *holdings) steps() []step {
	var first, last []step
	removed := h.removed()
	for _, head := range h.heads {
		if h.keeps(head.Key) {
			continue
		}
		s := step{version: head.Version, head: head, remove: removed}
		switch {
		case removed:
		case head.Status == driver.StatusDeployed:
			s.head.Status = driver.StatusSuperseded
		case head.Status.Pending():
			s.head.Status = driver.StatusFailed
		default:
			continue
		}
		first = append(first, s)
	}
	for _, r := range h.kept {
		if r.damaged != nil {
			continue
		}
		s := step{head: r.Head, from: r}
		s.head.Labels = r.portable()
		if have, ok := h.head(r.Key); ok {
			s.version = have.Version
			if have.Digest == r.Digest {
				if have.Status == r.Status && maps.Equal(have.Labels, s.head.Labels) {
					continue
				}
				s.from = nil
			}
		}
		if r.Status == driver.StatusDeployed {
			last = append(last, s)
			continue
		}
		first = append(first, s)
	}
	return append(first, last...)
}

// allHoldings sorts what the archive has by stacks, and adds what the store has.
func allHoldings(tx store.ReadTx, archived []driver.Head) (map[string]*holdings, error) {
	all := map[string]*holdings{}
	of := func(stack string) *holdings {
		if all[stack] == nil {
			all[stack] = &holdings{tx: tx}
		}
		return all[stack]
	}
	for _, head := range archived {
		h := of(head.Key.Name)
		h.heads = append(h.heads, head)
	}
	found, err := heads(tx, store.ByNamePrefix(object.Heads))
	if err != nil {
		return nil, err
	}
	for o, key := range found {
		h := of(key.Name)
		h.kept = append(h.kept, readRecord(o, key))
	}
	for _, h := range all {
		slices.SortFunc(h.kept, (*record).compare)
	}
	return all, nil
}

// pending is the step that tells the archive of a record before it is deployed. Without an archive
// there is none.
func (rs records) pending(r driver.Record, back bool) *step {
	if !rs.archived() {
		return nil
	}
	s := step{head: r.Head, body: r.Body}
	switch {
	case back:
		s.head.Status = driver.StatusPendingRollback
	case deployedOf(rs.all) == nil:
		s.head.Status = driver.StatusPendingInstall
	default:
		s.head.Status = driver.StatusPendingUpgrade
	}
	return &s
}

// uninstalling is the step that tells the archive of a removal before it is done, of a record that
// leaves the store with it: without that, what the store has no more would be superseded. There is
// none if the store has no record.
func (h *holdings) uninstalling() *step {
	if h == nil {
		return nil
	}
	for _, r := range h.kept {
		head, ok := h.head(r.Key)
		if !ok || r.damaged != nil {
			continue
		}
		s := step{version: head.Version, head: head}
		s.head.Status = driver.StatusUninstalling
		return &s
	}
	return nil
}
