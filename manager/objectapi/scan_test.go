package objectapi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objectapi"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// stream takes what a Scan sends.
type stream struct {
	grpc.ServerStream
	ctx  context.Context
	sent []*holdfast.ListResponse
	each func(n int) error // after each message
}

func (s *stream) Context() context.Context { return s.ctx }

func (s *stream) Send(m *holdfast.ListResponse) error {
	data, err := m.Marshal() // what is sent may not change later
	if err != nil {
		return err
	}
	sent := &holdfast.ListResponse{}
	if err := sent.Unmarshal(data); err != nil {
		return err
	}
	s.sent = append(s.sent, sent)
	if s.each == nil {
		return nil
	}
	return s.each(len(s.sent))
}

// A Scan sends what the pages of the list are, in every order, and every message can be gone on
// from.
func TestScan(t *testing.T) {
	f := newFixture(t)
	all := f.crowd(45)
	for by := range holdfast.Sort_name {
		for _, descending := range []bool{false, true} {
			for _, keys := range []bool{false, true} {
				for _, selector := range []holdfast.Selector{{}, {NamePrefixes: []string{"S"}}, {Labels: map[string]string{"third": "1"}}} {
					r := &holdfast.ListRequest{
						Kind: holdfast.Kind_KIND_SERVICE, Sort: holdfast.Sort(by), Descending: descending, Limit: 10,
						KeysOnly: keys, Selector: selector,
					}
					want := len(all)
					if selector.Labels != nil {
						want = 15
					}
					listed := f.pages(r, want, func() {})
					got := &stream{ctx: t.Context()}
					if err := f.Scan(r, got); err != nil {
						t.Fatal(err)
					}
					checkScan(t, f, r, got.sent, listed)
				}
			}
		}
	}
}

func checkScan(t *testing.T, f *fixture, r *holdfast.ListRequest, sent []*holdfast.ListResponse, want []*holdfast.Object) {
	t.Helper()
	var got []*holdfast.Object
	for i, m := range sent {
		got = append(got, m.Objects...)
		left := len(want) - len(got)
		if len(m.Objects) > 10 || m.Remaining != uint64(left) || m.Revision != f.store.Root().Revision() ||
			(m.Continue == "") != (i == len(sent)-1) {
			t.Fatalf("%v: message %d of %d: %d objects, remaining %d of %d, %q", r, i, len(sent), len(m.Objects), m.Remaining, left, m.Continue)
		}
		if m.Continue == "" {
			continue
		}
		rest := *r
		rest.Continue = m.Continue
		again := &stream{ctx: t.Context()}
		if err := f.Scan(&rest, again); err != nil {
			t.Fatal(err)
		}
		var after []*holdfast.Object
		for _, m := range again.sent {
			after = append(after, m.Objects...)
		}
		if !slices.EqualFunc(after, want[len(got):], func(a, b *holdfast.Object) bool { return a.Equal(b) }) {
			t.Fatalf("%v: after message %d: %v", r, i, ids(after))
		}
	}
	if !slices.EqualFunc(got, want, func(a, b *holdfast.Object) bool { return a.Equal(b) }) {
		t.Fatalf("%v: %v, want %v", r, ids(got), ids(want))
	}
}

