package store_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/api"
	"holdfast/internal/id"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// sized is a service whose encoding in the store is of 512 bytes.
func sized(name string) *api.Service {
	o := service(name)
	o.Spec.Task.Runtime = &api.TaskSpec_Container{Container: &api.ContainerSpec{Image: "registry.example/app:1"}}
	o.Spec.Annotations.Labels = map[string]string{store.StackLabel: "shop"}
	// An ID and the store's Meta come on top of what it has now.
	o.Spec.Annotations.Labels["pad"] = strings.Repeat("x", 512-27-70-10-o.Size())
	return o
}

// fill makes services, each by a request as a real client sends it.
func fill(b testing.TB, s *store.MemoryStore, from, n int) {
	b.Helper()
	for i := from; i < from+n; i++ {
		digest := make([]byte, 32)
		copy(digest, fmt.Sprint(i))
		ctx := state.WithRequest(b.Context(), state.Request{
			ID: requestID(s.Root().Revision(), i), Digest: digest, Caller: "user",
		})
		if _, err := s.Update(ctx, func(tx *store.Tx) error {
			_, err := store.Services.Create(tx, sized(fmt.Sprintf("service-%07d", i)))
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
}

// leader makes a member whose IDs are like real ones, which commits at once. Its history is as
// long as a leader leaves it.
func leader(b testing.TB, o store.Options) *storetest.Script {
	o.NewID = id.New
	o.MaxLog, o.MaxLogBytes = 10_000, 64<<20
	return storetest.NewLeader(b, "m", o).Auto(true)
}

// One writer after another, each committed before the next; and many writers, of which one
// goroutine, as raft, commits what waits.
func BenchmarkUpdate(b *testing.B) {
	b.Run("serial", func(b *testing.B) {
		s := leader(b, store.Options{})
		b.ReportAllocs()
		b.ResetTimer()
		fill(b, s.Store, 0, b.N)
	})
	b.Run("pipelined", func(b *testing.B) {
		s := storetest.NewLoop(b, store.Options{}).Store
		var n atomic.Int64
		b.ReportAllocs()
		b.SetParallelism(64)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				fill(b, s, int(n.Add(1)), 1)
			}
		})
	})
}

// What a follower does for each transaction, by how many of them an entry has.
func BenchmarkApply(b *testing.B) {
	for _, batch := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d an entry", batch), func(b *testing.B) {
			s := leader(b, store.Options{})
			fill(b, s.Store, 0, b.N)
			var entries []state.Committed
			var raw [][]byte
			for i, e := range s.Log()[1:] {
				raw = append(raw, e.Data)
				if len(raw) == batch || i == b.N-1 {
					var data []byte
					for _, d := range raw { // an entry is its transactions one after another
						data = append(data, d...)
					}
					entries = append(entries, state.Committed{Index: uint64(len(entries) + 2), Term: 1, Data: data})
					raw = nil
				}
			}
			f := storetest.NewScript(b, "f", store.Options{})
			b.ReportAllocs()
			b.ResetTimer()
			f.Feed(entries...)
			b.StopTimer()
			if got := f.Store.Root().Revision(); got != uint64(b.N) {
				b.Fatalf("revision %d, want %d", got, b.N)
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	s := leader(b, store.Options{})
	fill(b, s.Store, 0, 12_000)
	now := s.Store.Root().Revision()
	all, err := store.Services.FindAll(s.Store.Root(), store.All())
	if err != nil {
		b.Fatal(err)
	}
	at := func(b *testing.B, revision uint64) store.ReadTx {
		tx, err := s.Store.At(revision)
		if err != nil {
			b.Fatal(err)
		}
		return tx
	}
	b.Run("get at present", func(b *testing.B) {
		for i := range b.N {
			store.Services.Get(s.Store.Root(), all[i%len(all)].ID)
		}
	})
	for _, back := range []uint64{100, 9999} {
		b.Run(fmt.Sprintf("get %d back", back), func(b *testing.B) {
			for i := range b.N {
				store.Services.Get(at(b, now-back), all[i%len(all)].ID)
			}
		})
	}
	list := func(b *testing.B, tx store.ReadTx) {
		n := 0
		objects, err := store.Services.Find(tx, store.All())
		if err != nil {
			b.Fatal(err)
		}
		for o := range objects {
			if n += int(o.Meta.Generation); n == 10_000 { // it is 1: as any list, this one looks at the objects
				break
			}
		}
	}
	b.Run("list 10000", func(b *testing.B) {
		for range b.N {
			list(b, s.Store.Root())
		}
	})
	for _, back := range []uint64{100, 1999, 9999} { // 12,000 less that: all were created
		b.Run(fmt.Sprintf("list 10000, %d back", back), func(b *testing.B) {
			for range b.N {
				list(b, at(b, now-back))
			}
		})
	}
}

func snapshotOf(b testing.TB, s *store.MemoryStore) *storetest.Snapshot {
	return storetest.Save(b, s.Image())
}

type discard struct{ bytes int }

func (d *discard) Section(string) error { return nil }
func (d *discard) Record(b []byte) error {
	d.bytes += len(b)
	_, err := io.Discard.Write(b)
	return err
}

// 100,000 services of 512 bytes, each made by a request of its own: what they take in memory
// beside an empty store, and how long they take to save and restore.
func BenchmarkLarge(b *testing.B) {
	const objects = 100_000
	before := heap()
	s := leader(b, store.Options{})
	fill(b, s.Store, 0, objects)
	s.Forget()
	used := heap() - before
	size := 0
	for o := range storetest.Objects(s.Store.Root()) {
		size += o.Size()
	}
	snapshot := snapshotOf(b, s.Store)
	b.Run("memory", func(b *testing.B) {
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(used)/objects, "heap-B/object")
		b.ReportMetric(float64(size)/objects, "encoded-B/object")
	})
	b.Run("save", func(b *testing.B) {
		for range b.N {
			d := &discard{}
			if err := s.Store.Image().Save(d); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(d.bytes))
		}
	})
	b.Run("restore", func(b *testing.B) {
		for range b.N {
			storetest.NewScript(b, "r", store.Options{MaxLog: 10_000}).Restore(snapshot)
		}
	})
}

// What the same objects take after a restart: read from a snapshot, and not made one by one.
func BenchmarkRestored(b *testing.B) {
	const objects = 100_000
	var snapshot *storetest.Snapshot
	b.Run("fill", func(b *testing.B) { // of its own, so that nothing holds the first store after it
		s := leader(b, store.Options{})
		fill(b, s.Store, 0, objects)
		snapshot = snapshotOf(b, s.Store)
		b.ReportMetric(0, "ns/op")
	})
	b.Run("heap", func(b *testing.B) {
		before := heap()
		s := storetest.NewScript(b, "r", store.Options{MaxLog: 10_000})
		s.Restore(snapshot)
		used := heap() - before
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(used)/objects, "heap-B/object")
		b.ReportMetric(float64(before)/objects, "before-B/object")
		runtime.KeepAlive(s)
		runtime.KeepAlive(snapshot)
	})
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
