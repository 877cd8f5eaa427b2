package storage

import (
	"errors"
	"fmt"
)

// Errors that callers tell apart.
var (
	// ErrNoLog is returned by Open and Verify for a folder that holds no log.
	ErrNoLog = errors.New("no raft log here")
	// ErrLogExists is returned by Create for a folder that holds a log.
	ErrLogExists = errors.New("a raft log is already here")
	// ErrClosed is returned by every call after Close, Commit or Abort.
	ErrClosed = errors.New("closed")
)

// remedy is what an operator can do about a log that cannot be used.
const remedy = "remove this member from the cluster and let it join again with an empty state folder, " +
	"or restore a backup; do not edit or delete single files"

// DamageError says that bytes on disk are not what was written: a checksum
// that does not match, a file that is missing or cut off below what is known
// to have been synced. Nothing was changed on disk.
type DamageError struct {
	File   string
	Offset int64  // of the record or batch in the file
	Record uint64 // sequence number of the record, as far as it is known
	Reason string
}

// Error names the file, the offset, the record, the reason and the way out.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at offset %d (record %#x): %s: %s",
		e.File, e.Offset, e.Record, e.Reason, remedy)
}

// VersionError says that a file has a format that this program does not read.
type VersionError struct {
	File string
	What string // "version" or "sealing"
	Have uint32
}

// Error names the file and what to do.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%s has format %s %d, which this version does not read: use the version that wrote it or a newer one",
		e.File, e.What, e.Have)
}

// InconsistentError says that the log's records are intact and do not agree
// with each other: some of what was durable is gone.
type InconsistentError struct {
	Dir    string
	Reason string
}

// Error names the folder, the disagreement and the way out.
func (e *InconsistentError) Error() string {
	return fmt.Sprintf("raft log %s: %s: %s", e.Dir, e.Reason, remedy)
}

// sequenceError says that a batch cannot follow what the log holds. Append
// returns it as a programming error, Open as an InconsistentError.
type sequenceError struct{ reason string }

func (e *sequenceError) Error() string { return e.reason }

func refuse(format string, args ...any) error {
	return &sequenceError{fmt.Sprintf(format, args...)}
}
