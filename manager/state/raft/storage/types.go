package storage

import (
	"go.etcd.io/raft/v3/raftpb"

	"holdfast/internal/mutant"
)

// Identity says whose log it is. It stands in each segment's header. That it
// is the identity expected is for the caller of Open to check.
type Identity struct {
	ClusterID string // at most 128 bytes
	NodeID    string // at most 128 bytes
	RaftID    uint64
}

// Marker names a snapshot file, and is what makes it the one to load.
type Marker struct {
	Index     uint64
	Term      uint64
	ConfState *raftpb.ConfState

	// Received is set for a snapshot that came from the leader: it voids every
	// entry record before it in the log, whatever its index. A local one
	// leaves entries above its index, and those at or below it until they are
	// compacted.
	Received bool
}

// IsZero reports whether the marker names no snapshot.
func (m Marker) IsZero() bool { return m.Index == 0 }

// Batch is what one write and one sync make durable. Its records are written
// in this order: snapshot marker, entries, hard state. Append copies what it
// needs: the batch stays the caller's.
type Batch struct {
	// HardState is the new hard state; nil leaves it as it is. Term and commit
	// never go down.
	HardState *raftpb.HardState

	// Entries each have an index i at most one above that of the entry before,
	// in the log or the batch, and above the commit index and the latest
	// marker's; entries at and above i that came before are void.
	Entries []*raftpb.Entry

	// Snapshot is the marker of a snapshot file that is complete and synced.
	// The hard state, after this batch, has commit ≥ its index. Its index is
	// not below the latest marker's (a local snapshot that a received one
	// overtook is to be given up). A local one's index is that of an entry in
	// the log, unless the log is empty.
	Snapshot *Marker

	// NoSync writes without a sync. It is allowed for a hard state in which
	// only the commit index went up: a crash may lose it, which is harmless.
	// It does not advance the mark below which all is known to be synced.
	NoSync bool
}

// State is what Open found.
type State struct {
	Identity  Identity
	HardState *raftpb.HardState // never nil

	// Snapshot is the last marker in the log, zero if there is none. Its file
	// is the one to load, never the newest file in the folder.
	Snapshot Marker

	// Entries are all entries the log holds, contiguous, from FirstIndex on.
	// FirstIndex is at most Snapshot.Index+1 and may be lower, where log older
	// than the snapshot is still there (whole segments are removed, so it may
	// also be lower than what Compact was told). After a received snapshot it
	// is Snapshot.Index+1. The last entry's index is at least Snapshot.Index
	// when there are entries.
	Entries []*raftpb.Entry

	// FirstIndex is the index of Entries[0], or the one that the next entry
	// will have when there are none.
	FirstIndex uint64

	// PrevTerm is the term of the entry at FirstIndex-1 (0 if FirstIndex is 1;
	// the snapshot's if that is the snapshot's index).
	PrevTerm uint64

	Clean   bool  // the log ends with the closing mark that Close writes
	Dropped int64 // bytes of a torn end that were dropped, 0 if none
}

// LastIndex is the index of the last entry, or FirstIndex-1 if there are none.
func (s *State) LastIndex() uint64 { return s.FirstIndex + uint64(len(s.Entries)) - 1 }

// Options tune a log. The zero value works.
type Options struct {
	// SegmentSize is the size at which a new segment file is begun; 0 means
	// DefaultSegmentSize. At most MaxSegmentSize.
	SegmentSize int64

	// Planted is a fault planted on purpose, by the simulator; zero: none.
	Planted mutant.Set
}

// Limits. A log or snapshot that exceeds one is refused before memory is
// allocated for it.
const (
	DefaultSegmentSize = 64 << 20
	MaxSegmentSize     = 1 << 30
	MaxBatchSize       = 256 << 20 // one Append, encoded
	MaxRecordSize      = 16 << 20  // one record of a snapshot section
	MaxSections        = 256       // sections of a snapshot
	MaxSectionName     = 64        // bytes of a section's name
)

// Metrics are counters of one open log since Open, and what it has on disk.
type Metrics struct {
	Bytes    int64 // on disk, all segments
	Segments int64
	LastSize int64 // of the segment being written
	Writes   int64 // write calls
	Written  int64 // bytes written
	Syncs    int64 // syncs of a segment file
	DirSyncs int64 // syncs of the folder
}
