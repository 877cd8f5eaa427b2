package storage_test

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
)

func TestCreateOpen(t *testing.T) {
	m := newFS(1)
	if ok, err := storage.Exists(m, dir); ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, _, err := storage.Open(m, dir, storage.Options{}); !errors.Is(err, storage.ErrNoLog) {
		t.Fatal(err)
	}
	must(t, storage.Create(m, dir, ident, first()))
	m.Crash()
	if ok, err := storage.Exists(m, dir); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := storage.Create(m, dir, ident, first()); !errors.Is(err, storage.ErrLogExists) {
		t.Fatal(err)
	}
	l, s := open(t, m, 0)
	if s.Identity != ident || s.Clean || s.Dropped != 0 || span(s) != "1-1 prev 0, term 1 commit 1, snap 0/0" {
		t.Fatal(describe(s), s.Clean)
	}
	must(t, l.Append(storage.Batch{}))
	conf := ent(2, 1, "")
	conf.Data, conf.Type = nil, raftpb.EntryConfChangeV2.Enum()
	must(t, l.Append(storage.Batch{Entries: []*raftpb.Entry{conf, ent(3, 1, strings.Repeat("\x00", 5000))}}))
	must(t, l.Close())
	if err := l.Append(first()); !errors.Is(err, storage.ErrClosed) {
		t.Fatal(err)
	}
	if err := l.Close(); !errors.Is(err, storage.ErrClosed) {
		t.Fatal(err)
	}
	m.Crash()
	_, s = open(t, m, 0)
	if !s.Clean || s.Dropped != 0 || span(s) != "1-3 prev 0, term 1 commit 1, snap 0/0" ||
		s.Entries[1].GetType() != raftpb.EntryConfChangeV2 || len(s.Entries[2].GetData()) != 5000 {
		t.Fatal(describe(s), s.Clean)
	}
	if _, s = open(t, m, 0); s.Clean {
		t.Fatal("a log that was opened and not closed is clean")
	}
}

// TestSequence appends batches and tells what the log then is, at once and
// opened again: the rules of overwriting and of the two markers.
func TestSequence(t *testing.T) {
	type batches []storage.Batch
	for name, tc := range map[string]struct {
		first   storage.Batch
		batches batches
		want    string
	}{
		"empty first": {storage.Batch{HardState: hard(1, 1, 0)}, nil, "1-0 prev 0, term 1 commit 0, snap 0/0"},
		"overwrite": {first(), batches{
			{Entries: ents(2, 9, 1)}, {HardState: hard(2, 0, 1), Entries: ents(4, 5, 2)},
		}, "1-5 prev 0, term 2 commit 1, snap 0/0"},
		"overwrite within a batch": {first(), batches{
			{HardState: hard(2, 0, 3), Entries: append(ents(2, 9, 1), ents(3, 4, 2)...)},
		}, "1-4 prev 0, term 2 commit 3, snap 0/0"},
		"local marker keeps entries": {first(), batches{
			{HardState: hard(1, 1, 5), Entries: ents(2, 9, 1)}, {Snapshot: local(4, 1)},
		}, "1-9 prev 0, term 1 commit 5, snap 4/1"},
		"local marker at the end": {first(), batches{
			{HardState: hard(1, 1, 9), Entries: ents(2, 9, 1)}, {Snapshot: local(9, 1)}, {Entries: ents(10, 10, 1)},
		}, "1-10 prev 0, term 1 commit 9, snap 9/1"},
		"received marker above all": {first(), batches{
			{Entries: ents(2, 9, 1)}, {Snapshot: received(20, 3), HardState: hard(3, 0, 20)}, {Entries: ents(21, 22, 3)},
		}, "21-22 prev 3, term 3 commit 20, snap 20/3"},
		"received marker voids entries above its index": {first(), batches{
			{Entries: ents(2, 9, 1)}, {Snapshot: received(5, 2), HardState: hard(2, 0, 5)},
		}, "6-5 prev 2, term 2 commit 5, snap 5/2"},
		"received marker with entries in one batch": {first(), batches{
			{Entries: ents(2, 9, 1)}, {Snapshot: received(5, 2), HardState: hard(2, 0, 5), Entries: ents(6, 7, 2)},
		}, "6-7 prev 2, term 2 commit 5, snap 5/2"},
		"local after received": {first(), batches{
			{Snapshot: received(5, 2), HardState: hard(2, 0, 8), Entries: ents(6, 9, 2)}, {Snapshot: local(8, 2)},
		}, "6-9 prev 2, term 2 commit 8, snap 8/2"},
		"restored from a snapshot": {
			storage.Batch{Snapshot: local(50, 7), HardState: hard(7, 0, 50)},
			batches{{Entries: ents(51, 52, 7)}},
			"51-52 prev 7, term 7 commit 50, snap 50/7",
		},
		"commit only": {first(), batches{
			{Entries: ents(2, 9, 1)}, {HardState: hard(1, 1, 4), NoSync: true}, {HardState: hard(1, 1, 6), NoSync: true},
		}, "1-9 prev 0, term 1 commit 6, snap 0/0"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int64{0, 1} { // 1: each batch in a segment of its own
				m := newFS(1)
				must(t, storage.Create(m, dir, ident, tc.first))
				l, _ := open(t, m, size)
				for _, b := range tc.batches {
					must(t, l.Append(b))
				}
				must(t, l.Close())
				m.Crash()
				if _, s := open(t, m, size); span(s) != tc.want || !s.Clean {
					t.Fatalf("segments of %d: %s, want %s", size, span(s), tc.want)
				}
			}
		})
	}
}

