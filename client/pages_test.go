package client_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"holdfast/api"
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
