package store

import (
	"sort"
	"sync"

	"holdfast/api/holdfast"
)

// requestTable remembers the outcome of the last requests that changed something, in the
// order of their revisions; a revision is the outcome of one request at most. It is a value
// of the root: roots share an array, of which each sees its own part, and only Apply appends
// to it. HEAD needs no table of its own: what it has more is what waits in the queue.
type requestTable struct {
	records []*holdfast.RequestRecord
	floor   uint64 // revision of the last request that was forgotten
}

// push returns the table with a record more, and without the oldest ones over the bound.
// Every member does it in the order of revisions, so all remember the same.
func (t requestTable) push(r *holdfast.RequestRecord, bound int) requestTable {
	t.records = append(t.records, r)
	for len(t.records) > bound {
		t.floor = t.records[0].Revision
		t.records = t.records[1:]
	}
	return t
}

// requestIndex finds the records of the root's table.
type requestIndex struct {
	mu    sync.Mutex
	byKey map[requestKey]*holdfast.RequestRecord
}

type requestKey struct{ caller, id string }

func keyOf(r *holdfast.RequestRecord) requestKey { return requestKey{r.Caller, r.ID} }

// find returns the record of a request, or nil.
func (x *requestIndex) find(caller, id string) *holdfast.RequestRecord {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.byKey[requestKey{caller, id}]
}

// follow brings the index from one root's table to that of the next root.
func (x *requestIndex) follow(before, after requestTable) {
	last := uint64(0)
	if n := len(before.records); n > 0 {
		last = before.records[n-1].Revision
	}
	added := sort.Search(len(after.records), func(i int) bool { return after.records[i].Revision > last })
	if added == len(after.records) && before.floor == after.floor {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byKey == nil {
		x.byKey = map[requestKey]*holdfast.RequestRecord{}
	}
	for _, r := range before.records {
		if r.Revision > after.floor {
			break
		}
		if x.byKey[keyOf(r)] == r {
			delete(x.byKey, keyOf(r))
		}
	}
	for _, r := range after.records[added:] {
		x.byKey[keyOf(r)] = r
	}
}

// replace makes the index that of another table.
func (x *requestIndex) replace(t requestTable) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.byKey = make(map[requestKey]*holdfast.RequestRecord, len(t.records))
	for _, r := range t.records {
		x.byKey[keyOf(r)] = r
	}
}
