package objects

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// Order is the order of a list. What is equal in it comes in the order of IDs. The zero Order is
// that of IDs.
type Order struct {
	Sort       holdfast.Sort
	Descending bool
}

// byID tells whether it is the order in which a table is read.
func (o Order) byID() bool { return o.Sort == holdfast.Sort_SORT_ID && !o.Descending }

// check fails with errkind.Invalid if there is no such order.
func (o Order) check() error {
	if _, ok := holdfast.Sort_name[int32(o.Sort)]; !ok {
		return errkind.Field("sort", "%d is not an order", int32(o.Sort))
	}
	return nil
}

// placed is an object with its place in an order.
type placed[T Object[T]] struct {
	object T
	name   string
	number uint64
}

func place[T Object[T]](t *store.Table[T], o Order, object T) placed[T] {
	p := placed[T]{object: object}
	switch o.Sort {
	case holdfast.Sort_SORT_NAME:
		p.name = strings.ToLower(t.Name(object))
	case holdfast.Sort_SORT_CREATED:
		p.number = object.GetMeta().CreatedVersion.Index
	case holdfast.Sort_SORT_CHANGED:
		p.number = object.GetMeta().Version.Index
	}
	return p
}

// compare gives the order of two objects.
func (o Order) compare(nameA, nameB string, numberA, numberB uint64, idA, idB string) int {
	c := cmp.Or(cmp.Compare(nameA, nameB), cmp.Compare(numberA, numberB))
	ids := cmp.Compare(idA, idB)
	if o.Sort == holdfast.Sort_SORT_ID {
		c = ids
	}
	if o.Descending {
		c = -c
	}
	return cmp.Or(c, ids)
}

func compare[T Object[T]](o Order, a, b placed[T]) int {
	return o.compare(a.name, b.name, a.number, b.number, a.object.GetID(), b.object.GetID())
}

// Selection is what a list picks of a table, in one order.
type Selection[T Object[T]] struct {
	Tx    store.ReadTx
	Table *store.Table[T]
	By    store.By
	Keep  func(T) bool // nil keeps all
	Order Order
	After string // ID of the object that it begins after; empty: it begins with the first
}

// found gives what is selected, in the order of the index that it is found by.
func (s Selection[T]) found() (iter.Seq[placed[T]], error) {
	if err := s.Order.check(); err != nil {
		return nil, err
	}
	found, err := s.Table.Find(s.Tx, s.By)
	if err != nil {
		return nil, err
	}
	beyond := func(placed[T]) bool { return true }
	switch {
	case s.After == "":
	case s.Order.Sort == holdfast.Sort_SORT_ID:
		beyond = func(p placed[T]) bool {
			return p.object.GetID() > s.After != s.Order.Descending && p.object.GetID() != s.After
		}
	default:
		var zero T
		last := s.Table.Get(s.Tx, s.After)
		if last == zero {
			return nil, errkind.Field("continue", "goes on after %s %s, which is not in the list", s.Table.Noun(), s.After).
				WithHint("start the list again without it")
		}
		bound := place(s.Table, s.Order, last)
		beyond = func(p placed[T]) bool { return compare(s.Order, p, bound) > 0 }
	}
	return func(yield func(placed[T]) bool) {
		for o := range found {
			if s.Keep != nil && !s.Keep(o) {
				continue
			}
			if p := place(s.Table, s.Order, o); beyond(p) && !yield(p) {
				return
			}
		}
	}, nil
}

// Count returns how many objects are selected.
func (s Selection[T]) Count() (n uint64, err error) {
	found, err := s.found()
	if err != nil {
		return 0, err
	}
	for range found {
		n++
	}
	return n, nil
}

// Page returns the first limit objects, 0 being no limit, and how many follow. It holds no more
// than two pages.
func (s Selection[T]) Page(limit int) (page []T, remaining uint64, err error) {
	if s.Order.byID() {
		page, _, remaining, err = List(s.Tx, s.Table, s.By, s.Keep, s.After, limit)
		return page, remaining, err
	}
	found, err := s.found()
	if err != nil {
		return nil, 0, err
	}
	if limit <= 0 {
		limit = math.MaxInt / 2
	}
	byPlace := func(a, b placed[T]) int { return compare(s.Order, a, b) }
	var best []placed[T] // the first limit of them are the bound once it was sorted
	var total uint64
	bounded := false
	for p := range found {
		total++
		if bounded && byPlace(p, best[limit-1]) > 0 {
			continue
		}
		if best = append(best, p); len(best) == 2*limit {
			slices.SortFunc(best, byPlace)
			best, bounded = best[:limit], true
		}
	}
	slices.SortFunc(best, byPlace)
	page = make([]T, min(limit, len(best)))
	for i := range page {
		page[i] = best[i].object
	}
	return page, total - uint64(len(page)), nil
}

// All returns everything that is selected, in order, and how much it is. In the order of IDs it
// holds nothing of it, if all objects are selected; else it must hold a pointer to each.
func (s Selection[T]) All() (all iter.Seq[T], total uint64, err error) {
	found, err := s.found()
	if err != nil {
		return nil, 0, err
	}
	if s.Order.byID() && s.By.All() {
		for range found {
			total++
		}
		return func(yield func(T) bool) {
			for p := range found {
				if !yield(p.object) {
					return
				}
			}
		}, total, nil
	}
	sorted := slices.SortedFunc(found, func(a, b placed[T]) int { return compare(s.Order, a, b) })
	return func(yield func(T) bool) {
		for _, p := range sorted {
			if !yield(p.object) {
				return
			}
		}
	}, uint64(len(sorted)), nil
}
