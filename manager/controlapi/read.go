package controlapi

import (
	"context"
	"errors"
	"fmt"

	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// maxReplyBytes is the most that a list may hold: what a client can receive in one message.
// The rest is left for what stands around the objects.
const maxReplyBytes = 64<<20 - 1<<10

// get returns the object with an ID.
func get[T objects.Object[T]](ctx context.Context, s *Server, t *store.Table[T], id string) (T, error) {
	var zero T
	if err := needID(t, id); err != nil {
		return zero, err
	}
	tx, err := s.reader.Read(ctx)
	if err != nil {
		return zero, err
	}
	return objects.Get(tx, t, id)
}

func needID[T objects.Object[T]](t *store.Table[T], id string) error {
	if id == "" {
		return errkind.Field(t.Noun()+"_id", "is empty")
	}
	return nil
}

// paging is the part of a list request that says which page it wants.
type paging interface {
	GetLimit() uint32
	GetContinue() string
}

// page is the part of a list reply that does not depend on the kind.
type page[T any] struct {
	objects   []T
	next      string // token for the next page, empty if this is the last
	remaining uint64
}

// list returns one page of the objects that a filter keeps. All pages of a list show the
// revision of the first one.
func list[T objects.Object[T]](
	ctx context.Context, s *Server, t *store.Table[T], req paging, f *filter[T],
) (page[T], error) {
	if f.err != nil {
		return page[T]{}, f.err
	}
	tx, after, err := s.open(ctx, req.GetContinue())
	if err != nil {
		return page[T]{}, err
	}
	found, last, remaining, err := objects.List(tx, t, f.by(), f.keep(tx), after, int(req.GetLimit()))
	if err != nil {
		return page[T]{}, err
	}
	found = f.show(found)
	if err := checkReply(t.Noun(), found); err != nil {
		return page[T]{}, err
	}
	p := page[T]{objects: found, remaining: remaining}
	if last != "" {
		p.next = objects.Token{Revision: tx.Revision(), After: last}.Encode()
	}
	return p, nil
}

// open returns the state that a page shows, and the ID that it begins after.
func (s *Server) open(ctx context.Context, continued string) (store.ReadTx, string, error) {
	if continued == "" {
		tx, err := s.reader.Read(ctx)
		return tx, "", err
	}
	token, err := objects.DecodeToken(continued)
	if err != nil {
		return nil, "", err
	}
	tx, err := s.store.At(token.Revision)
	if isFuture(err, token.Revision) {
		// The first page came from a manager that is ahead of this one. A read that is as
		// fresh as can be waits until this one has caught up.
		if _, err := s.reader.Read(ctx); err != nil {
			return nil, "", err
		}
		tx, err = s.store.At(token.Revision)
	}
	return tx, token.After, err
}

func isFuture(err error, revision uint64) bool {
	e, ok := errors.AsType[*errkind.Error](err)
	return ok && e.Kind == errkind.OutOfRange && e.Now < revision
}

// checkReply refuses a page that no client could receive.
func checkReply[T objects.Object[T]](noun string, found []T) error {
	if len(found) <= maxReplyBytes/store.MaxObjectBytes {
		return nil
	}
	bytes := 0
	for i, o := range found {
		if bytes += o.Size(); bytes > maxReplyBytes {
			return &errkind.Error{
				Kind: errkind.Limit, Field: "limit", Max: "64 MiB",
				Msg:  fmt.Sprintf("the reply would hold %d %ss and be larger than 64 MiB", len(found), noun),
				Hint: fmt.Sprintf("set limit to %d or less and read in pages", max(i/2, 1)),
			}
		}
	}
	return nil
}
