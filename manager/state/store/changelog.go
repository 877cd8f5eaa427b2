package store

import (
	"fmt"
	"time"

	"github.com/gogo/protobuf/types"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
)

// changeLog is the changes of the newest revisions. It is a value of the root: roots share an
// array, of which each sees its own part, and only Apply appends to it.
type changeLog struct {
	entries []*logEntry // of the revisions floor+1 to the root's
	bytes   int
	floor   uint64 // oldest revision that can be read
}

// logEntry is one revision: its transaction and what it changed.
type logEntry struct {
	revision uint64
	term     uint64
	txnID    []byte
	parent   []byte
	at       *types.Timestamp
	request  state.Request
	changes  []state.Change
	hash     []byte // state hash after it
	size     int    // bytes of the transaction as it was proposed
}

func (e *logEntry) time() time.Time { return fromTimestamp(e.at) }

func (e *logEntry) ids() []string {
	ids := make([]string, len(e.changes))
	for i, c := range e.changes {
		ids[i] = c.Object().GetID()
	}
	return ids
}

// record gives the outcome of the entry's request, or nil if it has none.
func (e *logEntry) record() *holdfast.RequestRecord {
	if e.request.ID == "" {
		return nil
	}
	return &holdfast.RequestRecord{
		Caller: e.request.Caller, ID: e.request.ID, Digest: e.request.Digest,
		Revision: e.revision, IDs: e.ids(),
	}
}

// push returns the log with an entry more, and without the oldest ones over the bounds. Size
// and number are the same on every member, so the floor is too.
func (l changeLog) push(e *logEntry, maxEntries, maxBytes int) changeLog {
	l.entries = append(l.entries, e)
	l.bytes += e.size
	for len(l.entries) > maxEntries || len(l.entries) > 1 && l.bytes > maxBytes {
		l.bytes -= l.entries[0].size
		l.floor = l.entries[0].revision
		l.entries = l.entries[1:]
	}
	return l
}

// entry returns the entry of a revision, or nil if it is not in the log.
func (l changeLog) entry(revision uint64) *logEntry {
	if len(l.entries) == 0 || revision < l.entries[0].revision {
		return nil
	}
	i := revision - l.entries[0].revision
	if i >= uint64(len(l.entries)) {
		return nil
	}
	return l.entries[i]
}

// check tells why a revision cannot be read, or nil.
func (r *root) check(revision uint64) error { return r.log.check(revision, r.revision) }

// check tells why a revision cannot be read when now is the present one, or nil.
func (l changeLog) check(revision, now uint64) error {
	switch {
	case revision > now:
		return &errkind.Error{
			Kind: errkind.OutOfRange, Seen: revision, Now: now,
			Msg:  fmt.Sprintf("future revision: %d was asked for, the present one is %d", revision, now),
			Hint: "wait for it, or read the present revision",
		}
	case revision < l.floor:
		return &errkind.Error{
			Kind: errkind.OutOfRange, Seen: revision, Now: l.floor,
			Msg:  fmt.Sprintf("compacted: revision %d is below the floor, %d", revision, l.floor),
			Hint: "start again from the present revision",
		}
	}
	return nil
}
