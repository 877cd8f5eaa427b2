package watchapi

import (
	"cmp"
	"slices"

	"holdfast/api/holdfast"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// group is the watchers of a stream that are at the same position, arranged so that a change
// finds those that it may concern: by kind, and by the value that they ask for if they ask for
// exact ones.
type group struct {
	members  int
	tables   map[holdfast.Kind]*members
	changes  uint64 // that were looked at
	interest store.Interest
}

// maxValues is how many exact values of a kind a stream waits for, each by itself. With more
// it waits for the whole kind.
const maxValues = 16

// members are the watchers of one kind.
type members struct {
	any   []member                       // to be tested one by one
	exact map[string]map[string][]member // by index and value
}

type member struct {
	w *watcher
	t table
}

func (g *group) add(w *watcher) {
	g.members++
	for _, t := range w.tables {
		if g.tables == nil {
			g.tables = map[holdfast.Kind]*members{}
		}
		kind := t.kind.Kind()
		if g.tables[kind] == nil {
			g.tables[kind] = &members{}
		}
		g.tables[kind].add(member{w, t})
	}
	g.setInterest()
}

// setInterest sets what is to wake the stream.
func (g *group) setInterest() {
	g.interest = store.Interest{}
	for kind, m := range g.tables {
		values := m.values(kind)
		if len(m.any) > 0 || len(values) > maxValues {
			g.interest.Kinds |= store.Kinds(kind)
			continue
		}
		g.interest.Values = append(g.interest.Values, values...)
	}
}

// values returns the exact values that are asked for, up to one more than matters.
func (m *members) values(kind holdfast.Kind) (all []store.Value) {
	for index, byValue := range m.exact {
		for value := range byValue {
			if all = append(all, store.Value{Kind: kind, Index: index, Value: value}); len(all) > maxValues {
				return all
			}
		}
	}
	return all
}

func (m *members) add(one member) {
	index := one.t.matcher.Index
	if index == "" {
		m.any = append(m.any, one)
		return
	}
	if m.exact == nil {
		m.exact = map[string]map[string][]member{}
	}
	if m.exact[index] == nil {
		m.exact[index] = map[string][]member{}
	}
	for _, value := range one.t.matcher.Values {
		m.exact[index][value] = append(m.exact[index][value], one)
	}
}

func (g *group) remove(w *watcher) {
	g.members--
	for _, t := range w.tables {
		m := g.tables[t.kind.Kind()]
		if m.remove(member{w, t}); len(m.any) == 0 && len(m.exact) == 0 {
			delete(g.tables, t.kind.Kind())
		}
	}
	g.setInterest()
}

func (m *members) remove(one member) {
	without := func(all []member) []member {
		return slices.DeleteFunc(all, func(o member) bool { return o.w == one.w })
	}
	index := one.t.matcher.Index
	if index == "" {
		m.any = without(m.any)
		return
	}
	for _, value := range one.t.matcher.Values {
		if left := without(m.exact[index][value]); len(left) > 0 {
			m.exact[index][value] = left
		} else {
			delete(m.exact[index], value)
		}
	}
	if len(m.exact[index]) == 0 {
		delete(m.exact, index)
	}
}

// read shows a revision to those whose kinds it changed, and returns those that have events of
// it now, in the order of their IDs.
func (g *group) read(e store.Entry) []*watcher {
	var touched []*watcher
	for _, c := range e.Changes() {
		g.changes++
		m := g.tables[c.Kind]
		if m == nil {
			continue
		}
		m.each(c, func(one member) {
			if one.w.change == g.changes || e.Revision() <= one.w.at {
				return
			}
			one.w.change = g.changes
			had := len(one.w.events)
			if one.w.see(c, one.t); had == 0 && len(one.w.events) > 0 {
				touched = append(touched, one.w)
			}
		})
	}
	slices.SortFunc(touched, func(a, b *watcher) int { return cmp.Compare(a.id, b.id) })
	return touched
}

// each calls see with the members that a change may concern; with some of them twice.
func (m *members) each(c state.Change, see func(member)) {
	for _, one := range m.any {
		see(one)
	}
	for index, byValue := range m.exact {
		for _, o := range [...]state.Object{c.Old, c.New} {
			if o == nil {
				continue
			}
			var values []string
			for _, members := range byValue {
				values = members[0].t.kind.Values(index, o)
				break
			}
			for _, value := range values {
				for _, one := range byValue[value] {
					see(one)
				}
			}
		}
	}
}