func TestScanMessages(t *testing.T) {
	f := newFixture(t)
	scan := func(r *holdfast.ListRequest) []*holdfast.ListResponse {
		t.Helper()
		got := &stream{ctx: t.Context()}
		if err := f.Scan(r, got); err != nil {
			t.Fatal(err)
		}
		return got.sent
	}
	r := &holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE}
	if got := scan(r); len(got) != 1 || len(got[0].Objects) != 0 || got[0].Continue != "" {
		t.Errorf("of nothing: %v", got)
	}
	pad := "pad=" + strings.Repeat("x", 900)
	for i := range 15 { // 1500, each of more than 900 bytes
		var operations []*holdfast.Operation
		for n := range 100 {
			operations = append(operations, create(service(fmt.Sprint("s", i, "x", n), pad)))
		}
		f.txn(operations...)
	}
	if got := scan(r); len(got) != 2 || len(got[0].Objects) != 1000 || got[0].Size() > 3<<20 {
		t.Errorf("%d messages", len(got))
	}
	f.SetPageBytes(100 << 10)
	total := 0
	for _, m := range scan(r) {
		total += len(m.Objects)
		if m.Size() > 101<<10 || len(m.Objects) == 0 {
			t.Errorf("a message of %d bytes, %d objects", m.Size(), len(m.Objects))
		}
	}
	if total != 1500 {
		t.Errorf("%d objects", total)
	}
	f.SetPageBytes(1)
	if got := scan(&holdfast.ListRequest{Kind: r.Kind, Limit: 1000}); len(got) != 1500 {
		t.Errorf("under the smallest bound: %d messages", len(got))
	}
	if got := scan(&holdfast.ListRequest{Kind: r.Kind, CountOnly: true}); len(got) != 1 || got[0].Remaining != 1500 || len(got[0].Objects) > 0 {
		t.Errorf("count: %v", got)
	}
	for _, c := range []struct {
		r     *holdfast.ListRequest
		field string
	}{
		{&holdfast.ListRequest{}, "kind"},
		{&holdfast.ListRequest{Kind: r.Kind, Continue: "x"}, "continue"},
		{&holdfast.ListRequest{Kind: r.Kind, Sort: 9}, "sort"},
		{&holdfast.ListRequest{Kind: r.Kind, Sort: 9, CountOnly: true}, "sort"},
		{&holdfast.ListRequest{Kind: r.Kind, Selector: holdfast.Selector{NodeIDs: []string{"x"}}}, "selector.node_ids"},
	} {
		got := &stream{ctx: t.Context()}
		wantError(t, f.Scan(c.r, got), errkind.Invalid, c.field, "")
		if len(got.sent) > 0 {
			t.Errorf("%v: sent %v", c.r, got.sent)
		}
	}
}

// A Scan ends when the client goes, whether Send tells or only the context.
func TestScanStops(t *testing.T) {
	f := newFixture(t)
	f.crowd(30)
	r := &holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, Limit: 5}
	broken := errors.New("broken pipe")
	got := &stream{ctx: t.Context(), each: func(n int) error {
		if n == 2 {
			return broken
		}
		return nil
	}}
	if err := f.Scan(r, got); !errors.Is(err, broken) || len(got.sent) != 2 {
		t.Errorf("%v after %d messages", err, len(got.sent))
	}
	ctx, cancel := context.WithCancel(t.Context())
	got = &stream{ctx: ctx, each: func(n int) error {
		if n == 3 {
			cancel()
		}
		return nil
	}}
	if err := f.Scan(r, got); !errors.Is(err, context.Canceled) || len(got.sent) != 3 {
		t.Errorf("%v after %d messages", err, len(got.sent))
	}
}

// What is written or compacted meanwhile does not show, now or of a past revision.
func TestScanHoldsItsView(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	f := &fixture{objectapi.New(s.Store, reader{s.Store}, files(t)), t, s.Store}
	f.crowd(30)
	services := func() (all []*api.Service) {
		for _, o := range f.list(holdfast.Kind_KIND_SERVICE, holdfast.Selector{}).Objects {
			all = append(all, o.GetService())
		}
		return all
	}
	scanWhileCompacting(t, f, s, f.Server, sorted(services(), holdfast.Sort_SORT_ID, false))
	then := services()
	revision := s.Store.Root().Revision()
	f.txn(create(network("later")))
	past := f.at(revision)
	scanWhileCompacting(t, f, s, past, sorted(then, holdfast.Sort_SORT_ID, false))
}

func scanWhileCompacting(t *testing.T, f *fixture, s *storetest.Script, server *objectapi.Server, want []string) {
	got := &stream{ctx: t.Context()}
	got.each = func(n int) error {
		if n == 1 {
			f.txn(remove(holdfast.Kind_KIND_SERVICE, want[len(want)-1]), create(service(fmt.Sprint("new", len(want)))))
			if _, err := s.Store.Compact(t.Context(), 0); err != nil {
				return err
			}
		}
		return nil
	}
	if err := server.Scan(&holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, Limit: 7}, got); err != nil {
		t.Fatal(err)
	}
	var sent []string
	for _, m := range got.sent {
		sent = append(sent, ids(m.Objects)...)
		if m.Revision != got.sent[0].Revision || m.Revision >= s.Store.Status().Floor {
			t.Errorf("revision %d, floor %d", m.Revision, s.Store.Status().Floor)
		}
	}
	if !slices.Equal(sent, want) {
		t.Errorf("%v\nwant\n%v", sent, want)
	}
	// To go on from there is too late.
	err := server.Scan(&holdfast.ListRequest{
		Kind: holdfast.Kind_KIND_SERVICE, Continue: objects.Token{Revision: got.sent[0].Revision, After: "a"}.Encode(),
	}, &stream{ctx: t.Context()})
	wantError(t, err, errkind.OutOfRange, "", "compacted")
}
