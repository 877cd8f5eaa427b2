package storage_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
)

// model is what a log must hold. It is copied for each step: a crash may leave
// any state from the last synced one on.
type model struct {
	hs        *raftpb.HardState
	snap      storage.Marker
	entries   map[uint64]*raftpb.Entry
	low       uint64            // entries begin at low or, where compacted, later
	compacted uint64            // entries at and below it may be gone
	last      uint64            // of the last entry or the received snapshot
	terms     map[uint64]uint64 // of entries that are gone too
}

func newModel() *model {
	return &model{hs: hard(0, 0, 0), entries: map[uint64]*raftpb.Entry{}, terms: map[uint64]uint64{0: 0}, low: 1}
}

func (m *model) clone() *model {
	c := *m
	c.entries, c.terms = map[uint64]*raftpb.Entry{}, map[uint64]uint64{}
	for i, e := range m.entries {
		c.entries[i] = e
	}
	for i, t := range m.terms {
		c.terms[i] = t
	}
	return &c
}

// after is the model with a batch taken in.
func (m *model) after(b storage.Batch) *model {
	c := m.clone()
	if b.Snapshot != nil {
		c.snap = *b.Snapshot
		if c.snap.Received {
			clear(c.entries)
			clear(c.terms)
			c.low, c.last = c.snap.Index+1, c.snap.Index
			c.terms[c.last] = c.snap.Term
		}
	}
	for _, e := range b.Entries {
		for i := e.GetIndex(); i <= c.last; i++ {
			delete(c.entries, i)
			delete(c.terms, i)
		}
		c.last = e.GetIndex()
		c.entries[c.last], c.terms[c.last] = e, e.GetTerm()
	}
	if b.HardState != nil {
		c.hs = b.HardState
	}
	return c
}

// differs says how a state is not the model's, or "".
func (m *model) differs(s *storage.State) string {
	var b strings.Builder
	if !proto.Equal(s.HardState, m.hs) {
		fmt.Fprintf(&b, "hard state %v, want %v; ", s.HardState, m.hs)
	}
	if s.Snapshot.Index != m.snap.Index || s.Snapshot.Term != m.snap.Term || s.Snapshot.Received != m.snap.Received {
		fmt.Fprintf(&b, "snapshot %+v, want %+v; ", s.Snapshot, m.snap)
	}
	if s.LastIndex() != m.last {
		fmt.Fprintf(&b, "last %d, want %d; ", s.LastIndex(), m.last)
	}
	if s.FirstIndex < m.low || s.FirstIndex > max(m.low, m.compacted+1) {
		fmt.Fprintf(&b, "first %d, want %d to %d; ", s.FirstIndex, m.low, m.compacted+1)
	}
	if s.PrevTerm != m.terms[s.FirstIndex-1] {
		fmt.Fprintf(&b, "term %d before %d, want %d; ", s.PrevTerm, s.FirstIndex, m.terms[s.FirstIndex-1])
	}
	for _, e := range s.Entries {
		if !proto.Equal(e, m.entries[e.GetIndex()]) {
			fmt.Fprintf(&b, "entry %d; ", e.GetIndex())
		}
	}
	return b.String()
}

// run is a log under test and what it may hold.
type run struct {
	t     *testing.T
	rng   *rand.Rand
	fs    *memfs.FS
	log   *storage.Log
	legal []*model // oldest first; the last one is that of the log that is open
	clean bool     // it was closed
	note  []string
}

func (r *run) now() *model { return r.legal[len(r.legal)-1] }

// batch makes up a batch that raft could ask for.
func (r *run) batch() storage.Batch {
	m, rng := r.now(), r.rng
	term, vote, commit := m.hs.GetTerm(), m.hs.GetVote(), m.hs.GetCommit()
	var b storage.Batch
	switch kind := rng.IntN(10); {
	case kind < 2 && m.last > commit:
		b.HardState = hard(term, vote, commit+1+uint64(rng.IntN(int(m.last-commit))))
		b.NoSync = true
		return b
	case kind == 2 && commit > m.snap.Index && m.terms[commit] > 0:
		b.Snapshot = local(commit, m.terms[commit])
		return b
	case kind == 3:
		term++
		index := max(commit, m.snap.Index) + 1 + uint64(rng.IntN(10))
		b.Snapshot = received(index, term)
		b.HardState = hard(term, 0, index)
		if rng.IntN(2) == 0 {
			b.Entries = r.entries(index+1, term)
		}
		return b
	case kind == 4:
		term, vote = term+1, uint64(rng.IntN(3))
	}
	from := m.last + 1
	if term > m.terms[m.last] && m.last > max(commit, m.snap.Index) && rng.IntN(2) == 0 {
		from = max(commit, m.snap.Index) + 1 + uint64(rng.IntN(int(m.last-max(commit, m.snap.Index))))
	}
	b.Entries = r.entries(from, max(term, 1))
	last := b.Entries[len(b.Entries)-1].GetIndex()
	b.HardState = hard(max(term, 1), vote, commit+uint64(rng.IntN(int(last-commit)+1)))
	return b
}

