package store_test

import (
	"fmt"
	"runtime"
	"testing"

	"holdfast/api"
	"holdfast/internal/id"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// live is what a collection leaves: the bytes of objects. HeapInuse has what lies between them
// too, and that depends on what was written before.
func live() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// change updates each service once, by a request as a real client sends it: what is stored was
// decoded, and has no string in common with what was there.
func change(b testing.TB, s *storetest.Script, round int) {
	i := 0
	for o := range storetest.Objects(s.Store.Root()) {
		i++
		digest := make([]byte, 32)
		copy(digest, fmt.Sprint(round, i))
		ctx := state.WithRequest(b.Context(), state.Request{
			ID: requestID(s.Store.Root().Revision(), i), Digest: digest, Caller: "operator",
		})
		if _, err := s.Store.Update(ctx, func(tx *store.Tx) error {
			data, err := o.Marshal()
			if err != nil {
				return err
			}
			decoded := &api.Service{}
			if err := decoded.Unmarshal(data); err != nil {
				return err
			}
			decoded.Spec.Task.GetContainer().Image = fmt.Sprintf("registry.example/app:%d", round+2)
			_, err = store.Services.Update(tx, decoded)
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
	s.Forget()
}

// What a kept revision takes in memory: updates of services of about 490 encoded bytes, each by
// a request of its own. "history" is what a compaction frees: "version", what an object was
// before, and "log", all the rest with the index. "requests" is the request table with its index,
// which has bounds of its own.
func BenchmarkHistoryMemory(b *testing.B) {
	for _, objects := range []int{10_000, 100_000} {
		for _, rounds := range []int{1, 3} {
			if objects*rounds > 200_000 { // revisions that a log has at most
				continue
			}
			b.Run(fmt.Sprintf("%d objects, %d changes each", objects, rounds), func(b *testing.B) {
				for range b.N {
					historyMemory(b, objects, rounds)
				}
			})
		}
	}
}

func historyMemory(b *testing.B, objects, rounds int) {
	per := func(bytes uint64) float64 { return float64(bytes) / float64(objects*rounds) }
	b.ReportMetric(0, "ns/op")
	s, before := beforeChanges(b, objects, 1)
	for round := range rounds {
		change(b, s, round)
	}
	all := live()
	grown := per(all - before)
	old := oldVersions(b, s, objects*rounds)
	full := live()
	if _, err := s.Store.Compact(b.Context(), 0); err != nil {
		b.Fatal(err)
	}
	s.Forget()
	withoutLog := live()
	encoded := 0
	for _, o := range old {
		encoded += o.Size()
	}
	b.ReportMetric(per(uint64(encoded)), "encoded-B/version")
	const pointer = 16 // of old
	b.ReportMetric(per(full-withoutLog), "log-B/revision")
	b.ReportMetric(per(withoutLog-live())-pointer, "version-B/revision") // old is not used any more
	b.ReportMetric(per(all-live()), "history-B/revision")
	runtime.KeepAlive(s)
	s, before = beforeChanges(b, objects, objects*(rounds+1))
	for round := range rounds {
		change(b, s, round)
	}
	b.ReportMetric(per(live()-before)-grown, "requests-B/revision")
	runtime.KeepAlive(s)
}

// beforeChanges makes a store of services without history, and tells the heap with it.
func beforeChanges(b *testing.B, objects, requests int) (s *storetest.Script, heap uint64) {
	s = storetest.NewLeader(b, "m", store.Options{NewID: id.New, MaxRequests: requests}).Auto(true)
	fill(b, s.Store, 0, objects)
	if _, err := s.Store.Compact(b.Context(), 0); err != nil {
		b.Fatal(err)
	}
	s.Forget()
	return s, live()
}

// oldVersions returns the versions that are only kept for the history.
func oldVersions(b *testing.B, s *storetest.Script, n int) []state.Object {
	revisions, err := s.Store.Changes(s.Store.Status().Floor, n)
	if err != nil || len(revisions) != n {
		b.Fatalf("%d revisions, %v", len(revisions), err)
	}
	old := make([]state.Object, 0, n)
	for _, r := range revisions {
		old = append(old, r.Changes[0].Old)
	}
	return old
}
