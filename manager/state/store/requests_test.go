package store

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/api/holdfast"
)

// What is kept of a record is the record, and its key is that of its caller and ID alone.
func TestStoredRequest(t *testing.T) {
	seen := map[requestKey]string{}
	for _, caller := range []string{"", "a", "ab", "operator"} {
		for _, id := range []string{"", "b", "1.0123456789abcdef", string(bytes.Repeat([]byte("x"), 200))} {
			name := fmt.Sprintf("%q %q", caller, id)
			for _, r := range []*holdfast.RequestRecord{
				{Caller: caller, ID: id},
				{Caller: caller, ID: id, Digest: []byte{0x12, 1, 'b'}, Revision: 7, IDs: []string{"x", "y"}},
				{Caller: caller, ID: id, IDs: []string{"x"}},
			} {
				s := storeRequest(r)
				if s.revision != r.Revision || s.key() != keyOf(caller, id) {
					t.Errorf("%s: revision %d, key %x", name, s.revision, s.key())
				}
				if diff := cmp.Diff(r, s.record()); diff != "" {
					t.Errorf("%s: record: %s", name, diff)
				}
			}
			if other, ok := seen[keyOf(caller, id)]; ok {
				t.Errorf("%s has the key of %s", name, other)
			}
			seen[keyOf(caller, id)] = name
		}
	}
}

// The index knows what its table has, while the table grows, forgets and is replaced.
func TestRequestIndexFollowsTable(t *testing.T) {
	const bound = 10
	var x requestIndex
	var before requestTable
	id := func(n uint64) string { return fmt.Sprintf("%d.0123456789abcdef", n) }
	check := func(table requestTable, newest uint64) {
		t.Helper()
		if len(x.byKey) != len(table.records) {
			t.Fatalf("index has %d records, table %d", len(x.byKey), len(table.records))
		}
		for n := uint64(1); n <= newest; n++ {
			r := x.find("caller", id(n))
			switch {
			case n <= table.floor && r != nil:
				t.Fatalf("revision %d is still there, floor %d", n, table.floor)
			case n > table.floor && (r == nil || r.Revision != 2*n):
				t.Fatalf("revision %d: %v", n, r)
			}
			if x.find("other", id(n)) != nil {
				t.Fatal("another caller's request is found")
			}
		}
	}
	table := requestTable{}
	for n := uint64(1); n <= 5*bound; n++ {
		table = table.push(&holdfast.RequestRecord{Caller: "caller", ID: id(n), Revision: 2 * n}, bound)
		if n%3 != 0 { // several revisions may be published at once
			continue
		}
		x.follow(before, table)
		before = table
		floor := table
		floor.floor /= 2 // of revisions, which are the double of n
		check(floor, n)
	}
	x.replace(requestTable{})
	check(requestTable{floor: 5 * bound}, 5*bound)
	x.replace(table)
	floor := table
	floor.floor /= 2
	check(floor, 5*bound)
}
