// Package store keeps the objects of a cluster in memory, over go-memdb, as one replicated
// state machine.
//
// # Head and root
//
// Writers run one after another, under one lock, against HEAD: the state with every change
// that was made here and is not yet committed. Update makes a transaction on HEAD, keeps a
// snapshot of what it left, and hands the transaction on; the lock is not held while raft
// replicates it. Readers see only ROOT, the state at the last committed revision, through one
// atomic pointer. When raft says that a transaction is committed, Apply publishes the kept
// snapshot as ROOT if the transaction is the first one that waits, and applies its actions to
// ROOT otherwise; both give the same state on every member.
//
// # Who may call what
//
// View, At, Changes, Update, Batch, ViewAndWatch and the finders may be called from anywhere.
// Apply, Restore and Applied belong to raft's apply goroutine; Elected, Lost, Next and Refused
// to its loop. Nothing here reads a clock or a source of randomness: both are passed in, and
// only Update uses them.
//
// # Locks
//
// mu is the write lock and guards head. queue.mu guards what waits for its outcome; it is
// taken after mu, and never held while a caller's function runs. The root has no lock.
package store
