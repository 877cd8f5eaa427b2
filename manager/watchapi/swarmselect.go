package watchapi

import (
	"fmt"
	"strings"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/kinds"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// swarmEntry is one entry of SwarmKit's WatchRequest.
type swarmEntry struct {
	kind    kinds.Kind
	action  api.WatchActionKind
	filters []func(state.Object) bool
	exact   []store.Value // one of which an object must have; none: any object may do
}

func newSwarmEntries(from []*api.WatchRequest_WatchEntry) ([]swarmEntry, error) {
	if len(from) == 0 {
		return nil, errkind.Field("entries", "is empty").WithHint("say which kinds of object to watch")
	}
	entries := make([]swarmEntry, len(from))
	for i, e := range from {
		path := fmt.Sprintf("entries[%d]", i)
		kind, err := kindOfName(path+".kind", e.GetKind())
		if err != nil {
			return nil, err
		}
		const all = api.WatchActionKind_WATCH_ACTION_CREATE | api.WatchActionKind_WATCH_ACTION_UPDATE |
			api.WatchActionKind_WATCH_ACTION_REMOVE
		if e.Action == 0 || e.Action&^all != 0 {
			return nil, errkind.Field(path+".action", "%d is no sum of create (1), update (2) and remove (4)", e.Action)
		}
		entries[i] = swarmEntry{kind: kind, action: e.Action}
		for n, f := range e.Filters {
			picks, by, err := newSwarmFilter(fmt.Sprintf("%s.filters[%d]", path, n), kind, f)
			if err != nil {
				return nil, err
			}
			entries[i].filters = append(entries[i].filters, picks)
			if index, values, ok := by.Exact(); ok {
				entries[i].exact = []store.Value{{Kind: kind.Kind(), Index: index, Value: values[0]}}
			}
		}
	}
	return entries, nil
}

func kindOfName(path, name string) (kinds.Kind, error) {
	for _, k := range kinds.All() {
		if k.Noun() == name {
			return k, nil
		}
	}
	return nil, errkind.Field(path, "%q is no kind of object", name).WithHint("kinds are in lower case: service")
}

// picks tells whether the entry asks for a change.
func (e swarmEntry) picks(c state.Change, action api.WatchActionKind) bool {
	if c.Kind != e.kind.Kind() || e.action&action == 0 {
		return false
	}
	for _, f := range e.filters {
		if !f(c.Object()) {
			return false
		}
	}
	return true
}

// newSwarmFilter compiles a filter, and gives the store's selector for it if there is one. It
// fails with errkind.Invalid if the kind cannot be picked by it.
func newSwarmFilter(path string, k kinds.Kind, s *api.SelectBy) (_ func(state.Object) bool, by store.By, _ error) {
	switch f := s.GetBy().(type) {
	case *api.SelectBy_ID:
		by = store.ByID(f.ID)
	case *api.SelectBy_IDPrefix:
		by = store.ByIDPrefix(f.IDPrefix)
	case *api.SelectBy_Name:
		by = store.ByName(f.Name)
	case *api.SelectBy_NamePrefix:
		by = store.ByNamePrefix(f.NamePrefix)
	case *api.SelectBy_ServiceID:
		by = store.ByServiceID(f.ServiceID)
	case *api.SelectBy_NodeID:
		by = store.ByNodeID(f.NodeID)
	case *api.SelectBy_Slot:
		by = store.BySlot(f.Slot.GetServiceID(), f.Slot.GetSlot())
	case *api.SelectBy_DesiredState:
		by = store.ByDesiredState(f.DesiredState)
	case *api.SelectBy_Role:
		by = store.ByRole(f.Role)
	case *api.SelectBy_Membership:
		by = store.ByMembership(f.Membership)
	case *api.SelectBy_ReferencedNetworkID:
		by = store.ByNetworkID(f.ReferencedNetworkID)
	case *api.SelectBy_ReferencedSecretID:
		by = store.BySecretID(f.ReferencedSecretID)
	case *api.SelectBy_ReferencedConfigID:
		by = store.ByConfigID(f.ReferencedConfigID)
	case *api.SelectBy_Custom:
		picks, err := byCustom(path+".custom", k, f.Custom, func(have, want string) bool { return have == want })
		return picks, by, err
	case *api.SelectBy_CustomPrefix:
		picks, err := byCustom(path+".custom_prefix", k, f.CustomPrefix, strings.HasPrefix)
		return picks, by, err
	case nil:
		return nil, by, errkind.Field(path, "is empty")
	default:
		return nil, by, errkind.Field(path, "%ss cannot be picked by this filter", k.Noun())
	}
	picks, err := k.Picks(by)
	if err != nil {
		return nil, by, errkind.Field(path, "%ss cannot be picked by this filter", k.Noun())
	}
	return picks, by, nil
}

// byCustom picks by an entry of the indices that an object's annotations have.
func byCustom(path string, k kinds.Kind, s *api.SelectByCustom, same func(have, want string) bool,
) (func(state.Object) bool, error) {
	if s.GetKind() != "" && s.GetKind() != k.Noun() {
		return nil, errkind.Field(path+".kind", "is %q, and the entry watches %ss", s.GetKind(), k.Noun())
	}
	if s.GetIndex() == "" {
		return nil, errkind.Field(path+".index", "is empty")
	}
	return func(o state.Object) bool {
		for _, a := range kinds.Annotations(o) {
			for _, i := range a.Indices {
				if i.Key == s.Index && same(i.Val, s.Value) {
					return true
				}
			}
		}
		return false
	}, nil
}
