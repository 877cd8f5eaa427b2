package watchapi_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/manager/state/store"
	"holdfast/manager/watchapi"
)

// heap returns the live bytes of the heap and of stacks.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// openMany opens streams with so many watchers each, and waits until all are synced.
func openMany(b *testing.B, f *fixture, streams, each int, request func(n int) *holdfast.CreateWatcher) []*watching {
	b.Helper()
	all := make([]*watching, streams)
	for i := range all {
		all[i] = f.watch()
		for n := range each {
			all[i].create(request(i*each + n))
		}
		for synced := 0; synced < each; {
			m := all[i].next()
			if m.GetCanceled() != nil {
				b.Fatal(m)
			}
			if m.GetSynced() != nil {
				synced++
			}
		}
	}
	return all
}

func byNode(n int) *holdfast.CreateWatcher {
	return &holdfast.CreateWatcher{
		Kinds:    []holdfast.Kind{holdfast.Kind_KIND_TASK},
		Selector: holdfast.Selector{NodeIDs: []string{fmt.Sprintf("node-%020d", n)}}, Progress: true,
	}
}

// BenchmarkIdle measures what a watcher costs that nothing happens for, and what a stream costs,
// with its client in the same process.
func BenchmarkIdle(b *testing.B) {
	for _, c := range []struct{ streams, each int }{{1000, 1}, {10, 1000}} {
		b.Run(fmt.Sprintf("streams=%d/watchers=%d", c.streams, c.streams*c.each), func(b *testing.B) {
			for b.Loop() {
				f := newFixture(b, watchapi.Config{Interval: time.Hour})
				warm := openMany(b, f, 1, 1, byNode)
				before := heap()
				streams := openMany(b, f, c.streams, c.each, byNode)
				used := heap() - before
				b.ReportMetric(float64(used)/float64(c.streams*c.each), "B/watcher")
				for _, w := range append(streams, warm...) {
					w.cancel()
				}
			}
		})
	}
}

// BenchmarkCommit measures transactions that change one object while so many watch: none of
// them the object's kind, each another object, or all of them all.
func BenchmarkCommit(b *testing.B) {
	services := func(int) *holdfast.CreateWatcher {
		return &holdfast.CreateWatcher{Kinds: []holdfast.Kind{holdfast.Kind_KIND_SERVICE}}
	}
	all := func(int) *holdfast.CreateWatcher { return &holdfast.CreateWatcher{} }
	for _, c := range []struct {
		name          string
		streams, each int
		request       func(int) *holdfast.CreateWatcher
		events        int // of a change
	}{
		{"nobody", 0, 0, nil, 0},
		{"other-kind/1000-streams", 1000, 1, services, 0},
		{"by-node/10-streams-of-1000", 10, 1000, byNode, 1},
		{"by-node/1000-streams", 1000, 1, byNode, 1},
		{"all/10-streams", 10, 1, all, 10},
		{"all/1000-streams", 1000, 1, all, 1000},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := newFixture(b, watchapi.Config{Interval: time.Hour})
			streams := openMany(b, f, c.streams, c.each, c.request)
			events := make(chan struct{}, 1<<16)
			var readers sync.WaitGroup
			for _, w := range streams {
				readers.Go(func() {
					for {
						if _, err := w.stream.Recv(); err != nil {
							return
						}
						events <- struct{}{}
					}
				})
			}
			for i := 0; b.Loop(); i++ {
				node := fmt.Sprintf("%020d", i%10_000)
				if c.each == 1 {
					node = fmt.Sprintf("%020d", i%max(c.streams, 1))
				}
				f.update(func(tx *store.Tx) error { return putTask(tx, node) })
				for range c.events {
					<-events
				}
			}
			for _, w := range streams {
				w.cancel()
			}
			readers.Wait()
		})
	}
}

// putTask creates or changes the one task of a node.
func putTask(tx *store.Tx, node string) error {
	o := &api.Task{ID: "t" + node, NodeID: "node-" + node, Slot: tx.Revision()}
	return replace(tx, store.Tasks, o, func(o, old *api.Task) { o.Meta = old.Meta })
}
