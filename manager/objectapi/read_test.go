package objectapi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

func getting(kind holdfast.Kind, id, name string) *holdfast.ReadOperation {
	return &holdfast.ReadOperation{Op: &holdfast.ReadOperation_Get{Get: &holdfast.GetRequest{Kind: kind, ID: id, Name: name}}}
}

func listing(r *holdfast.ListRequest) *holdfast.ReadOperation {
	return &holdfast.ReadOperation{Op: &holdfast.ReadOperation_List{List: r}}
}

func TestRead(t *testing.T) {
	f := newFixture(t)
	made := f.txn(create(service("web", "tier=front")), create(network("net")), create(secret("sec", "x"))).Objects
	f.crowd(20)
	operations := []*holdfast.ReadOperation{
		getting(holdfast.Kind_KIND_SERVICE, made[0].GetService().ID, ""),
		getting(holdfast.Kind_KIND_SERVICE, "", "WEB"),
		getting(holdfast.Kind_KIND_NETWORK, made[0].GetService().ID, ""), // of another kind
		getting(holdfast.Kind_KIND_SECRET, "", "nobody"),
		listing(&holdfast.ListRequest{Kind: holdfast.Kind_KIND_NETWORK}),
		listing(&holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, Limit: 3, Sort: holdfast.Sort_SORT_NAME, KeysOnly: true}),
		listing(&holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, CountOnly: true}),
		listing(&holdfast.ListRequest{Kind: holdfast.Kind_KIND_SECRET}),
	}
	resp, err := f.Read(t.Context(), &holdfast.ReadRequest{Operations: operations})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Revision != f.store.Root().Revision() || len(resp.Results) != len(operations) {
		t.Fatalf("revision %d, %d results", resp.Revision, len(resp.Results))
	}
	for i, operation := range operations {
		switch {
		case operation.GetList() != nil:
			want, err := f.List(t.Context(), operation.GetList())
			if err != nil || !resp.Results[i].GetList().Equal(want) {
				t.Errorf("%d: %v, want %v, %v", i, resp.Results[i], want, err)
			}
		default:
			want, err := f.Get(t.Context(), operation.GetGet())
			if errkind.Is(err, errkind.NotFound) {
				want, err = &holdfast.GetResponse{Revision: resp.Revision}, nil
			}
			if err != nil || !resp.Results[i].GetGet().Equal(want) {
				t.Errorf("%d: %v, want %v, %v", i, resp.Results[i], want, err)
			}
		}
	}
	if resp.Results[2].GetGet().GetObject() != nil || resp.Results[3].GetGet().GetObject() != nil {
		t.Error("what is not there was found")
	}
	// All of it is of the revision that the view shows, whatever comes later.
	f.txn(remove(holdfast.Kind_KIND_NETWORK, made[1].GetNetwork().ID), create(network("net")))
	then := f.at(resp.Revision)
	if again, err := then.Read(t.Context(), &holdfast.ReadRequest{Operations: operations}); err != nil || !again.Equal(resp) {
		t.Errorf("%v, %v", again, err)
	}
	// A list that is cut goes on as any other.
	token := resp.Results[5].GetList().Continue
	rest := f.pages(&holdfast.ListRequest{
		Kind: holdfast.Kind_KIND_SERVICE, Sort: holdfast.Sort_SORT_NAME, KeysOnly: true, Continue: token,
	}, 18, func() {})
	if len(rest) != 18 {
		t.Errorf("%d follow", len(rest))
	}
}

