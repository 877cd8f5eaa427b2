package storage_test

import (
	"slices"
	"testing"

	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
)

// FuzzSegment opens any bytes as a log: never a panic, and what was opened
// once opens again to the same state.
func FuzzSegment(f *testing.F) {
	for _, end := range ends {
		m, _ := sample(f, end)
		names, err := m.ReadDir(dir + "/log")
		must(f, err)
		for _, name := range names {
			b, err := m.ReadFile(dir + "/log/" + name)
			must(f, err)
			f.Add(b)
			f.Add(b[:len(b)-70])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = slices.Clone(b)
		storage.FixSegment(b)
		m := newFS(1)
		number := storage.SegmentNumber(b)
		m.WriteFile(storage.SegmentFile(dir, number), b)
		l, s, err := storage.Open(m, dir, storage.Options{})
		if err != nil {
			return
		}
		must(t, l.Close())
		m.Crash()
		if _, again := open(t, m, 0); describe(s) != describe(again) || !again.Clean {
			t.Fatalf("opened as\n%sthen as\n%s", describe(s), describe(again))
		}
	})
}

// FuzzSnapshot reads any bytes as a snapshot.
func FuzzSnapshot(f *testing.F) {
	m := newFS(1)
	writeSnapshot(f, m, dir, 10)
	b, err := m.ReadFile(snapFile)
	must(f, err)
	f.Add(b, true)
	f.Add(b[:100], false)
	f.Fuzz(func(_ *testing.T, b []byte, fix bool) {
		b = slices.Clone(b)
		if fix {
			storage.FixSnapshot(b)
		}
		m := memfs.New(1)
		m.WriteFile(snapFile, b)
		_, _ = readSnapshot(m, dir)
	})
}
