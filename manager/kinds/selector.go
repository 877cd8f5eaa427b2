package kinds

import (
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// by turns the fields of a selector, but for its labels, into a selector of the store.
func (t table[T]) by(s *holdfast.Selector) (store.By, error) {
	var all []store.By
	for _, f := range fieldsOf(s) {
		if len(f.by) == 0 {
			continue
		}
		either := store.Or(f.by...)
		if len(f.by) == 1 {
			either = f.by[0]
		}
		if t.Check(either) != nil {
			return store.By{}, errkind.Field("selector."+f.name, "%ss do not have this field", t.Noun())
		}
		all = append(all, either)
	}
	if stack := s.Labels[store.StackLabel]; stack != "" {
		// This label has an index, for the kinds that stacks are made of.
		if by := store.ByStack(stack); t.Check(by) == nil {
			all = append(all, by)
		}
	}
	switch len(all) {
	case 0:
		return store.All(), nil
	case 1:
		return all[0], nil
	}
	return store.And(all...), nil
}

// selectorField is a field of a selector: what is selected by any of its values.
type selectorField struct {
	name string
	by   []store.By
}

// fieldsOf gives the fields of a selector, those that usually select least first.
func fieldsOf(s *holdfast.Selector) []selectorField {
	return []selectorField{
		{"ids", each(s.IDs, store.ByID)},
		{"names", each(s.Names, store.ByName)},
		{"service_ids", each(s.ServiceIDs, store.ByServiceID)},
		{"secret_ids", each(s.SecretIDs, store.BySecretID)},
		{"config_ids", each(s.ConfigIDs, store.ByConfigID)},
		{"network_ids", each(s.NetworkIDs, store.ByNetworkID)},
		{"node_ids", each(s.NodeIDs, store.ByNodeID)},
		{"id_prefixes", each(s.IDPrefixes, store.ByIDPrefix)},
		{"name_prefixes", each(s.NamePrefixes, store.ByNamePrefix)},
		{"states", each(s.States, store.ByTaskState)},
		{"desired_states", each(s.DesiredStates, store.ByDesiredState)},
		{"roles", each(s.Roles, store.ByRole)},
		{"memberships", each(s.Memberships, store.ByMembership)},
	}
}

func each[V any](values []V, by func(V) store.By) []store.By {
	all := make([]store.By, len(values))
	for i, v := range values {
		all[i] = by(v)
	}
	return all
}

// keep returns what tests the labels and the text of a selector; nil keeps all.
func (t table[T]) keep(s *holdfast.Selector) (func(T) bool, error) {
	keep, err := t.where(s.Where)
	if err != nil || len(s.Labels) == 0 {
		return keep, err
	}
	return func(o T) bool { return hasLabels(o, s.Labels) && (keep == nil || keep(o)) }, nil
}
