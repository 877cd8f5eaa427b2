package sim

import (
	"fmt"
	"hash/fnv"
	"sort"
	"time"

	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// truth is what was committed, as the first member that applied it saw it. Every member, every
// watcher and every answer is held against it.
type truth struct {
	*world
	kinds []kind

	entries map[uint64]entrySeen  // applied, by index
	beside  map[uint64]string     // what stands beside the objects, by index
	whole   map[uint64]uint64     // hash of all objects, by index
	newest  uint64                // index
	leaders map[uint64]uint64     // raft ID, by term
	logs    map[logPlace]logEntry // appended by anyone

	revisions []revisionSeen      // that with number r is at r-1
	history   map[string][]seenAt // of each object
	byOp      map[string]uint64   // revision that an operation made
	byRequest map[string]uint64   // revision that a request made
	forbidden map[string]string   // operations that must not show, and why
	leftovers map[string]bool     // transactions that must be refused
	removed   map[uint64]bool     // raft IDs
	told      uint64              // newest revision that any client was told of
}

type entrySeen struct {
	term uint64
	sum  uint64
}

type logPlace struct{ index, term uint64 }

type logEntry struct{ before, sum uint64 } // term of the entry before

type revisionSeen struct {
	hash  string
	txnID string
	at    time.Time
	ids   string
}

type seenAt struct {
	revision uint64
	Seen
}

func newTruth(w *world) *truth {
	return &truth{
		world: w, kinds: kinds(),
		entries: map[uint64]entrySeen{}, beside: map[uint64]string{}, whole: map[uint64]uint64{},
		leaders: map[uint64]uint64{}, logs: map[logPlace]logEntry{}, history: map[string][]seenAt{},
		byOp: map[string]uint64{}, byRequest: map[string]uint64{}, forbidden: map[string]string{},
		leftovers: map[string]bool{}, removed: map[uint64]bool{},
	}
}

func sumOf(data []byte) uint64 {
	h := fnv.New64a()
	h.Write(data)
	return h.Sum64()
}

// applied takes an entry that a member applies.
func (t *truth) applied(who string, e state.Committed) {
	now := entrySeen{e.Term, sumOf(fmt.Appendf(append([]byte(nil), e.Data...), "%d %d", e.Change, e.Peer.RaftID))}
	if was, ok := t.entries[e.Index]; ok && was != now {
		t.fail("state machine safety", "%s applies entry %d of term %d; another member applied another one of term %d there",
			who, e.Index, e.Term, was.term)
	} else if ok {
		return
	}
	t.entries[e.Index] = now
	t.newest = max(t.newest, e.Index)
	switch {
	case e.Change == state.RemovePeer:
		t.removed[e.Peer.RaftID] = true
	case e.Change != state.NoChange && t.removed[e.Peer.RaftID] && e.Change != state.UpdatePeer:
		t.fail("removed IDs are not used again", "%s applies a change at entry %d that adds member %d, which was removed",
			who, e.Index, e.Peer.RaftID)
	}
}

// follows takes what stands beside the objects at an index.
func (t *truth) follows(who string, s *store.MemoryStore) {
	at, st := s.Applied(), s.Status()
	peers := ""
	for _, p := range at.Peers {
		peers += fmt.Sprintf(" %d:%s:%v", p.RaftID, p.Addr, p.Learner)
	}
	now := fmt.Sprintf("term %d revision %d floor %d hash %x log %d/%d requests %d after %d peers%s removed %v",
		at.Term, at.Revision, st.Floor, at.Hash, st.LogEntries, st.LogBytes, st.Requests, st.RequestsFloor, peers, at.Removed)
	if was, ok := t.beside[at.Index]; ok && was != now {
		t.fail("members agree at an index", "%s has at entry %d: %s; another one had: %s", who, at.Index, now, was)
	}
	t.beside[at.Index] = now
	if at.Index%8 != 0 {
		return
	}
	h := fnv.New64a()
	for o := range storetest.Objects(s.Root()) {
		data, err := o.Marshal()
		if err != nil {
			t.fail("members agree on all objects", "%s: %v", who, err)
		}
		h.Write(data)
	}
	if was, ok := t.whole[at.Index]; ok && was != h.Sum64() {
		t.fail("members agree on all objects", "%s has other objects at entry %d than another member had", who, at.Index)
	}
	t.whole[at.Index] = h.Sum64()
}

// revision takes a revision that a member shows, be it the first to do so or not.
func (t *truth) revision(who string, r store.Revision) {
	seen := revisionSeen{hash: string(r.Hash), txnID: string(r.TxnID), at: r.At}
	for _, c := range r.Changes {
		seen.ids += " " + c.Object().GetID()
	}
	switch n := uint64(len(t.revisions)); {
	case r.Revision == 0 || r.Revision > n+1:
		t.fail("revisions go up by one", "%s shows revision %d, the newest was %d", who, r.Revision, n)
	case r.Revision <= n:
		was := t.revisions[r.Revision-1]
		if was.hash != seen.hash || was.txnID != seen.txnID || was.ids != seen.ids || !was.at.Equal(seen.at) {
			t.fail("a revision means one state", "%s shows at revision %d transaction %x with%s and hash %x; another one had %x with%s and %x",
				who, r.Revision, seen.txnID, seen.ids, seen.hash, was.txnID, was.ids, was.hash)
		}
		return
	}
	if n := len(t.revisions); n > 0 && seen.at.Before(t.revisions[n-1].at) {
		t.fail("time does not run back", "revision %d is of %v, the one before of %v", r.Revision, seen.at, t.revisions[n-1].at)
	}
	t.revisions = append(t.revisions, seen)
	if t.leftovers[seen.txnID] {
		t.fail("the fence holds", "%s applied at revision %d a transaction that was made on another state", who, r.Revision)
	}
	t.noteRequest(r)
	for _, c := range r.Changes {
		t.change(r.Revision, c)
	}
	t.checkSum(r.Revision)
}

func (t *truth) noteRequest(r store.Revision) {
	if r.Request.ID == "" {
		return
	}
	if before, ok := t.byRequest[r.Request.ID]; ok {
		t.fail("nothing is done twice", "request %s was done at revision %d and at %d", r.Request.ID, before, r.Revision)
	}
	t.byRequest[r.Request.ID] = r.Revision
}

// change takes what a revision did to an object.
func (t *truth) change(revision uint64, c state.Change) {
	id := c.Object().GetID()
	now := seenAt{revision: revision}
	if c.New != nil {
		now.Seen = t.kinds[number(c.Kind)].see(c.New)
		if now.Version != revision {
			t.fail("a revision means one state", "%s has version %d at revision %d", id, now.Version, revision)
		}
		t.madeBy(now.Op, revision)
	}
	old := t.at(id, revision-1)
	if (c.Old == nil) != (old.Version == 0) {
		t.fail("a revision means one state", "the change of %s at revision %d was made from another state than the one before", id, revision)
	}
	t.history[id] = append(t.history[id], now)
}

// madeBy notes which revision an operation made.
func (t *truth) madeBy(op string, revision uint64) {
	if before, ok := t.byOp[op]; ok && before != revision {
		t.fail("nothing is done twice", "operation %s was done at revision %d and at %d", op, before, revision)
	}
	t.byOp[op] = revision
	if why, ok := t.forbidden[op]; ok {
		t.fail("what failed does not show", "operation %s is done at revision %d, and was told: %s", op, revision, why)
	}
}

// made returns the revision that a write made whose client does not know, or 0.
func (t *truth) made(c callSeen) uint64 {
	if c.op.Verb == Remove { // leaves no object that could tell
		return t.byRequest[c.request]
	}
	return t.byOp[c.op.ID]
}

// forbid notes that a client was told that an operation was not done and never will be.
func (t *truth) forbid(op, why string) {
	if revision, ok := t.byOp[op]; ok {
		t.fail("what failed does not show", "operation %s was done at revision %d, and is told: %s", op, revision, why)
	}
	t.forbidden[op] = why
}

// at is an object at a revision.
func (t *truth) at(id string, revision uint64) Seen {
	h := t.history[id]
	i := sort.Search(len(h), func(i int) bool { return h[i].revision > revision })
	if i == 0 {
		return Seen{}
	}
	return h[i-1].Seen
}

// checkSum holds the accounts against the money that there is.
func (t *truth) checkSum(revision uint64) {
	sum, there := 0, 0
	for i := range accounts {
		if s := t.at(accountID(i), revision); s.Version != 0 {
			sum += s.number()
			there++
		}
	}
	if there != 0 && (there != accounts || sum != accounts*money) {
		t.fail("sums are kept", "at revision %d there are %d accounts with %d", revision, there, sum)
	}
}

// newestRevision is the newest one that anybody applied.
func (t *truth) newestRevision() uint64 { return uint64(len(t.revisions)) }

// shows holds what a read at a revision saw of an object against the truth.
func (t *truth) shows(who, id string, revision uint64, seen Seen) {
	if revision > t.newestRevision() {
		t.fail("reads show what was committed", "%s shows revision %d, and %d is the newest that was applied", who, revision, t.newestRevision())
	}
	if was := t.at(id, revision); was != seen {
		t.fail("reads show what was committed", "%s shows %s at revision %d as %+v, and it was %+v", who, id, revision, seen, was)
	}
}

// elected takes a leader, whose log must hold all that was committed.
func (t *truth) elected(term, raftID uint64) {
	if old, ok := t.leaders[term]; ok && old != raftID {
		t.fail("one leader a term", "members %d and %d lead in term %d", old, raftID, term)
	}
	t.leaders[term] = raftID
}