func (r *run) entries(from, term uint64) []*raftpb.Entry {
	var es []*raftpb.Entry
	for range 1 + r.rng.IntN(4) {
		data := make([]byte, r.rng.IntN(10)*r.rng.IntN(200))
		if r.rng.IntN(3) > 0 {
			for i := range data {
				data[i] = byte(r.rng.Uint32())
			}
		}
		es = append(es, ent(from, term, string(data)))
		from++
	}
	return es
}

// step does one thing to the log and reports whether it failed.
func (r *run) step() bool {
	var err error
	switch k := r.rng.IntN(20); {
	case k == 0:
		err = r.log.Close()
		r.clean = err == nil
		if r.clean {
			r.legal = r.legal[len(r.legal)-1:]
			r.reopen()
		}
	case k < 3:
		m := r.now().clone()
		m.compacted = max(m.compacted, m.snap.Index-min(m.snap.Index, uint64(r.rng.IntN(8))))
		if index := m.compacted; index > 0 {
			// Whether it is done or not, older entries may be gone now.
			for _, l := range r.legal {
				l.compacted = max(l.compacted, index)
			}
			err = r.log.Compact(index)
			r.note = append(r.note, fmt.Sprintf("compact %d: %v", index, err))
		}
	default:
		b := r.batch()
		next := r.now().after(b)
		r.legal = append(r.legal, next)
		err = r.log.Append(b)
		if err == nil && !b.NoSync {
			r.legal = r.legal[len(r.legal)-1:]
		}
		r.note = append(r.note, fmt.Sprintf("append hs %v, snap %v, %d entries, nosync %v: %v", b.HardState, b.Snapshot, len(b.Entries), b.NoSync, err))
	}
	if err != nil && !errors.Is(err, memfs.ErrCrashed) && !errors.Is(err, syscall.EIO) {
		r.fatalf("%v", err)
	}
	return err != nil
}

func (r *run) fatalf(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("%s\n%s", strings.Join(r.note, "\n"), fmt.Sprintf(format, args...))
}

// reopen opens the log, with crashes while it is being repaired, and holds it
// against what is legal.
func (r *run) reopen() {
	r.t.Helper()
	for try := 0; ; try++ {
		if try < 3 && r.rng.IntN(2) == 0 {
			r.fs.CrashAt(1 + r.rng.IntN(4))
		}
		opts := storage.Options{SegmentSize: 2000 + int64(r.rng.IntN(6000))}
		log, s, err := storage.Open(r.fs, dir, opts)
		r.fs.CrashAt(0)
		if errors.Is(err, memfs.ErrCrashed) {
			r.note = append(r.note, "crash in open")
			r.fs.Crash()
			continue
		}
		if errors.Is(err, syscall.EIO) {
			r.fs.SetFault(nil)
			r.fs.Restart()
			continue
		}
		if err != nil {
			r.fatalf("open: %v", err)
		}
		if r.clean && try == 0 && !s.Clean {
			r.fatalf("closed, and opened not clean")
		}
		r.clean = false
		var why []string
		for i, m := range r.legal {
			d := m.differs(s)
			if d == "" {
				r.legal, r.log = []*model{r.legal[i]}, log
				r.note = append(r.note, fmt.Sprintf("open: %s, dropped %d", span(s), s.Dropped))
				return
			}
			why = append(why, d)
		}
		r.fatalf("opened as %s, not one of %d states:\n%s", span(s), len(r.legal), strings.Join(why, "\n"))
	}
}

// TestCrashes drives logs through appends, snapshots, compactions, failing
// syncs, deaths of the process and losses of power at any effect. More seeds:
// STORAGE_SEEDS=5000.
func TestCrashes(t *testing.T) {
	t.Parallel()
	seeds := uint64(60)
	if s := os.Getenv("STORAGE_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		must(t, err)
		seeds = n
	}
	for seed := range seeds {
		m := newFS(seed)
		r := &run{t: t, rng: rand.New(rand.NewPCG(seed, 7)), fs: m, note: []string{fmt.Sprintf("seed %d", seed)}}
		r.legal = []*model{newModel()}
		b := r.batch()
		r.legal = []*model{r.now().after(b)}
		for try := 1; ; try++ {
			m.CrashAt(try)
			if err := storage.Create(m, dir, ident, b); err == nil {
				break
			}
			m.Crash()
			if ok, err := storage.Exists(m, dir); err != nil || ok {
				must(t, err)
				break
			}
		}
		m.CrashAt(0)
		r.reopen()
		for range 12 {
			m.CrashAt(1 + r.rng.IntN(60))
			if r.rng.IntN(4) == 0 {
				left := 1 + r.rng.IntN(10)
				m.SetFault(func(op memfs.Op, _ string) error {
					if op == memfs.OpSync || op == memfs.OpSyncDir {
						if left--; left <= 0 {
							return syscall.EIO
						}
					}
					return nil
				})
			}
			for n := 0; n < 60 && !r.step(); n++ {
			}
			m.SetFault(nil)
			if m.Crashed() || r.rng.IntN(2) == 0 {
				m.Crash()
			} else {
				m.Restart()
			}
			r.reopen()
		}
	}
}
