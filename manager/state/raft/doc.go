// Package raft replicates the store's transactions among the managers of a cluster, over
// go.etcd.io/raft.
//
// # Goroutines
//
// The loop (Node.Run) owns the raw node and everything in core; nothing else touches them.
// Between events it asks core for its effects and carries them out: messages go to the
// transport, log writes to the appender, committed entries to the applier. The appender owns
// the log on disk: it merges what is queued into one write and one sync, and only then gives
// raft's responses back to the loop. The applier owns the store's Apply and Restore. The saver
// writes snapshots, one at a time, from an immutable image that the applier took between two
// calls of Apply. All take their work in order from queues that do not block who fills them.
//
// core is the step from events to effects. It starts no goroutine, reads no clock and does no
// I/O. Steps drives a whole node in the same way, one piece of work after another, for a
// simulator with a clock, a network and a disk of its own.
//
// # Snapshots
//
// A snapshot from the leader is checked and made durable before core hears of it, stepped once
// nothing is being applied, named by the log, and installed before raft hears that it is there.
// One of this member's is named by the log together with a commit index that reaches it, and
// the log is cut after that, never above what raft knows as applied. A member that is newer
// than the last snapshot has one made for it.
//
// # Faults
//
// An error of the disk, of Apply or of Restore ends Run: the process must end, and the outcome
// of what was in flight is unknown. So does ErrLogLost. ErrRemoved is no fault.
package raft
