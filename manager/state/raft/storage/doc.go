// Package storage keeps a member's raft log and its snapshot files on disk.
//
// It owns two folders in the folder it is given: log, with the segments of the
// log, and snap, with the snapshots. Nobody else writes there, and one process
// opens them at a time: the caller holds a lock on the state folder.
//
// # Who may call what
//
// A Log belongs to one goroutine: Append, Compact and Close. Metrics may be
// called from any. Create, Exists, Open and Verify come before, from any one
// goroutine. Snapshot functions may be called from any goroutine, at the same
// time as each other and as the log's; one writer, reader or receiver is used
// by one goroutine at a time. RemoveSnapshots is for the start only. All block
// on the disk. Nothing is cached and nothing runs in the background.
//
// # Order
//
// A snapshot is complete, synced, renamed and its folder synced (Commit)
// before the one Append that holds its marker and a hard state with commit ≥
// its index; Compact comes after that, RemoveOldSnapshots after that. The
// snapshot to load is the one the last marker names.
//
// What Append returned nil for is in the log after any crash, unless it was
// NoSync. What it failed for is there whole or not at all. An error of Append
// is final: a sync that failed says nothing about what is on the disk, and the
// process ends.
//
// # Segments
//
// The log is a chain of files, log/NUMBER.log, NUMBER being 16 hexadecimal
// digits, without a gap. A segment is written under the name with .tmp after
// it, synced, renamed, and the folder synced, with its first batch in it. All
// of a segment is synced before the next one gets its name: only the newest
// can have a torn end. The oldest are removed one by one, oldest first, the
// folder synced after each. All numbers are little-endian; bytes not named are
// zero. Checksums are CRC-32C (Castagnoli).
//
//	segment     header batch...
//
//	header      512 bytes
//	0    8      "HOLDFLOG"
//	8    4      format version, 1
//	12   4      sealing: 0 none (records are in the clear)
//	16   8      segment number, from 1
//	24   8      sequence number of the first record
//	32   8      length of the segment before, 0 in number 1
//	40   8      length this file had when it got its name: all of it was synced
//	48   4      chain of the segment before
//	52   2, 2   lengths of the cluster ID and the node ID, at most 128 each
//	56   8      raft ID
//	64   128    cluster ID
//	192  128    node ID
//	508  4      checksum of the 508 bytes before
//
// Magic, version and the header's checksum keep their places in later
// versions; another version or sealing is refused.
//
// # Batches
//
// A batch is what one write writes. It begins at a multiple of 64, so that its
// header lies in one sector (512 bytes).
//
//	batch       header record... padding trailer
//
//	header      64 bytes
//	0    4      "HFB1"
//	4    4      number of records, at least 1
//	8    8      length of the batch, header to trailer, a multiple of 64
//	16   8      segment number
//	24   8      offset of the batch in the file
//	32   8      offset in the file up to which everything was synced before
//	            this batch was written, as was every older segment
//	40   8      sequence number of the first record
//	48   8      mask: records and padding are XORed with it, word by word
//	60   4      checksum of the 60 bytes before, begun with the checksum of the
//	            segment's header
//
//	trailer     16 bytes
//	0    4      checksum of the batch up to here, as it is on disk
//	4    4      "HFBE"
//	8    8      length of the batch again
//
// The mask is nearly always 0. Where a sector of the batch would be all zero,
// or all but one word, one is chosen so that none is: a sector of zeros was
// never written, whatever the entries hold, and no single bit flip makes one.
//
// The chain of a segment is the checksum of its header's checksum and, one
// after another, its batches'. The next segment's header holds it.
//
// # Records
//
//	record      header body, padded to a multiple of 8
//
//	header      40 bytes
//	0    4      length of the body
//	4    1      kind
//	5    1      type
//	8    8      sequence number
//	16   8      index
//	24   8      term
//	36   4      checksum of the 36 bytes before and the body
//
//	kind        index, term                  type        body
//	1 hard state  commit, term               0           raftpb.HardState
//	2 entry       the entry's                the entry's raftpb.Entry
//	3 marker      the snapshot's             see below   raftpb.ConfState
//	4 base        the last entry before      0           empty
//	              this segment (0, 0: none)
//	5 opened      0, 0                       0           empty
//	6 closed      0, 0                       0           empty
//
// The fields of the header are what a sealed record will have as associated
// data, with the identity and the segment number of the segment's header. A
// sequence number never names two records: they go up by one, and each run (an
// Open) begins with an opened record at the next multiple of 2^40, so that
// those of a torn end are not used again.
//
// A segment's first batch begins with a base record, the hard state and the
// latest marker, carried (types 2 and 3), so that all older segments can be
// removed. A carried marker voids nothing.
//
// An entry record at index i voids all earlier entry records ≥ i. A marker
// that is received (type 1) voids every entry record before it in the log,
// whatever its index. A local one (type 0) voids none; the entries up to its
// index need not be there. Within a batch the marker comes first, then the
// entries, then the hard state. After each batch commit ≤ last entry, snapshot
// index ≤ commit, and no entry's term is above the hard state's.
//
// # Torn ends
//
// A damaged batch is the torn end of the log, and is dropped with all after
// it, only if it is in the newest segment, beyond what was synced before the
// segment had its name; and its end is missing, or one of its sectors, or the
// part of one that belongs to it, is all zero; and no batch header after it
// says that it was synced. A closing mark is written after all before it was
// synced, and a run's opened record is synced before anything follows it: so
// nothing can be torn at or before a closing mark that is there, and after it
// only opened records. All else that is damaged is a DamageError that names file, offset and record.
//
// # Snapshots
//
// snap/snap-INDEX-TERM.snap, 16 hexadecimal digits each; temporary ones end in
// .tmp. A snapshot is sections of records; what they mean is the store's.
//
//	snapshot    header chunk... trailer chunk, and no byte after it
//
//	header      64 bytes
//	0    8      "HOLDSNAP"
//	8    4      format version, 1
//	12   4      sealing: 0 none
//	16   8      index
//	24   8      term
//	60   4      checksum of the 60 bytes before
//
//	chunk       32 bytes, and the payload
//	0    4      length of the payload, at most 256 KiB and one record
//	4    1      kind: 1 a section begins, 2 records, 3 trailer
//	8    8      number of the chunk, from 0
//	16   4      number of records
//	28   4      checksum of the 28 bytes before and the payload
//
// The payload of kind 1 is the section's name (1 to 64 bytes of printable
// ASCII, each name once, at most 256), of kind 2 the records, each a 32-bit
// length (at most 16 MiB) and its bytes. Of kind 3: the numbers of sections,
// of records, of bytes in records, of chunks before it, 8 bytes each, and the
// checksum of the header's checksum and all chunks', 4 bytes and 4 of zero.
package storage
