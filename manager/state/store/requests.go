package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	memdb "github.com/hashicorp/go-memdb"

	"holdfast/api/holdfast"
)

// The request table remembers the outcome of the last requests that changed something. It is
// a memdb table beside the objects, so HEAD, ROOT and every kept snapshot have it as it was
// at their revision. A revision is the outcome of one request at most.
const (
	requestTable    = "request"
	requestRevision = "revision"
)

// requestCount is what the table itself does not tell cheaply.
type requestCount struct {
	count int
	floor uint64 // revision of the last request that was forgotten
}

// requestKey is the primary index: caller and ID, each closed by a zero byte.
type requestKey struct{}

// FromArgs takes a *holdfast.RequestRecord.
func (requestKey) FromArgs(args ...any) ([]byte, error) {
	if len(args) != 1 {
		return nil, errors.New("request index: takes one record")
	}
	ok, key, err := requestKey{}.FromObject(args[0])
	if err == nil && !ok {
		err = errors.New("request index: record without an ID")
	}
	return key, err
}

// FromObject gives memdb the key of a record.
func (requestKey) FromObject(raw any) (bool, []byte, error) {
	r, ok := raw.(*holdfast.RequestRecord)
	if !ok {
		return false, nil, fmt.Errorf("request index: record of type %T", raw)
	}
	key := make([]byte, 0, len(r.Caller)+len(r.ID)+2)
	key = append(append(key, r.Caller...), 0)
	key = append(append(key, r.ID...), 0)
	return r.ID != "", key, nil
}

// requestOrder is the index by revision: the order in which records are forgotten.
type requestOrder struct{}

// FromArgs takes a revision.
func (requestOrder) FromArgs(args ...any) ([]byte, error) {
	if len(args) == 1 {
		if revision, ok := args[0].(uint64); ok {
			return binary.BigEndian.AppendUint64(nil, revision), nil
		}
	}
	return nil, errors.New("request index: takes one revision")
}

// FromObject gives memdb the key of a record.
func (requestOrder) FromObject(raw any) (bool, []byte, error) {
	r, ok := raw.(*holdfast.RequestRecord)
	if !ok {
		return false, nil, fmt.Errorf("request index: record of type %T", raw)
	}
	return true, binary.BigEndian.AppendUint64(nil, r.Revision), nil
}

func requestSchema() *memdb.TableSchema {
	return &memdb.TableSchema{Name: requestTable, Indexes: map[string]*memdb.IndexSchema{
		indexID:         {Name: indexID, Unique: true, Indexer: requestKey{}},
		requestRevision: {Name: requestRevision, Unique: true, Indexer: requestOrder{}},
	}}
}

// findRequest returns the record of a request, or nil.
func findRequest(txn *memdb.Txn, caller, id string) (*holdfast.RequestRecord, error) {
	raw, err := txn.First(requestTable, indexID, &holdfast.RequestRecord{Caller: caller, ID: id})
	if err != nil || raw == nil {
		return nil, err
	}
	r, ok := raw.(*holdfast.RequestRecord)
	if !ok {
		return nil, fmt.Errorf("request table holds %T", raw)
	}
	return r, nil
}

// addRequest records an outcome and forgets the oldest ones over the bound. Every member does
// it in the order of revisions, so all remember the same.
func addRequest(txn *memdb.Txn, c requestCount, r *holdfast.RequestRecord, bound int) (requestCount, error) {
	if err := txn.Insert(requestTable, r); err != nil {
		return c, err
	}
	c.count++
	for c.count > bound {
		raw, err := txn.First(requestTable, requestRevision+"_prefix", "")
		if err != nil {
			return c, err
		}
		oldest, ok := raw.(*holdfast.RequestRecord)
		if !ok {
			return c, fmt.Errorf("request table holds %T", raw)
		}
		if err := txn.Delete(requestTable, oldest); err != nil {
			return c, err
		}
		c.count--
		c.floor = oldest.Revision
	}
	return c, nil
}

// PrefixFromArgs takes no argument but an empty prefix: it reads all records in order.
func (requestOrder) PrefixFromArgs(...any) ([]byte, error) { return nil, nil }