func TestReadFails(t *testing.T) {
	f := newFixture(t)
	if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
		for range 2 {
			if _, err := store.Nodes.Create(tx, &api.Node{Description: &api.NodeDescription{Hostname: "host"}}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ok := getting(holdfast.Kind_KIND_SERVICE, "x", "")
	many := func(n int) (all []*holdfast.ReadOperation) {
		for range n {
			all = append(all, ok)
		}
		return all
	}
	for _, c := range []struct {
		name        string
		operations  []*holdfast.ReadOperation
		kind        errkind.Kind
		field, text string
	}{
		{"none", nil, errkind.Invalid, "operations", "is empty"},
		{"too many", many(65), errkind.Limit, "operations", "64"},
		{"nil", []*holdfast.ReadOperation{ok, nil}, errkind.Invalid, "operations[1]", "is empty"},
		{"empty", []*holdfast.ReadOperation{{}}, errkind.Invalid, "operations[0]", "is empty"},
		{"nil get", []*holdfast.ReadOperation{{Op: &holdfast.ReadOperation_Get{}}}, errkind.Invalid, "operations[0].get.kind", "is empty"},
		{"nil list", []*holdfast.ReadOperation{{Op: &holdfast.ReadOperation_List{}}}, errkind.Invalid, "operations[0].list.kind", "is empty"},
		{"no ID", append(many(2), getting(holdfast.Kind_KIND_TASK, "", "")), errkind.Invalid, "operations[2].get.id", "is empty"},
		{"ID and name", []*holdfast.ReadOperation{getting(holdfast.Kind_KIND_TASK, "a", "b")}, errkind.Invalid, "operations[0].get.name", "id is too"},
		{"ambiguous", []*holdfast.ReadOperation{ok, getting(holdfast.Kind_KIND_NODE, "", "host")}, errkind.Invalid, "operations[1].get.name", "ambiguous"},
		{"unknown kind", []*holdfast.ReadOperation{listing(&holdfast.ListRequest{Kind: 77})}, errkind.Invalid, "operations[0].list.kind", "77"},
		{
			"a token",
			[]*holdfast.ReadOperation{ok, listing(&holdfast.ListRequest{Kind: holdfast.Kind_KIND_NODE, Continue: "x"})},
			errkind.Invalid, "operations[1].list.continue", "is given",
		},
		{
			"a selector that the kind lacks",
			[]*holdfast.ReadOperation{listing(&holdfast.ListRequest{Kind: holdfast.Kind_KIND_NODE, Selector: holdfast.Selector{ServiceIDs: []string{"x"}}})},
			errkind.Invalid, "operations[0].list.selector.service_ids", "do not have",
		},
		{
			"a where that is wrong",
			[]*holdfast.ReadOperation{ok, listing(&holdfast.ListRequest{Kind: holdfast.Kind_KIND_NODE, Selector: holdfast.Selector{Where: "a="}})},
			errkind.Invalid, "operations[1].list.selector.where", "column",
		},
		{
			"an order that there is not",
			[]*holdfast.ReadOperation{listing(&holdfast.ListRequest{Kind: holdfast.Kind_KIND_NODE, Sort: 7})},
			errkind.Invalid, "operations[0].list.sort", "7",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := f.Read(t.Context(), &holdfast.ReadRequest{Operations: c.operations})
			wantError(t, err, c.kind, c.field, c.text)
		})
	}
	if resp, err := f.Read(t.Context(), &holdfast.ReadRequest{Operations: many(64)}); err != nil || len(resp.Results) != 64 {
		t.Errorf("64: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Read(ctx, &holdfast.ReadRequest{Operations: many(1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// The reply as a whole is bounded; what goes over the bound is named.
func TestReadBoundsItsReply(t *testing.T) {
	f := newFixture(t)
	var operations []*holdfast.Operation
	for i := range 40 {
		operations = append(operations, create(service(fmt.Sprint("s", i), "pad="+strings.Repeat("x", 900))))
	}
	made := f.txn(operations...).Objects
	f.SetPageBytes(64 << 10)
	all := listing(&holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE})
	one := getting(holdfast.Kind_KIND_SERVICE, made[0].GetService().ID, "")
	read := func(operations ...*holdfast.ReadOperation) (*holdfast.ReadResponse, error) {
		return f.Read(t.Context(), &holdfast.ReadRequest{Operations: operations})
	}
	if _, err := read(one, all); err != nil {
		t.Error(err)
	}
	_, err := read(one, all, one, all)
	wantError(t, err, errkind.Limit, "operations[3].list", "32 MiB")
	if !strings.Contains(errkind.Hint(err), "limit") {
		t.Errorf("hint %q", errkind.Hint(err))
	}
	if resp, err := read(all, listing(&holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, Limit: 20}), all); err == nil {
		t.Errorf("a reply of %d bytes", resp.Size())
	}
	keys := listing(&holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, KeysOnly: true})
	if _, err := read(all, keys, keys); err != nil {
		t.Errorf("keys count as what is sent: %v", err)
	}
	f.SetPageBytes(16 << 10)
	if resp, err := read(all); err != nil || resp.Results[0].GetList().Continue == "" { // a page, cut as any other
		t.Errorf("%v, %v", resp, err)
	}
	_, err = read(all, one)
	wantError(t, err, errkind.Limit, "operations[1].get", "32 MiB")
}
