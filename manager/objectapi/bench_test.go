package objectapi_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/encoding"

	"holdfast/api/holdfast"
	"holdfast/internal/codec"
	"holdfast/manager/objectapi"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// past is a store of services of about 490 encoded bytes, all of which were changed since the
// revision that it returns.
func past(b testing.TB, services int) (s *store.MemoryStore, ids []string, revision uint64) {
	b.Helper()
	loop := storetest.NewLeader(b, "m", store.Options{}).Auto(true)
	update := func(fn func(*store.Tx) error) {
		if _, err := loop.Store.Update(b.Context(), fn); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; i < services; i += 100 {
		update(func(tx *store.Tx) error {
			for n := range 100 {
				o := service(fmt.Sprintf("service-%07d", i+n), "pad="+strings.Repeat("x", 300))
				made, err := store.Services.Create(tx, o)
				if err != nil {
					return err
				}
				ids = append(ids, made.ID)
			}
			return nil
		})
	}
	revision = loop.Store.Root().Revision()
	for _, id := range ids {
		update(func(tx *store.Tx) error {
			o := store.Services.Get(tx, id).Copy()
			o.Spec.Task.GetContainer().Image = "busybox:2"
			_, err := store.Services.Update(tx, o)
			return err
		})
	}
	loop.Forget()
	return loop.Store, ids, revision
}

// Reads through the handlers, with the encoding of the reply: of the present revision, and of one
// since which every object was changed.
func BenchmarkPast(b *testing.B) {
	s, ids, revision := past(b, 10_000)
	described, encode := files(b), codec.New()
	for _, c := range []struct {
		name string
		at   uint64
	}{{"now", s.Root().Revision()}, {"100 back", s.Root().Revision() - 100}, {"10000 back", revision}} {
		server := objectapi.New(s, pinned{s, c.at}, described)
		b.Run("get "+c.name, func(b *testing.B) {
			for i := range b.N {
				resp, err := server.Get(b.Context(), &holdfast.GetRequest{Kind: holdfast.Kind_KIND_SERVICE, ID: ids[i*7919%len(ids)]})
				if err != nil {
					b.Fatal(err)
				}
				send(b, encode, resp)
			}
		})
		for _, by := range []holdfast.Sort{holdfast.Sort_SORT_ID, holdfast.Sort_SORT_NAME, holdfast.Sort_SORT_CHANGED} {
			b.Run(fmt.Sprintf("list 10000 %s %s", by, c.name), func(b *testing.B) {
				for range b.N {
					resp, err := server.List(b.Context(), &holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, Sort: by})
					if err != nil || len(resp.Objects) != 10_000 || resp.Revision != c.at {
						b.Fatal(len(resp.GetObjects()), err)
					}
					send(b, encode, resp)
				}
			})
		}
	}
}

// send encodes a reply as it is sent, and gives the memory back as gRPC does.
func send(b *testing.B, c encoding.CodecV2, reply any) {
	b.Helper()
	data, err := c.Marshal(reply)
	if err != nil || data.Len() == 0 {
		b.Fatal(data.Len(), err)
	}
	data.Free()
}

// History and Diff of a store of 100,000 services: what they cost depends on the versions, and on
// the changes between.
func BenchmarkHistory(b *testing.B) {
	s, ids, revision := past(b, 100_000)
	server := objectapi.New(s, reader{s}, files(b))
	for range 1000 {
		if _, err := s.Update(b.Context(), func(tx *store.Tx) error {
			o := store.Services.Get(tx, ids[0]).Copy()
			o.PendingDelete = !o.PendingDelete
			_, err := store.Services.Update(tx, o)
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
	for name, r := range map[string]*holdfast.HistoryRequest{
		"one version":           {ID: ids[1]},
		"one version by name":   {Name: "service-0000001"},
		"1000 versions":         {ID: ids[0]},
		"1000 versions, a page": {ID: ids[0], Limit: 10, NewestFirst: true},
		"1000 versions, fields": {ID: ids[0], Fields: true},
	} {
		r.Kind = holdfast.Kind_KIND_SERVICE
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if resp, err := server.History(b.Context(), r); err != nil || len(resp.Versions) == 0 {
					b.Fatal(resp, err)
				}
			}
		})
	}
	for name, r := range map[string]*holdfast.DiffRequest{
		"diff of 1 change":       {From: revision + 50, To: revision + 51},
		"diff of 1000 changes":   {From: revision + 50, To: revision + 1050},
		"diff of 100000 changes": {From: revision},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if resp, err := server.Diff(b.Context(), r); err != nil || len(resp.Objects) == 0 {
					b.Fatal(resp, err)
				}
			}
		})
	}
}
