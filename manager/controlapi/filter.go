package controlapi

import (
	"fmt"

	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// filter is what a list request keeps: what every one of its parts does.
type filter[T any] struct {
	selectors []store.By
	tests     []func(store.ReadTx, T) bool
	view      func(T) T // what a client sees of an object; nil: all of it
	err       error     // a value that is wrong
}

// commonFilters are the filters that every kind has.
type commonFilters interface {
	GetNames() []string
	GetIDPrefixes() []string
	GetNamePrefixes() []string
	GetLabels() map[string]string
}

// newFilter makes a filter from the common ones. labels gives the labels of an object that
// they look at; of several sets, one must have them all.
func newFilter[T any](c commonFilters, labels ...func(T) map[string]string) *filter[T] {
	f := &filter[T]{}
	f.any(c.GetIDPrefixes(), store.ByIDPrefix)
	f.any(c.GetNames(), store.ByName)
	f.any(c.GetNamePrefixes(), store.ByNamePrefix)
	f.labels(c.GetLabels(), labels...)
	return f
}

// any keeps what one of the values selects; no values keep everything.
func (f *filter[T]) any(values []string, by func(string) store.By) {
	if len(values) > 0 {
		f.selectors = append(f.selectors, anyOf(values, by))
	}
}

func anyOf[V any](values []V, by func(V) store.By) store.By {
	of := make([]store.By, len(values))
	for i, v := range values {
		of[i] = by(v)
	}
	return store.Or(of...)
}

// anyEnum is any for the values of an enum, which must be ones that it has.
func anyEnum[T any, E ~int32](f *filter[T], field string, values []E, names map[int32]string, by func(E) store.By) {
	for i, v := range values {
		if _, ok := names[int32(v)]; !ok && f.err == nil {
			f.err = errkind.Field(fmt.Sprintf("filters.%s[%d]", field, i), "has the unknown value %d", v)
		}
	}
	if len(values) > 0 {
		f.selectors = append(f.selectors, anyOf(values, by))
	}
}

// labels keeps objects that have all the labels. An empty value asks only that the label is
// there.
func (f *filter[T]) labels(want map[string]string, of ...func(T) map[string]string) {
	if len(want) == 0 {
		return
	}
	f.test(func(_ store.ReadTx, o T) bool {
		for _, labels := range of {
			if hasLabels(labels(o), want) {
				return true
			}
		}
		return false
	})
}

func hasLabels(have, want map[string]string) bool {
	for key, value := range want {
		if v, ok := have[key]; !ok || value != "" && v != value {
			return false
		}
	}
	return true
}

// test keeps objects that pass a test.
func (f *filter[T]) test(t func(store.ReadTx, T) bool) { f.tests = append(f.tests, t) }

// by gives the part of the filter that the store does.
func (f *filter[T]) by() store.By {
	if len(f.selectors) == 0 {
		return store.All()
	}
	return store.And(f.selectors...)
}

// keep gives the rest of the filter, or nil if there is none.
func (f *filter[T]) keep(tx store.ReadTx) func(T) bool {
	if len(f.tests) == 0 {
		return nil
	}
	return func(o T) bool {
		for _, t := range f.tests {
			if !t(tx, o) {
				return false
			}
		}
		return true
	}
}

// show returns objects as a client may see them.
func (f *filter[T]) show(found []T) []T {
	if f.view == nil {
		return found
	}
	shown := make([]T, len(found))
	for i, o := range found {
		shown[i] = f.view(o)
	}
	return shown
}
