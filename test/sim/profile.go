package sim

import (
	"time"

	"holdfast/manager/state/raft"
	"holdfast/manager/state/store"
)

// profile is what a run is like: how big things are, and how much breaks. A number of times
// means once in so many, and 0 never.
type profile struct {
	length  time.Duration
	members int
	clients int
	think   time.Duration // between two operations of a client, on average
	reads   int           // so often it reads, whatever else it would do
	raft    raft.Settings
	segment int64 // bytes of the raft log
	store   store.Options

	loop, disk, apply, save, taskDelay time.Duration // at most
	net, slowNet                       time.Duration
	patience                           time.Duration // of a client
	down                               time.Duration // of a machine that crashed
	skew                               time.Duration // of clocks

	lose, twice, slowMessage, loseCall            int
	diskFails, diskHangs, crashInStart            int
	applyFails, refusals, leftovers               int
	snapBreaks, crashAtSnapshot                   int
	crashEvery, cutEvery, pauseEvery, strandEvery time.Duration
	operateEvery                                  time.Duration

	// strangers tells that leftovers are of the leader's own term, and made on another state:
	// the leader must take them for a fault of its own, and begin at ROOT again. That costs
	// transactions that were made on top, so in such a run these may be refused.
	strangers bool

	// byHand tells that a machine that went down is started by a script.
	byHand bool
}

// newProfile draws a profile: some runs are calm, and some are hell.
func newProfile(w *world) profile {
	pick := func(of ...time.Duration) time.Duration { return of[w.rng.IntN(len(of))] }
	rate := func(of ...int) int { return of[w.rng.IntN(len(of))] }
	ms := time.Millisecond
	p := profile{
		length: 2 * time.Minute, members: 3 + 2*w.rng.IntN(2), clients: w.between(4, 8),
		think: pick(50*ms, 150*ms, 400*ms, 1000*ms), reads: rate(0, 0, 2),
		raft: raft.Settings{
			SnapshotInterval: uint64(w.between(8, 60)), KeepEntries: uint64(w.between(1, 20)),
		},
		segment: int64(rate(4<<10, 20<<10, 1<<20)),
		store: store.Options{
			MaxPending: w.between(2, 20), MaxLog: w.between(40, 120), MaxRequests: w.between(20, 150),
			MaxEntryBytes: rate(300, 2000, 1<<20),
		},
		loop: pick(50*time.Microsecond, 2*ms), disk: pick(ms, 10*ms, 60*ms), apply: pick(ms, 30*ms, 300*ms),
		save: pick(ms, 200*ms), taskDelay: pick(100*time.Microsecond, 20*ms),
		net: pick(2*ms, 20*ms, 80*ms), slowNet: pick(100*ms, 2*time.Second),
		patience: pick(500*ms, 3*time.Second, 15*time.Second),
		down:     pick(500*ms, 5*time.Second, 20*time.Second),
		skew:     pick(0, 5*time.Second),
		lose:     rate(0, 0, 100, 20), twice: rate(0, 50, 10), slowMessage: rate(0, 40, 8), loseCall: rate(0, 50, 10),
		diskFails: rate(0, 0, 3000, 600), diskHangs: rate(0, 500, 100), crashInStart: rate(0, 6, 2),
		applyFails: rate(0, 0, 1500, 400), refusals: rate(0, 60, 15), leftovers: rate(0, 800, 100),
		snapBreaks: rate(0, 4), crashAtSnapshot: rate(0, 6, 2), crashEvery: pick(0, 20*time.Second, 5*time.Second, 2*time.Second),
		cutEvery: pick(0, 15*time.Second, 4*time.Second), pauseEvery: pick(0, 20*time.Second, 6*time.Second),
		operateEvery: pick(0, 20*time.Second, 6*time.Second),
		strangers:    w.rng.IntN(4) == 0,
	}
	if w.chance(3) { // hardly any log is kept, so that many snapshots are sent
		p.raft = raft.Settings{SnapshotInterval: uint64(w.between(2, 6)), KeepEntries: 1}
		if p.strandEvery = pick(0, 8*time.Second); p.strandEvery > 0 {
			p.raft.SnapshotInterval, p.store.MaxEntryBytes = 2, 300
			p.clients, p.think, p.crashAtSnapshot = 8, 150*ms, 2
			p.patience = pick(3*time.Second, 15*time.Second)
			p.cutEvery, p.crashEvery = pick(0, 15*time.Second), pick(0, 20*time.Second)
		}
	}
	if w.chance(5) { // many readers of members that are behind
		p.length, p.clients, p.think, p.reads = 40*time.Second, 8, 50*ms, 2
		p.net, p.apply, p.patience = 80*ms, 300*ms, 15*time.Second
		p.loseCall, p.crashEvery, p.lose = 0, pick(0, 20*time.Second), rate(0, 100)
	}
	return p
}
