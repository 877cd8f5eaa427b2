package objects

import (
	"cmp"
	"slices"

	"holdfast/manager/state/store"
)

// List returns the objects that a selector selects and keep keeps, in the order of their IDs
// and after the ID after. It returns limit of them at most, 0 being no limit, the ID that the
// next page begins after, which is empty if this was the last page, and how many follow. A
// nil keep keeps all.
//
// Objects that come in order, as those of All do, are not sorted, and no more than two pages
// are held.
func List[T Object[T]](
	tx store.ReadTx, t *store.Table[T], by store.By, keep func(T) bool, after string, limit int,
) (page []T, next string, remaining uint64, err error) {
	found, err := t.Find(tx, by)
	if err != nil {
		return nil, "", 0, err
	}
	var total uint64
	most := "" // highest ID among the first limit objects of page
	for o := range found {
		id := o.GetID()
		if id <= after || keep != nil && !keep(o) {
			continue
		}
		total++
		if limit > 0 && len(page) >= limit {
			if id > most {
				continue
			}
			if len(page) == 2*limit {
				sortByID(page)
				page = page[:limit]
				most = page[limit-1].GetID()
			}
		} else {
			most = max(most, id)
		}
		page = append(page, o)
	}
	sortByID(page)
	if limit > 0 && len(page) > limit {
		page = page[:limit]
	}
	remaining = total - uint64(len(page))
	if remaining > 0 {
		next = page[len(page)-1].GetID()
	}
	return page, next, remaining, nil
}

func sortByID[T Object[T]](objects []T) {
	byID := func(a, b T) int { return cmp.Compare(a.GetID(), b.GetID()) }
	if !slices.IsSortedFunc(objects, byID) {
		slices.SortFunc(objects, byID)
	}
}
