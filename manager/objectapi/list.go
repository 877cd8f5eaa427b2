package objectapi

import (
	"context"
	"errors"
	"slices"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// Bounds of a page. An object has at most 1 MiB, so a page never comes near the 64 MiB that a
// reply may have.
const (
	maxPage      = 10_000
	maxPageBytes = 32 << 20
)

// List returns a page of the objects of one kind that a selector selects, in the order of
// their IDs. All pages of a list show the revision of the first one.
func (s *Server) List(ctx context.Context, r *holdfast.ListRequest) (*holdfast.ListResponse, error) {
	k, err := kindOf("kind", r.Kind)
	if err != nil {
		return nil, err
	}
	tx, after, err := s.begin(ctx, r.Continue)
	if err != nil {
		return nil, err
	}
	limit := maxPage
	if r.Limit > 0 && r.Limit < maxPage {
		limit = int(r.Limit)
	}
	p, err := k.list(tx, &r.Selector, after, limit)
	if err != nil {
		return nil, err
	}
	p.cut(s.pageBytes)
	resp := &holdfast.ListResponse{
		Objects: make([]*holdfast.Object, len(p.objects)), Revision: tx.Revision(), Remaining: p.remaining,
	}
	for i, o := range p.objects {
		resp.Objects[i] = objects.Wrap(o)
	}
	if n := len(p.objects); p.remaining > 0 {
		resp.Continue = objects.Token{Revision: tx.Revision(), After: p.objects[n-1].GetID()}.Encode()
	}
	return resp, nil
}

// begin returns what a page shows, and the ID that it begins after. A page that goes on where
// another ended shows the revision of that one, which another manager may have served: if it
// is not applied here yet, a fresh read waits for it.
func (s *Server) begin(ctx context.Context, continued string) (store.ReadTx, string, error) {
	if continued == "" {
		tx, err := s.reader.Read(ctx)
		return tx, "", err
	}
	token, err := objects.DecodeToken(continued)
	if err != nil {
		return nil, "", err
	}
	tx, err := s.store.At(token.Revision)
	if e, ok := errors.AsType[*errkind.Error](err); ok && e.Kind == errkind.OutOfRange && e.Now < token.Revision {
		if _, err := s.reader.Read(ctx); err != nil {
			return nil, "", err
		}
		tx, err = s.store.At(token.Revision)
	}
	return tx, token.After, err
}

// cut makes the objects fit to be sent, and leaves out those over the bound, but for the
// first.
func (p *page) cut(maxBytes int) {
	bytes := 0
	for i, o := range p.objects {
		o = objects.Redact(o)
		if bytes += o.Size(); bytes > maxBytes && i > 0 {
			p.remaining += uint64(len(p.objects) - i)
			p.objects = slices.Clip(p.objects[:i])
			return
		}
		p.objects[i] = o
	}
}

// by turns the fields of a selector, but for its labels, into a selector of the store.
func (t table[T]) by(tx store.ReadTx, s *holdfast.Selector) (store.By, error) {
	var all []store.By
	for _, f := range fieldsOf(s) {
		if len(f.by) == 0 {
			continue
		}
		either := store.Or(f.by...)
		if len(f.by) == 1 {
			either = f.by[0]
		}
		// Find does not look anything up yet; it tells whether the table has the index.
		if _, err := t.Find(tx, either); err != nil {
			if !errkind.Is(err, errkind.Invalid) {
				return store.By{}, err
			}
			return store.By{}, errkind.Field("selector."+f.name, "%ss do not have this field", t.Noun())
		}
		all = append(all, either)
	}
	if stack := s.Labels[store.StackLabel]; stack != "" {
		// This label has an index, for the kinds that stacks are made of.
		if _, err := t.Find(tx, store.ByStack(stack)); err == nil {
			all = append(all, store.ByStack(stack))
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
