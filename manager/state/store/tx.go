package store

import (
	"time"

	"github.com/gogo/protobuf/types"
	memdb "github.com/hashicorp/go-memdb"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
)

// Bounds of one transaction.
const (
	MaxObjectBytes      = 1 << 20
	MaxTransactionBytes = 4 << 20
	MaxOperations       = 512
)

// ReadTx is a view of the store at one revision. It stays valid, and stays the same, however
// long it is kept.
type ReadTx interface {
	// Revision returns the revision that the view shows.
	Revision() uint64
	memdb() *memdb.Txn
	past() *pastTx // nil if memdb shows the view as it is
	whole() *root  // that the view is of; nil if it is of none
}

// readTx reads a root.
type readTx struct {
	txn      *memdb.Txn
	revision uint64
	root     *root // nil while it is made
}

// Revision returns the revision that the view shows.
func (tx readTx) Revision() uint64  { return tx.revision }
func (tx readTx) memdb() *memdb.Txn { return tx.txn }
func (readTx) past() *pastTx        { return nil }
func (tx readTx) whole() *root      { return tx.root }

// rawTx lets a finder read a memdb transaction of the store's own.
type rawTx struct{ txn *memdb.Txn }

// Revision is not known here.
func (tx rawTx) Revision() uint64  { return 0 }
func (tx rawTx) memdb() *memdb.Txn { return tx.txn }
func (rawTx) past() *pastTx        { return nil }
func (rawTx) whole() *root         { return nil }

// Tx is a write transaction on HEAD. It is only valid inside the function that Update calls,
// which must do nothing but read and write it: it runs under the store's lock, and may run
// twice.
type Tx struct {
	txn      *memdb.Txn
	base     uint64 // revision of HEAD
	now      time.Time
	at       *types.Timestamp // now: one for all that it changes, and for the log
	newID    func() string
	changes  []state.Change
	position map[objectKey]int // of each object in changes
	dropped  int               // changes that cancelled out
}

type objectKey struct {
	kind holdfast.Kind
	id   string
}

// Revision returns the revision that the transaction reads, with what it changed itself. What
// it changes gets the next one.
func (tx *Tx) Revision() uint64  { return tx.base }
func (tx *Tx) memdb() *memdb.Txn { return tx.txn }
func (*Tx) past() *pastTx        { return nil }
func (*Tx) whole() *root         { return nil }

// Now returns the time of the transaction: the leader's clock, never before the time of an
// earlier transaction.
func (tx *Tx) Now() time.Time { return tx.now }

// NewID makes an ID for a new object.
func (tx *Tx) NewID() string { return tx.newID() }

func (tx *Tx) createdMeta() api.Meta {
	v := api.Version{Index: tx.base + 1}
	return api.Meta{
		Version: v, CreatedVersion: v, SpecVersion: v, Generation: 1, Changes: 1,
		CreatedAt: tx.at, UpdatedAt: tx.at,
	}
}

func (tx *Tx) updatedMeta(m api.Meta, spec bool) api.Meta {
	// A second change of an object within one transaction is part of the first.
	if again := m.Version.Index == tx.base+1; !again {
		m.Changes++
	}
	m.Version.Index = tx.base + 1
	m.UpdatedAt = tx.at
	if spec && m.SpecVersion.Index != tx.base+1 {
		m.SpecVersion.Index = tx.base + 1
		m.Generation++
	}
	return m
}

// record notes a change. Several changes of one object become one.
func (tx *Tx) record(c state.Change) error {
	key := objectKey{c.Kind, c.Object().GetID()}
	if i, ok := tx.position[key]; ok {
		tx.changes[i].New = c.New
		if tx.changes[i].Old == nil && c.New == nil {
			tx.dropped++
		}
		return nil
	}
	if len(tx.changes) == MaxOperations {
		return &errkind.Error{
			Kind: errkind.Limit, Max: "512 operations", Msg: "transaction changes more than 512 objects",
			Hint: "split it",
		}
	}
	if tx.position == nil {
		tx.position = map[objectKey]int{}
	}
	tx.position[key] = len(tx.changes)
	tx.changes = append(tx.changes, c)
	return nil
}

// removed tells whether this transaction removed the object.
func (tx *Tx) removed(kind holdfast.Kind, id string) bool {
	i, ok := tx.position[objectKey{kind, id}]
	return ok && tx.changes[i].New == nil
}

// net returns the changes without those that cancelled out.
func (tx *Tx) net() []state.Change {
	if tx.dropped == 0 {
		return tx.changes
	}
	net := make([]state.Change, 0, len(tx.changes)-tx.dropped)
	for _, c := range tx.changes {
		if c.Old != nil || c.New != nil {
			net = append(net, c)
		}
	}
	return net
}

func timestamp(t time.Time) *types.Timestamp {
	return &types.Timestamp{Seconds: t.Unix(), Nanos: int32(t.Nanosecond())} //nolint:gosec // below 1e9
}

func fromTimestamp(t *types.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return time.Unix(t.Seconds, int64(t.Nanos))
}