// TestRefusedBatches: what cannot follow is refused before it is written, and
// the error is final.
func TestRefusedBatches(t *testing.T) {
	for name, tc := range map[string]struct {
		b    storage.Batch
		want string
	}{
		"gap":                   {storage.Batch{Entries: ents(12, 12, 2)}, "missing"},
		"gap in the batch":      {storage.Batch{Entries: append(ents(11, 11, 2), ents(13, 13, 2)...)}, "missing"},
		"index 0":               {storage.Batch{Entries: ents(0, 0, 2)}, "entry 0"},
		"below commit":          {storage.Batch{Entries: ents(6, 7, 2)}, "commit index 6"},
		"below the snapshot":    {storage.Batch{Entries: ents(4, 4, 2)}, "snapshot's index 5"},
		"entry term goes down":  {storage.Batch{Entries: ents(11, 11, 1)}, "term 1"},
		"entry above the term":  {storage.Batch{Entries: ents(11, 11, 3)}, "hard state of term 2"},
		"term goes down":        {storage.Batch{HardState: hard(1, 0, 6)}, "follows"},
		"commit goes down":      {storage.Batch{HardState: hard(2, 2, 5)}, "follows"},
		"second vote":           {storage.Batch{HardState: hard(2, 3, 6)}, "vote"},
		"commit above the end":  {storage.Batch{HardState: hard(2, 2, 11)}, "ends at entry 10"},
		"marker above commit":   {storage.Batch{Snapshot: local(7, 2)}, "only up to 6"},
		"marker above the end":  {storage.Batch{Snapshot: local(11, 2), HardState: hard(2, 2, 10)}, "above the last entry"},
		"marker goes down":      {storage.Batch{Snapshot: local(4, 2)}, "follows"},
		"marker of no term":     {storage.Batch{Snapshot: local(6, 0)}, "term 0"},
		"received below commit": {storage.Batch{Snapshot: received(5, 2)}, "ends at entry 5"},
		"unsynced entry":        {storage.Batch{Entries: ents(11, 11, 2), NoSync: true}, "not synced"},
		"unsynced vote":         {storage.Batch{HardState: hard(3, 1, 6), NoSync: true}, "not synced"},
		"unsynced marker":       {storage.Batch{Snapshot: local(6, 2), NoSync: true}, "not synced"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFS(1)
			must(t, storage.Create(m, dir, ident, storage.Batch{HardState: hard(2, 2, 6), Entries: ents(1, 10, 2)}))
			l, _ := open(t, m, 0)
			must(t, l.Append(storage.Batch{Snapshot: local(5, 2)}))
			before, err := m.ReadFile(segmentPath(1))
			must(t, err)
			err = l.Append(tc.b)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%v, want %s", err, tc.want)
			}
			if again := l.Append(storage.Batch{Entries: ents(11, 11, 2)}); !errors.Is(again, err) {
				t.Fatalf("then %v", again)
			}
			if again := l.Compact(1); !errors.Is(again, err) {
				t.Fatalf("then %v", again)
			}
			if err := l.Close(); err == nil {
				t.Fatal("Close said nothing")
			}
			if after, err := m.ReadFile(segmentPath(1)); err != nil || string(after) != string(before) {
				t.Fatal("it was written", err)
			}
		})
	}
}

