// Package mutant names the faults that can be planted in the product, for a simulator to prove
// that it finds them. Where the product asks for one it gets no, at no cost: only a build with
// the tag mutants can plant any.
package mutant

// Name names a planted fault.
type Name string

// The faults. The comment says what is wrong.
const (
	// SentBeforeSync: what a log write is to be answered with is sent when the write is handed on,
	// not when it is on disk.
	SentBeforeSync Name = "sent-before-sync"
	// SyncSkipped: a segment of the log counts as synced, and is not.
	SyncSkipped Name = "sync-skipped"
	// LocalRead: a read index is answered at once, by whoever is asked.
	LocalRead Name = "local-read"
	// AckOnAppend: a transaction is told to be committed when it is handed to raft.
	AckOnAppend Name = "ack-on-append"
	// ApplyErrorIgnored: the applier goes on after entries that could not be applied.
	ApplyErrorIgnored Name = "apply-error-ignored"
	// TornDropsSynced: with a torn end of the log the whole batch before it is dropped too.
	TornDropsSynced Name = "torn-drops-synced"
	// SuffixKept: the log, read again, has entries after a received snapshot that it should have
	// voided.
	SuffixKept Name = "suffix-kept"
	// SnapshotWithoutHardState: a snapshot is named before the log says that its index is
	// committed.
	SnapshotWithoutHardState Name = "snapshot-without-hard-state"
	// SnapshotConfState: a local snapshot is named with the membership of a later index.
	SnapshotConfState Name = "snapshot-conf-state"
	// VoteNotPersisted: the log does not say whom this member voted for.
	VoteNotPersisted Name = "vote-not-persisted"
	// ForwardedTwice: a call whose outcome is unknown is passed on again, as a new request.
	ForwardedTwice Name = "forwarded-twice"
	// HeadKept: HEAD stays as it is when leadership is lost and won again.
	HeadKept Name = "head-kept"
	// StaleQueue: what was not handed to raft when leadership was lost is handed to it in the next
	// term.
	StaleQueue Name = "stale-queue"
	// FenceWithoutParent: a transaction fits whatever it was made on, if its revision is the next
	// one.
	FenceWithoutParent Name = "fence-without-parent"
	// FenceWithoutTerm: a transaction fits though it was made in an earlier term than its entry's.
	FenceWithoutTerm Name = "fence-without-term"
	// KeptByRevision: the snapshot kept for one transaction is published for another of the same
	// revision.
	KeptByRevision Name = "kept-by-revision"
	// HeadToRoot: HEAD goes back to ROOT when raft refuses an entry, though it has taken some
	// before.
	HeadToRoot Name = "head-to-root"
	// ErrorAtOnce: the error of a function that saw uncommitted changes is returned at once.
	ErrorAtOnce Name = "error-at-once"
	// ErrorWithoutReadIndex: the error of a function is returned though another member may lead.
	ErrorWithoutReadIndex Name = "error-without-read-index"
	// JoinedReadIndex: a read joins a read index that was asked for before it began.
	JoinedReadIndex Name = "joined-read-index"
	// OvertakenAfterJump: after a snapshot a transaction that is in it is told to be overtaken.
	OvertakenAfterJump Name = "overtaken-after-jump"
	// EventsBeforeCommit: changes are shown that are not committed.
	EventsBeforeCommit Name = "events-before-commit"
	// EarlyLeader: a new leader takes writes before it has applied an entry of its term.
	EarlyLeader Name = "early-leader"
	// RequestsMissing: a snapshot has no request records.
	RequestsMissing Name = "requests-missing"
	// RequestFloorMissing: a snapshot does not tell which requests were forgotten.
	RequestFloorMissing Name = "request-floor-missing"
	// FloorMissing: a restored member has none of the revisions before the present one.
	FloorMissing Name = "floor-missing"
	// FloorUndone: the floor goes back when a kept snapshot is published.
	FloorUndone Name = "floor-undone"
	// ObjectMissing: a snapshot lacks its last object.
	ObjectMissing Name = "object-missing"
	// RemovedIDUsed: a removed member's raft ID may be used again.
	RemovedIDUsed Name = "removed-id-used"
	// RequestForgotten: a request is run again while its first run waits to be committed.
	RequestForgotten Name = "request-forgotten"
	// UnconfirmedID: a request ID that is newer than HEAD is refused without making sure that this
	// member leads.
	UnconfirmedID Name = "unconfirmed-id"
	// HeadPassed: HEAD stays where it is when ROOT goes past it, after a fault of the leader's own.
	HeadPassed Name = "head-passed"
	// HeadBegunAnew: an answer is told although HEAD was set to ROOT since it was made.
	HeadBegunAnew Name = "head-begun-anew"
	// MinRead: a read does not wait for the revision that it asks for.
	MinRead Name = "min-read"
)

// All returns every fault, always in the same order.
func All() []Name {
	return []Name{
		SentBeforeSync,
		SyncSkipped,
		LocalRead,
		AckOnAppend,
		ApplyErrorIgnored,
		TornDropsSynced,
		SuffixKept,
		SnapshotWithoutHardState,
		SnapshotConfState,
		VoteNotPersisted,
		ForwardedTwice,
		HeadKept,
		StaleQueue,
		FenceWithoutParent,
		FenceWithoutTerm,
		KeptByRevision,
		HeadToRoot,
		ErrorAtOnce,
		ErrorWithoutReadIndex,
		JoinedReadIndex,
		OvertakenAfterJump,
		EventsBeforeCommit,
		EarlyLeader,
		RequestsMissing,
		RequestFloorMissing,
		FloorMissing,
		FloorUndone,
		ObjectMissing,
		RemovedIDUsed,
		RequestForgotten,
		MinRead, UnconfirmedID, HeadPassed, HeadBegunAnew,
	}
}
