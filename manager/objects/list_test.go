package objects_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// crowd creates n services, every third with a label and all on one network.
func (w *world) crowd(n int) []*api.Service {
	w.t.Helper()
	var all []*api.Service
	for len(all) < n {
		w.must(func(tx *store.Tx) error {
			for range min(100, n-len(all)) {
				spec := serviceSpec(fmt.Sprint("s", len(all)))
				spec.Task.Networks = []*api.NetworkAttachmentConfig{{Target: w.network.ID}}
				if len(all)%3 == 0 {
					spec.Annotations.Labels = map[string]string{"third": ""}
				}
				s, err := objects.CreateService(tx, spec)
				if err != nil {
					return err
				}
				all = append(all, s)
			}
			return nil
		})
	}
	return all
}

func TestListPages(t *testing.T) {
	w := newWorld(t)
	all := w.crowd(250)
	third := func(s *api.Service) bool { _, ok := s.Spec.Annotations.Labels["third"]; return ok }
	for _, c := range []struct {
		name string
		by   store.By
		keep func(*api.Service) bool
	}{
		{"all", store.All(), nil},
		{"some of all", store.All(), third},
		{"in another order", store.ByNamePrefix("s"), nil},
		{"some in another order", store.Or(store.ByNamePrefix("s2"), store.ByNamePrefix("s1")), third},
		{"by an index", store.ByNetworkID(w.network.ID), nil},
		{"none", store.ByName("nothing"), nil},
	} {
		var ids []string
		tx := w.Root()
		for _, s := range all {
			found, err := store.Services.FindAll(tx, store.And(store.ByID(s.ID), c.by))
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > 0 && (c.keep == nil || c.keep(s)) {
				ids = append(ids, s.ID)
			}
		}
		slices.Sort(ids)
		for _, limit := range []int{0, 1, 7, 100, len(ids), 1000} {
			t.Run(fmt.Sprint(c.name, limit), func(t *testing.T) {
				var got []string
				for after := ""; ; {
					page, next, remaining, err := objects.List(tx, store.Services, c.by, c.keep, after, limit)
					if err != nil {
						t.Fatal(err)
					}
					for _, s := range page {
						got = append(got, s.ID)
					}
					if limit > 0 && len(page) > limit {
						t.Fatalf("page of %d", len(page))
					}
					if want := len(ids) - len(got); remaining != uint64(want) || (next == "") != (want == 0) {
						t.Fatalf("remaining %d, next %q, want %d", remaining, next, want)
					}
					if after = next; next == "" {
						break
					}
				}
				if !slices.Equal(got, ids) {
					t.Errorf("got %d IDs, want %d, or another order", len(got), len(ids))
				}
			})
		}
	}
	if _, _, _, err := objects.List(w.Root(), store.Services, store.ByNodeID("x"), nil, "", 0); !errkind.Is(err, errkind.Invalid) {
		t.Errorf("a selector that services lack: %v", err)
	}
}

func BenchmarkListPage(b *testing.B) {
	w := newWorld(b)
	w.crowd(100_000)
	tx := w.Root()
	for b.Loop() {
		page, _, _, err := objects.List(tx, store.Services, store.All(), nil, "", 1000)
		if err != nil || len(page) != 1000 {
			b.Fatal(len(page), err)
		}
	}
}

// BenchmarkCreateServices creates 100 services in a transaction that is given up.
func BenchmarkCreateServices(b *testing.B) {
	w := newWorld(b)
	w.crowd(10_000)
	specs := make([]*api.ServiceSpec, 100)
	for i := range specs {
		specs[i] = publishing(fmt.Sprint("web", i), ingressPort(uint32(1000+i)))
		specs[i].Task.Networks = []*api.NetworkAttachmentConfig{{Target: w.network.ID}}
		specs[i].Task.GetContainer().Secrets = []*api.SecretReference{w.secretRef(0, "a")}
	}
	enough := errors.New("enough")
	for b.Loop() {
		err := w.try(func(tx *store.Tx) error {
			for _, spec := range specs {
				if _, err := objects.CreateService(tx, spec); err != nil {
					return err
				}
			}
			return enough
		})
		if !errors.Is(err, enough) {
			b.Fatal(err)
		}
	}
}

func TestFindByName(t *testing.T) {
	w := newWorld(t)
	n, err := objects.FindByName(w.Root(), store.Networks, "FRONT")
	if err != nil || n.ID != w.network.ID {
		t.Errorf("%v, %v", n, err)
	}
	_, err = objects.FindByName(w.Root(), store.Networks, "fron")
	want(t, err, errkind.NotFound, "")
	_, err = objects.FindByName(w.Root(), store.Networks, "")
	want(t, err, errkind.Invalid, "name")
	a, b := w.manager("twin"), w.manager("twin")
	_, err = objects.FindByName(w.Root(), store.Nodes, "twin")
	want(t, err, errkind.Invalid, "name")
	for _, id := range []string{a.ID, b.ID} {
		if !contains(err, id) {
			t.Errorf("does not list %s: %v", id, err)
		}
	}
}

// replaying is a store that has done every request before.
type replaying struct {
	*store.MemoryStore
	result store.Result
}

func (r replaying) Update(context.Context, func(*store.Tx) error) (store.Result, error) {
	return r.result, nil
}

func TestOutcome(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	first, res, err := objects.Outcome(ctx, w, store.Services, func(tx *store.Tx) (*api.Service, error) {
		return objects.CreateService(tx, serviceSpec("web"))
	})
	if err != nil || first.Meta.Version.Index != res.Revision || res.IDs[0] != first.ID {
		t.Fatalf("%v, %v, %v", first, res, err)
	}
	if _, err := w.updateService(first, scale(9)); err != nil {
		t.Fatal(err)
	}
	replay := func(s objects.Store) (*api.Service, error) {
		o, _, err := objects.Outcome(ctx, s, store.Services, func(*store.Tx) (*api.Service, error) {
			t.Error("it ran again")
			return nil, nil
		})
		return o, err
	}
	res.Replayed = true
	again, err := replay(replaying{w.MemoryStore, res})
	if err != nil || !again.Equal(first) {
		t.Errorf("replayed: %v, %v", again, err)
	}
	now := w.Root().Revision()
	again, err = replay(compacted{replaying{w.MemoryStore, res}, now})
	if err != nil || again.Spec.GetReplicated().Replicas != 9 {
		t.Errorf("replayed after compaction: %v, %v", again, err)
	}
	w.must(func(tx *store.Tx) error { _, err := objects.RemoveService(tx, first.ID); return err })
	_, err = replay(compacted{replaying{w.MemoryStore, res}, now + 1})
	want(t, err, errkind.OutOfRange, "")
	if !contains(err, fmt.Sprint("at revision ", res.Revision)) {
		t.Errorf("does not tell the revision: %v", err)
	}
	_, err = replay(replaying{w.MemoryStore, store.Result{Replayed: true}})
	want(t, err, errkind.Internal, "")
}

// compacted is a store with a floor of its own.
type compacted struct {
	replaying
	floor uint64
}

func (c compacted) At(revision uint64) (store.ReadTx, error) {
	if revision < c.floor {
		return nil, &errkind.Error{Kind: errkind.OutOfRange, Seen: revision, Now: c.floor, Msg: "compacted"}
	}
	return c.replaying.At(revision)
}
