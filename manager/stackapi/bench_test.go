package stackapi_test

import (
	"fmt"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/manager/state/store"
)

// crowd fills a store with services of 1,000 other stacks.
func crowd(b *testing.B, f *fixture, count int) {
	b.Helper()
	for made := 0; made < count; {
		f.update(func(tx *store.Tx) error {
			for n := 0; n < store.MaxOperations && made < count; n++ {
				s := serviceSpec(fmt.Sprintf("other%d_s%d", made%1000, made))
				s.Annotations.Labels = map[string]string{store.StackLabel: fmt.Sprint("other", made%1000)}
				if _, err := store.Services.Create(tx, &api.Service{Spec: s}); err != nil {
					return err
				}
				made++
			}
			return nil
		})
	}
}

// BenchmarkStacks measures beside 100,000 services of 1,000 other stacks: a deployment of five
// objects without a change and with one, two ways to find a stack's services, and the list.
func BenchmarkStacks(b *testing.B) {
	f := newFixture(b)
	crowd(b, f, 100_000)
	f.deploy(app("a"))
	b.Run("deploy-unchanged", func(b *testing.B) {
		for b.Loop() {
			f.deploy(app("a"))
		}
	})
	b.Run("deploy-changed", func(b *testing.B) {
		r := app("a")
		for n := uint64(2); b.Loop(); n++ {
			r.Services[0].Mode.(*api.ServiceSpec_Replicated).Replicated.Replicas = n % 100_000
			f.deploy(r)
		}
	})
	b.Run("find-by-index", func(b *testing.B) { find(b, f, store.ByStack("other7")) })
	b.Run("find-by-scan", func(b *testing.B) { find(b, f, store.All()) })
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if resp := must(f.List(b.Context(), &holdfast.ListStacksRequest{})); len(resp.Stacks) != 1001 {
				b.Fatalf("%d stacks", len(resp.Stacks))
			}
		}
	})
}

func find(b *testing.B, f *fixture, by store.By) {
	b.Helper()
	tx := f.store.Root()
	for b.Loop() {
		found := 0
		for s := range must(store.Services.Find(tx, by)) {
			if s.Spec.Annotations.Labels[store.StackLabel] == "other7" {
				found++
			}
		}
		if found != 100 {
			b.Fatalf("found %d", found)
		}
	}
}
