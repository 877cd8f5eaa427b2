package client_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/errkind"
)

// paged serves services 0 to n-1, three a page; a token is the next number. At the token in
// compacted the revision is gone, as often as it says.
func paged(n int, compacted map[string]int) func(*manager, received) (any, error) {
	return func(_ *manager, c received) (any, error) {
		req := c.request.(*api.ListServicesRequest)
		if compacted[req.Continue] > 0 {
			compacted[req.Continue]--
			return nil, errkind.New(errkind.OutOfRange, "compacted")
		}
		from := 0
		if req.Continue != "" {
			var err error
			if from, err = strconv.Atoi(req.Continue); err != nil {
				return nil, err
			}
		}
		r := &api.ListServicesResponse{}
		for i := from; i < min(from+3, n); i++ {
			r.Services = append(r.Services, &api.Service{ID: fmt.Sprint(i)})
		}
		if from+3 < n {
			r.Continue = fmt.Sprint(from + 3)
			r.Remaining = uint64(n - from - 3)
		}
		return r, nil
	}
}

func TestPages(t *testing.T) {
	for name, c := range map[string]struct {
		n         int
		compacted map[string]int
		calls     int
		fails     bool
	}{
		"none":            {n: 0, calls: 1},
		"one page":        {n: 3, calls: 1},
		"four pages":      {n: 10, calls: 4},
		"compacted":       {n: 10, compacted: map[string]int{"6": 1}, calls: 3 + 4},
		"compacted twice": {n: 10, compacted: map[string]int{"6": 2}, calls: 3 + 3, fails: true},
		"at once":         {n: 10, compacted: map[string]int{"": 1}, calls: 1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, abc(), paged(c.n, c.compacted))
				var got []string
				var err error
				for s, e := range f.client(t, client.Options{}).Services(t.Context(), nil) {
					if err = e; err == nil {
						got = append(got, s.ID)
					}
				}
				if c.fails != (err != nil) || c.fails && !errkind.Is(err, errkind.OutOfRange) {
					t.Fatalf("got %v", err)
				}
				if len(f.received("ListServices")) != c.calls {
					t.Errorf("%d calls, want %d", len(f.received("ListServices")), c.calls)
				}
				if sorted := slices.Compact(slices.Sorted(slices.Values(got))); len(sorted) != len(got) {
					t.Errorf("duplicates: %v", got)
				}
				if !c.fails && len(got) != c.n {
					t.Errorf("got %v", got)
				}
			})
		})
	}
}

func TestPagesStopEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, abc(), paged(10, nil))
		for _, err := range f.client(t, client.Options{}).Services(t.Context(), nil) {
			if err != nil {
				t.Error(err)
			}
			break
		}
		if n := len(f.received("ListServices")); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

// A request goes with each page as it is, but for its limit and token. None of these is a write.
func TestReadsOfObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, abc(), func(_ *manager, c received) (any, error) {
			paged, ok := c.request.(interface{ GetContinue() string })
			if !ok {
				return nil, errkind.New(errkind.NotFound, "nothing to read")
			}
			last := paged.GetContinue() != ""
			token := map[bool]string{false: "more"}[last]
			switch c.method {
			case "List":
				return &holdfast.ListResponse{Objects: []*holdfast.Object{service(map[bool]string{true: "b", false: "a"}[last])}, Continue: token}, nil
			case "History":
				return &holdfast.HistoryResponse{Versions: []*holdfast.Version{
					{Revision: 7, Object: service(map[bool]string{true: "b", false: "a"}[last])},
				}, Continue: token}, nil
			}
			return &holdfast.DiffResponse{From: 3, To: 7, Objects: []*holdfast.ObjectDiff{{ID: token}}, Continue: token, Remaining: 1}, nil
		})
		c := f.client(t, client.Options{})
		objects, err := client.Collect(c.Find(t.Context(), &holdfast.ListRequest{
			Kind: holdfast.Kind_KIND_SERVICE, Sort: holdfast.Sort_SORT_NAME, Descending: true, Limit: 1, Continue: "x",
		}))
		if err != nil || len(objects) != 2 {
			t.Errorf("objects %v, %v", objects, err)
		}
		versions, err := client.Collect(c.History(t.Context(), &holdfast.HistoryRequest{Name: "x", NewestFirst: true}))
		if err != nil || len(versions) != 2 {
			t.Errorf("versions %v, %v: those of two objects at one revision are two", versions, err)
		}
		diff, err := c.Diff(t.Context(), &holdfast.DiffRequest{From: 3, Name: "x"})
		if err != nil || len(diff.Objects) != 2 || diff.From != 3 || diff.To != 7 || diff.Continue != "" || diff.Remaining != 0 {
			t.Errorf("diff %v, %v", diff, err)
		}
		if _, err := c.Objects().Read(t.Context(), &holdfast.ReadRequest{}); !errkind.Is(err, errkind.NotFound) {
			t.Errorf("read %v", err)
		}
		s, err := c.Objects().Scan(t.Context(), &holdfast.ListRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err == nil {
			t.Error("scanned what is not there")
		}

		for i, call := range f.received("List") {
			r := call.request.(*holdfast.ListRequest)
			if r.Sort != holdfast.Sort_SORT_NAME || !r.Descending || r.Limit != 1000 || r.Continue != []string{"", "more"}[i] {
				t.Errorf("page %d: %v", i, r)
			}
		}
		for i, call := range f.received("History") {
			if r := call.request.(*holdfast.HistoryRequest); r.Name != "x" || !r.NewestFirst || r.Limit != 100 || r.Continue != []string{"", "more"}[i] {
				t.Errorf("page %d: %v", i, r)
			}
		}
		for i, call := range f.received("Diff") {
			if r := call.request.(*holdfast.DiffRequest); r.Name != "x" || r.From != 3 || r.Limit != 1000 || r.Continue != []string{"", "more"}[i] {
				t.Errorf("page %d: %v", i, r)
			}
		}
		for _, method := range []string{"List", "History", "Diff", "Read"} {
			for _, call := range f.received(method) {
				if call.requestID != "" {
					t.Errorf("%s has the request ID of a write", method)
				}
			}
		}
		if n := len(f.received("Check")); n != 0 {
			t.Errorf("asked %d times for the revision, as before a write", n)
		}
	})
}
