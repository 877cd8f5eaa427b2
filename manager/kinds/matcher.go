package kinds

import (
	"cmp"
	"iter"
	"slices"

	"holdfast/api/holdfast"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// Matcher tells whether a selector selects an object of a kind. The zero value selects all.
type Matcher struct {
	// If Index is not empty, an object that is selected has one of Values in it.
	Index  string
	Values []string
	by     store.By
	picks  func(state.Object) bool // nil: all
}

// Matches tells whether an object is selected. Nil is not.
func (m Matcher) Matches(o state.Object) bool { return o != nil && (m.picks == nil || m.picks(o)) }

// Matcher implements Kind.
func (t table[T]) Matcher(s *holdfast.Selector) (Matcher, error) {
	by, err := t.by(s)
	if err != nil {
		return Matcher{}, err
	}
	keep, err := t.keep(s)
	if err != nil {
		return Matcher{}, err
	}
	return t.matcher(by, keep), nil
}

func (t table[T]) matcher(by store.By, keep func(T) bool) Matcher {
	m := Matcher{by: by}
	if index, values, ok := by.Exact(); ok {
		m.Index, m.Values = index, values
	}
	if keep == nil && by.All() {
		return m
	}
	picked := t.Selected(by)
	m.picks = func(o state.Object) bool {
		typed, ok := o.(T)
		return ok && picked(typed) && (keep == nil || keep(typed))
	}
	return m
}

// Picks implements Kind.
func (t table[T]) Picks(by store.By) (func(state.Object) bool, error) {
	if err := t.Check(by); err != nil {
		return nil, err
	}
	return t.matcher(by, nil).Matches, nil
}

// After implements Kind. What has an index is found in it: it is little, as a rule.
func (t table[T]) After(tx store.ReadTx, m Matcher, id string) iter.Seq[state.Object] {
	seq := t.Table.After(tx, id)
	if m.Index != "" {
		seq = t.inOrder(tx, m.by, id)
	}
	return func(yield func(state.Object) bool) {
		for o := range seq {
			if m.Matches(o) && !yield(o) {
				return
			}
		}
	}
}

func (t table[T]) inOrder(tx store.ReadTx, by store.By, id string) iter.Seq[T] {
	return func(yield func(T) bool) {
		found, err := t.FindAll(tx, by)
		if err != nil { // cannot be: the matcher was made of it
			return
		}
		slices.SortFunc(found, func(a, b T) int { return cmp.Compare(a.GetID(), b.GetID()) })
		for _, o := range found {
			if o.GetID() > id && !yield(o) {
				return
			}
		}
	}
}

// Values implements Kind.
func (t table[T]) Values(index string, o state.Object) []string {
	if typed, ok := o.(T); ok {
		return t.Table.Values(index, typed)
	}
	return nil
}
