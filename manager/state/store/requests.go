package store

import (
	"crypto/sha256"
	"fmt"
	"sort"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"holdfast/api/holdfast"
)

// requestTable remembers the outcome of the last requests that changed something, in the
// order of their revisions; a revision is the outcome of one request at most. It is a value
// of the root: roots share an array, of which each sees its own part, and only Apply appends
// to it. HEAD needs no table of its own: what it has more is what waits in the queue.
type requestTable struct {
	records []storedRequest
	floor   uint64 // revision of the last request that was forgotten
}

// storedRequest is a RequestRecord as a snapshot has it. A table holds very many of them, and
// hardly any is looked at again; encoded they take less memory than as structs, and the
// garbage collector has nothing to follow in them.
type storedRequest struct {
	revision uint64
	encoded  []byte // never changed
}

func storeRequest(r *holdfast.RequestRecord) storedRequest {
	data, err := r.Marshal()
	if err != nil { // it is bytes in memory: nothing can fail
		panic(fmt.Sprintf("store: encode request: %v", err))
	}
	return storedRequest{revision: r.Revision, encoded: data}
}

// Marshal gives the record as it is in a snapshot.
func (s storedRequest) Marshal() ([]byte, error) { return s.encoded, nil }

func (s storedRequest) record() *holdfast.RequestRecord {
	r := &holdfast.RequestRecord{}
	if err := r.Unmarshal(s.encoded); err != nil { // it was encoded here
		panic(fmt.Sprintf("store: decode request: %v", err))
	}
	return r
}

func (s storedRequest) key() requestKey {
	n := 0
	for n < len(s.encoded) {
		field, _, size := protowire.ConsumeField(s.encoded[n:])
		if size < 0 || field > fieldID { // fields are in the order of their numbers
			break
		}
		n += size
	}
	return hashKey(s.encoded[:n])
}

// fieldID is the number of a RequestRecord's ID; its caller is the only one before.
const fieldID = 2

// requestKey stands for a caller and a request ID: it is a cryptographic hash of them, so no
// two have the same one.
type requestKey [16]byte

// keyOf gives the key of a request: the hash of a RequestRecord's fields that name it.
func keyOf(caller, id string) requestKey {
	return hashKey(storeRequest(&holdfast.RequestRecord{Caller: caller, ID: id}).encoded)
}

func hashKey(b []byte) requestKey {
	sum := sha256.Sum256(b)
	return requestKey(sum[:])
}

// push returns the table with a record more, and without the oldest ones over the bound.
// Every member does it in the order of revisions, so all remember the same.
func (t requestTable) push(r *holdfast.RequestRecord, bound int) requestTable {
	t.records = append(t.records, storeRequest(r))
	for len(t.records) > bound {
		t.floor = t.records[0].revision
		t.records = t.records[1:]
	}
	return t
}

// after gives the place of the first record after a revision.
func (t requestTable) after(revision uint64) int {
	return sort.Search(len(t.records), func(i int) bool { return t.records[i].revision > revision })
}

// requestIndex finds the records of the root's table.
type requestIndex struct {
	mu    sync.Mutex
	table requestTable
	byKey map[requestKey]uint64 // revisions
}

// find returns the record of a request, or nil.
func (x *requestIndex) find(caller, id string) *holdfast.RequestRecord {
	x.mu.Lock()
	defer x.mu.Unlock()
	revision, ok := x.byKey[keyOf(caller, id)]
	if !ok {
		return nil
	}
	return x.table.records[x.table.after(revision-1)].record()
}

// follow brings the index from one root's table to that of the next root.
func (x *requestIndex) follow(before, after requestTable) {
	last := uint64(0)
	if n := len(before.records); n > 0 {
		last = before.records[n-1].revision
	}
	added := after.after(last)
	if added == len(after.records) && before.floor == after.floor {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byKey == nil {
		x.byKey = map[requestKey]uint64{}
	}
	for _, s := range before.records[:before.after(after.floor)] {
		if k := s.key(); x.byKey[k] == s.revision {
			delete(x.byKey, k)
		}
	}
	for _, s := range after.records[added:] {
		x.byKey[s.key()] = s.revision
	}
	x.table = after
}

// replace makes the index that of another table.
func (x *requestIndex) replace(t requestTable) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.table = t
	x.byKey = make(map[requestKey]uint64, len(t.records))
	for _, s := range t.records {
		x.byKey[s.key()] = s.revision
	}
}
