package objectapi

import (
	"context"
	"errors"
	"slices"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/kinds"
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
	k, err := kinds.Of("kind", r.Kind)
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
	p, err := k.List(tx, &r.Selector, after, limit)
	if err != nil {
		return nil, err
	}
	cut(&p, s.pageBytes)
	resp := &holdfast.ListResponse{
		Objects: make([]*holdfast.Object, len(p.Objects)), Revision: tx.Revision(), Remaining: p.Remaining,
	}
	for i, o := range p.Objects {
		resp.Objects[i] = objects.Wrap(o)
	}
	if n := len(p.Objects); p.Remaining > 0 {
		resp.Continue = objects.Token{Revision: tx.Revision(), After: p.Objects[n-1].GetID()}.Encode()
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
func cut(p *kinds.Page, maxBytes int) {
	bytes := 0
	for i, o := range p.Objects {
		o = objects.Redact(o)
		if bytes += o.Size(); bytes > maxBytes && i > 0 {
			p.Remaining += uint64(len(p.Objects) - i)
			p.Objects = slices.Clip(p.Objects[:i])
			return
		}
		p.Objects[i] = o
	}
}
