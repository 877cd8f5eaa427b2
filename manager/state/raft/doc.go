// Package raft replicates the store's transactions among the managers of a cluster, over
// go.etcd.io/raft.
//
// # Goroutines
//
// The loop (Node.Run) owns the raw node and everything in core; nothing else touches them.
// Between events it asks core for its effects and carries them out: messages go to the
// transport, log writes to the appender, committed entries to the applier. The appender owns
// the log on disk: it merges what is queued into one write and one sync, and only then gives
// raft's responses back to the loop. The applier owns the store's Apply and Restore. Both take
// their work in order from a queue that does not block the loop. A snapshot is written by a
// goroutine of its own, one at a time, from an immutable image.
//
// core is the step from events to effects. It starts no goroutine, reads no clock and does no
// I/O, so that a simulator can drive it with a clock, a network and a disk of its own.
//
// # Faults
//
// An error of the disk, of Apply or of Restore ends Run: the process must end, and the outcome
// of what was in flight is unknown.
package raft
