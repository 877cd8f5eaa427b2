package stackapi_test

import (
	"fmt"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/manager/state/store"
	"holdfast/release/driver/object"
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

// BenchmarkReleases measures 1,000 releases: of one stack, and the newest of 1,000 stacks. It
// reads heads alone: there is no body.
func BenchmarkReleases(b *testing.B) {
	f := newFixture(b)
	for n := range uint64(1000) {
		r := scaled("a", 1+n)
		r.MaxHistory = 1000
		f.deploy(r)
	}
	for n := range 1000 {
		f.deploy(&holdfast.DeployRequest{Name: fmt.Sprint("s", n), Services: []api.ServiceSpec{serviceSpec(fmt.Sprintf("s%d_web", n))}})
	}
	for left := store.MaxOperations; left == store.MaxOperations; {
		f.update(func(tx *store.Tx) (err error) { left, err = dropBodies(tx); return err })
	}
	b.Run("history", func(b *testing.B) {
		for b.Loop() {
			if resp := must(f.History(b.Context(), &holdfast.StackHistoryRequest{Name: "a"})); len(resp.Releases) != 1000 {
				b.Fatalf("%d releases", len(resp.Releases))
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			resp := must(f.List(b.Context(), &holdfast.ListStacksRequest{}))
			if len(resp.Stacks) != 1001 || resp.Stacks[7].Release.GetStatus() != "deployed" {
				b.Fatalf("%d stacks", len(resp.Stacks))
			}
		}
	})
	b.Run("deploy-changed", func(b *testing.B) { // with a history of 10
		for n := uint64(1); b.Loop(); n++ {
			f.deploy(scaled("b", n%100_000+1))
		}
	})
	b.Run("deploy-unchanged", func(b *testing.B) {
		r := scaled("c", 1)
		f.deploy(r)
		for b.Loop() {
			f.deploy(r)
		}
	})
}

// dropBodies removes as many bodies of records as a transaction can, and returns how many.
func dropBodies(tx *store.Tx) (int, error) {
	var gone []string
	for o := range must(store.Secrets.Find(tx, store.ByNamePrefix(object.Names))) {
		if p, ok := object.PartOf(o.Spec.Annotations.Labels); ok && !p.Head && !p.Mark && len(gone) < store.MaxOperations {
			gone = append(gone, o.ID)
		}
	}
	for _, id := range gone {
		if _, err := store.Secrets.Delete(tx, id); err != nil {
			return 0, err
		}
	}
	return len(gone), nil
}
