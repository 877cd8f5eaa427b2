package storage_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
)

// BenchmarkAppend appends batches to a log on the real disk (in BENCH_DIR, or
// a temporary folder), and in memory, which is what encoding costs.
func BenchmarkAppend(b *testing.B) {
	for _, tc := range []struct{ entries, size int }{{1, 200}, {16, 1 << 10}, {1, 1 << 20}, {64, 16 << 10}} {
		name := fmt.Sprintf("%dx%d", tc.entries, tc.size)
		b.Run("disk/"+name, func(b *testing.B) {
			root, err := os.MkdirTemp(os.Getenv("BENCH_DIR"), "raftlog")
			must(b, err)
			defer func() { _ = os.RemoveAll(root) }()
			benchmarkAppend(b, storage.OS(), filepath.Join(root, "raft"), tc.entries, tc.size)
		})
		b.Run("encode/"+name, func(b *testing.B) {
			benchmarkAppend(b, discardFS{memfs.New(1)}, "/raft", tc.entries, tc.size)
		})
	}
}

func benchmarkAppend(b *testing.B, fsys storage.FS, at string, n, size int) {
	must(b, storage.Create(fsys, at, ident, first()))
	l, _, err := storage.Open(fsys, at, storage.Options{})
	must(b, err)
	data := bytes.Repeat([]byte("some data "), size/10+1)[:size]
	batch := storage.Batch{}
	for range n {
		batch.Entries = append(batch.Entries, ent(0, 1, string(data)))
	}
	next := uint64(2)
	was := l.Metrics()
	b.SetBytes(int64(n * size))
	b.ReportAllocs()
	for b.Loop() {
		for _, e := range batch.Entries {
			*e.Index = next
			next++
		}
		must(b, l.Append(batch))
	}
	now := l.Metrics()
	b.ReportMetric(float64(now.Syncs-was.Syncs)/float64(b.N), "fsyncs/op")
	b.ReportMetric(float64(now.Writes-was.Writes)/float64(b.N), "writes/op")
}

// BenchmarkOpen reads a log of 64 MiB in entries of 1 KiB.
func BenchmarkOpen(b *testing.B) {
	at := filepath.Join(b.TempDir(), "raft")
	must(b, storage.Create(storage.OS(), at, ident, first()))
	l, _, err := storage.Open(storage.OS(), at, storage.Options{})
	must(b, err)
	data := string(bytes.Repeat([]byte("some "), 205))
	for next := uint64(2); next < 64<<10; {
		var es []*raftpb.Entry
		for range 1 << 10 {
			es = append(es, ent(next, 1, data))
			next++
		}
		must(b, l.Append(storage.Batch{Entries: es}))
	}
	b.SetBytes(l.Metrics().Bytes)
	must(b, l.Close())
	b.ReportAllocs()
	for b.Loop() {
		l, _, err := storage.Open(storage.OS(), at, storage.Options{})
		must(b, err)
		must(b, l.Close())
	}
}

// discardFS forgets what is appended to the log.
type discardFS struct{ *memfs.FS }

type discardFile struct{ storage.File }

func (d discardFS) OpenAppend(path string) (storage.File, error) {
	f, err := d.FS.OpenAppend(path)
	return discardFile{f}, err
}

func (d discardFS) Create(path string) (storage.File, error) {
	f, err := d.FS.Create(path)
	if filepath.Base(path) == "0000000000000001.log.tmp" {
		return f, err
	}
	return discardFile{f}, err
}

func (discardFile) Write(p []byte) (int, error) { return len(p), nil }
