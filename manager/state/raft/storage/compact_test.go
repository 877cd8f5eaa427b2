package storage_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
)

// tenSegments is a log with entries 1..10 of term 1 in segments 1..10, each
// with one, committed up to 10.
func tenSegments(t testing.TB, m *memfs.FS) *storage.Log {
	l := created(t, m, 1)
	for i := uint64(2); i <= 10; i++ {
		must(t, l.Append(storage.Batch{Entries: ents(i, i, 1), HardState: hard(1, 1, i)}))
	}
	return l
}

func TestCompact(t *testing.T) {
	m := newFS(1)
	l := tenSegments(t, m)
	if got := l.Metrics().Segments; got != 10 {
		t.Fatal(got)
	}
	if err := l.Compact(1); err == nil || !strings.Contains(err.Error(), "latest snapshot is at 0") {
		t.Fatal(err)
	}
	must(t, l.Append(storage.Batch{Snapshot: local(7, 1)})) // in a segment of its own
	if err := l.Compact(8); err == nil {
		t.Fatal("compacted above the snapshot")
	}
	must(t, l.Compact(4))
	if got := l.Metrics().Segments; got != 7 {
		t.Fatal(got)
	}
	m.Crash()
	l, s := open(t, m, 1)
	if want := "5-10 prev 1, term 1 commit 10, snap 7/1"; span(s) != want {
		t.Fatal(span(s))
	}
	must(t, l.Append(storage.Batch{Entries: ents(11, 11, 1)}))
	must(t, l.Compact(7))
	m.Crash()
	if _, s := open(t, m, 1); span(s) != "8-11 prev 1, term 1 commit 10, snap 7/1" {
		t.Fatal(span(s))
	}
}

// TestCompactAfterReceived: a received snapshot voids what is before it, so
// the segments before it may go whatever entries are in them.
func TestCompactAfterReceived(t *testing.T) {
	m := newFS(1)
	l := created(t, m, 1)
	must(t, l.Append(storage.Batch{Entries: ents(2, 90, 1)}))
	must(t, l.Append(storage.Batch{Snapshot: received(40, 2), HardState: hard(2, 0, 40)}))
	must(t, l.Append(storage.Batch{Entries: ents(41, 42, 2)}))
	must(t, l.Compact(40))
	if got := l.Metrics().Segments; got != 1 {
		t.Fatal(got)
	}
	must(t, l.Append(storage.Batch{Entries: ents(43, 43, 2)}))
	must(t, l.Close())
	_, s := open(t, m, 1)
	if span(s) != "41-43 prev 2, term 2 commit 40, snap 40/2" || !s.Snapshot.Received {
		t.Fatal(describe(s))
	}
}

// TestVoidedThenCompacted: the oldest segment left overwrites entries of one
// that is gone, so the term before its first entry is unknown.
func TestVoidedThenCompacted(t *testing.T) {
	m := newFS(1)
	l := created(t, m, 1)
	must(t, l.Append(storage.Batch{Entries: ents(2, 90, 1)}))
	must(t, l.Append(storage.Batch{Entries: ents(50, 60, 2), HardState: hard(2, 0, 55)}))
	must(t, l.Append(storage.Batch{Snapshot: local(55, 2)}))
	must(t, l.Compact(49))
	if got := l.Metrics().Segments; got != 3 {
		t.Fatal(got, "the term of entry 49 went with its segment")
	}
	must(t, l.Compact(50))
	if got := l.Metrics().Segments; got != 2 {
		t.Fatal(got)
	}
	must(t, l.Close())
	l, s := open(t, m, 1)
	if span(s) != "51-60 prev 2, term 2 commit 55, snap 55/2" {
		t.Fatal(span(s))
	}
	must(t, l.Append(storage.Batch{Entries: ents(61, 61, 2)}))
}

// TestMissingSegments: every segment that is taken away is missed, but for the
// oldest ones whose entries a snapshot holds.
func TestMissingSegments(t *testing.T) {
	for n := 1; n <= 11; n++ {
		m := newFS(1)
		l := tenSegments(t, m)
		must(t, l.Append(storage.Batch{Snapshot: local(7, 1)}))
		must(t, l.Append(storage.Batch{Entries: ents(11, 11, 1)}))
		must(t, l.Close())
		must(t, m.Remove(segmentPath(n)))
		_, _, err := storage.Open(m, dir, storage.Options{})
		switch {
		case n == 1:
			if _, s := open(t, m, 1); s.FirstIndex != 2 {
				t.Fatal(s.FirstIndex)
			}
		case err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%016x.log, is missing", n)):
			t.Fatalf("without segment %d: %v", n, err)
		default:
			wantDamage(t, err, segmentPath(n+1))
		}
	}
	m := newFS(1)
	must(t, tenSegments(t, m).Close())
	must(t, m.Remove(segmentPath(1)))
	_, _, err := storage.Open(m, dir, storage.Options{})
	if _, ok := errors.AsType[*storage.InconsistentError](err); !ok || !strings.Contains(err.Error(), "entries 1 to 1 are missing") {
		t.Fatal(err)
	}
	m = newFS(1)
	must(t, tenSegments(t, m).Close())
	for n := 1; n < 10; n++ {
		must(t, m.Remove(segmentPath(n)))
	}
	if _, err := storage.Verify(m, dir); err == nil || !strings.Contains(err.Error(), "restore a backup") {
		t.Fatal(err)
	}
}

// TestMixedLogs: a segment of another log, or of another time of this one, is
// not taken for a part of it.
func TestMixedLogs(t *testing.T) {
	m, other := newFS(1), newFS(1)
	must(t, tenSegments(t, m).Close())
	l := created(t, other, 1)
	for i := uint64(2); i <= 10; i++ {
		must(t, l.Append(storage.Batch{Entries: ents(i, i, 2), HardState: hard(2, 1, i)}))
	}
	b, err := other.ReadFile(segmentPath(5))
	must(t, err)
	m.WriteFile(segmentPath(5), b)
	_, err = storage.Verify(m, dir)
	wantDamage(t, err, segmentPath(5))

	m = newFS(1)
	must(t, tenSegments(t, m).Close())
	b, err = m.ReadFile(segmentPath(5))
	must(t, err)
	m.WriteFile(segmentPath(6), b)
	_, err = storage.Verify(m, dir)
	wantDamage(t, err, segmentPath(6))
}

// TestLostTail: what is missing at the end of an older segment is no torn end,
// and a hard state ahead of the log is told with the way back.
func TestLostTail(t *testing.T) {
	m := newFS(1)
	must(t, tenSegments(t, m).Close())
	b, err := m.ReadFile(segmentPath(4))
	must(t, err)
	for _, cut := range []int{len(b) - 1, len(b) - 64, 512, 100, 0} {
		m.WriteFile(segmentPath(4), b[:cut])
		_, err = storage.Verify(m, dir)
		if d, ok := errors.AsType[*storage.DamageError](err); !ok || !strings.Contains(d.Error(), "restore a backup") {
			t.Fatal(cut, err)
		}
	}
	m.WriteFile(segmentPath(4), append(b, make([]byte, 4096)...))
	_, err = storage.Verify(m, dir)
	wantDamage(t, err, segmentPath(4))
}