// TestErrorsAreFinal: after a write or sync that fails nothing more is
// written, and a restart finds the batch whole or not at all.
func TestErrorsAreFinal(t *testing.T) {
	for _, op := range []memfs.Op{memfs.OpWrite, memfs.OpSync} {
		for seed := range uint64(40) {
			m := newFS(seed)
			l := created(t, m, 0)
			must(t, l.Append(storage.Batch{Entries: ents(2, 3, 1)}))
			m.SetFault(func(o memfs.Op, _ string) error {
				if o == op {
					return syscall.ENOSPC
				}
				return nil
			})
			err := l.Append(storage.Batch{Entries: ents(4, 40, 1)})
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(op, err)
			}
			m.SetFault(nil)
			effects := m.Effects()
			if again := l.Append(storage.Batch{Entries: ents(4, 4, 1)}); !errors.Is(again, err) {
				t.Fatal(op, again)
			}
			if err := l.Close(); !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(op, err)
			}
			if m.Effects() != effects {
				t.Fatal(op, "something was written after a failure")
			}
			m.Restart()
			l, s := open(t, m, 0)
			if last := s.LastIndex(); last != 3 && last != 40 {
				t.Fatal(op, last)
			}
			// What Open returned stays, though the first sync of it failed.
			m.Crash()
			if _, s2 := open(t, m, 0); describe(s2) != describe(s) {
				t.Fatalf("%s: Open returned\n%safter a crash\n%s", op, describe(s), describe(s2))
			}
			_ = l
		}
	}
}

func TestFailingOpen(t *testing.T) {
	for _, op := range []memfs.Op{memfs.OpWrite, memfs.OpSync, memfs.OpSyncDir} {
		m := newFS(3)
		must(t, created(t, m, 0).Close())
		m.SetFault(func(o memfs.Op, _ string) error {
			if o == op {
				return syscall.EIO
			}
			return nil
		})
		if _, _, err := storage.Open(m, dir, storage.Options{}); !errors.Is(err, syscall.EIO) {
			t.Fatal(op, err)
		}
	}
	if _, _, err := storage.Open(newFS(1), dir, storage.Options{SegmentSize: -1}); err == nil {
		t.Fatal("negative segment size")
	}
	if err := storage.Create(newFS(1), dir, storage.Identity{NodeID: strings.Repeat("x", 129)}, first()); err == nil {
		t.Fatal("long node ID")
	}
	m := memfs.New(1)
	m.SetFault(func(memfs.Op, string) error { return fs.ErrPermission })
	if err := storage.Create(m, dir, ident, first()); !errors.Is(err, fs.ErrPermission) {
		t.Fatal(err)
	}
}

// TestOneWriteOneSync counts what a batch costs.
func TestOneWriteOneSync(t *testing.T) {
	m := newFS(1)
	l := created(t, m, 0)
	was := l.Metrics()
	must(t, l.Append(storage.Batch{Entries: ents(2, 500, 1), HardState: hard(1, 1, 3)}))
	now := l.Metrics()
	if now.Writes-was.Writes != 1 || now.Syncs-was.Syncs != 1 || now.DirSyncs != was.DirSyncs {
		t.Fatalf("%+v, then %+v", was, now)
	}
	must(t, l.Append(storage.Batch{HardState: hard(1, 1, 4), NoSync: true}))
	if end := l.Metrics(); end.Writes-now.Writes != 1 || end.Syncs != now.Syncs || end.Bytes <= now.Bytes {
		t.Fatalf("%+v, then %+v", now, end)
	}
}
