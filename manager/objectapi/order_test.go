package objectapi_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/kinds"
	"holdfast/manager/objectapi"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// crowd creates n services, of which some are changed later, in another order than that of IDs.
func (f *fixture) crowd(n int) []*api.Service {
	f.t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var operations []*holdfast.Operation
	for i := range n {
		name := fmt.Sprintf("s%03d", random.IntN(1000))
		if i%2 == 0 {
			name = strings.ToUpper(name)
		}
		operations = append(operations, create(service(fmt.Sprint(name, "-", i), fmt.Sprint("third=", i%3))))
		if len(operations) == 10 || i == n-1 {
			f.txn(operations...)
			operations = nil
		}
	}
	for i, o := range f.list(holdfast.Kind_KIND_SERVICE, holdfast.Selector{}).Objects {
		if i%4 == 0 {
			s := o.GetService().Copy()
			s.Spec.Annotations.Labels["changed"] = "1"
			f.txn(updateSpec(s))
		}
	}
	var all []*api.Service
	for _, o := range f.list(holdfast.Kind_KIND_SERVICE, holdfast.Selector{}).Objects {
		all = append(all, o.GetService())
	}
	return all
}

// sorted gives the IDs of services in an order, by the rules of the proto alone.
func sorted(all []*api.Service, by holdfast.Sort, descending bool) []string {
	key := func(a, b *api.Service) int {
		switch by {
		case holdfast.Sort_SORT_NAME:
			return cmp.Compare(strings.ToLower(a.Spec.Annotations.Name), strings.ToLower(b.Spec.Annotations.Name))
		case holdfast.Sort_SORT_CREATED:
			return cmp.Compare(a.Meta.CreatedVersion.Index, b.Meta.CreatedVersion.Index)
		case holdfast.Sort_SORT_CHANGED:
			return cmp.Compare(a.Meta.Version.Index, b.Meta.Version.Index)
		}
		return cmp.Compare(a.ID, b.ID)
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *api.Service) int {
		c := key(a, b)
		if descending {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.ID, b.ID))
	})
	var ids []string
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return ids
}

// pages reads all pages of a list and checks what each says of the rest.
func (f *fixture) pages(r *holdfast.ListRequest, total int, between func()) []*holdfast.Object {
	f.t.Helper()
	var all []*holdfast.Object
	request := *r
	for {
		resp, err := f.List(f.t.Context(), &request)
		if err != nil {
			f.t.Fatalf("%v: %v", r, err)
		}
		all = append(all, resp.Objects...)
		if resp.Remaining != uint64(total-len(all)) || (resp.Continue == "") != (resp.Remaining == 0) {
			f.t.Fatalf("%v: %d of %d objects, remaining %d, token %q", r, len(all), total, resp.Remaining, resp.Continue)
		}
		if resp.Continue == "" {
			return all
		}
		request.Continue = resp.Continue
		between()
	}
}

func ids(all []*holdfast.Object) []string {
	var out []string
	for _, o := range all {
		out = append(out, objects.Unwrap(o).GetID())
	}
	return out
}

// Every order, up and down, in pages of any size and with a selector, though objects are changed,
// renamed and removed between the pages.
func TestListOrders(t *testing.T) {
	f := newFixture(t)
	all := f.crowd(97)
	part := slices.DeleteFunc(slices.Clone(all), func(s *api.Service) bool { return s.Spec.Annotations.Labels["third"] != "1" })
	churn := 0
	between := func() {
		s := f.list(holdfast.Kind_KIND_SERVICE, holdfast.Selector{}).Objects[churn%20].GetService().Copy()
		churn++
		s.Spec.Annotations.Labels = map[string]string{"churn": fmt.Sprint(churn)}
		f.txn(updateSpec(s), create(service(fmt.Sprint("new", churn))))
		if churn%3 == 0 {
			f.txn(remove(holdfast.Kind_KIND_SERVICE, s.ID))
		}
	}
	revision, described := f.store.Root().Revision(), files(t)
	for by := range holdfast.Sort_name {
		for _, descending := range []bool{false, true} {
			for _, c := range []struct {
				selector holdfast.Selector
				of       []*api.Service
			}{
				{holdfast.Selector{}, all},
				{holdfast.Selector{Labels: map[string]string{"third": "1"}}, part},
				{holdfast.Selector{NamePrefixes: []string{"s"}, Where: "third in (1)"}, part},
				{holdfast.Selector{Names: []string{"nobody"}}, nil},
			} {
				for _, limit := range []uint32{0, 1, 7, 40, 96, 97, 1000} {
					r := &holdfast.ListRequest{
						Kind: holdfast.Kind_KIND_SERVICE, Selector: c.selector, Limit: limit,
						Sort: holdfast.Sort(by), Descending: descending,
					}
					fixed := *f
					fixed.Server = objectapi.New(f.store, pinned{f.store, revision}, described)
					got := fixed.pages(r, len(c.of), func() {
						if churn < 30 {
							between()
						}
					})
					if want := sorted(c.of, holdfast.Sort(by), descending); !slices.Equal(ids(got), want) {
						t.Fatalf("%v:\n%v\nwant\n%v", r, ids(got), want)
					}
					counted, err := fixed.List(t.Context(), &holdfast.ListRequest{
						Kind: r.Kind, Selector: r.Selector, Limit: limit, Sort: r.Sort, Descending: descending, CountOnly: true,
					})
					if err != nil || counted.Remaining != uint64(len(c.of)) || len(counted.Objects) > 0 || counted.Continue != "" ||
						counted.Revision != revision {
						t.Fatalf("%v: counted %v, %v", r, counted, err)
					}
				}
			}
		}
	}
	if churn < 30 {
		t.Errorf("only %d changes between pages", churn)
	}
	_, err := f.List(t.Context(), &holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, Sort: 99})
	wantError(t, err, errkind.Invalid, "sort", "99")
	token := objects.Token{Revision: revision, After: "nobody"}.Encode()
	_, err = f.List(t.Context(), &holdfast.ListRequest{
		Kind: holdfast.Kind_KIND_SERVICE, Sort: holdfast.Sort_SORT_NAME, Continue: token,
	})
	wantError(t, err, errkind.Invalid, "continue", "nobody")
}

// A count that goes on counts the rest.
func TestCountGoesOn(t *testing.T) {
	f := newFixture(t)
	f.crowd(20)
	for by := range holdfast.Sort_name {
		r := &holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, Limit: 6, Sort: holdfast.Sort(by)}
		first, err := f.List(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		r.Continue, r.CountOnly = first.Continue, true
		rest, err := f.List(t.Context(), r)
		if err != nil || rest.Remaining != 14 || first.Remaining != 14 {
			t.Errorf("%v: %v, %v", r, rest, err)
		}
	}
}

// Keys are the ID, the meta and the name, and nothing else; they are found by the same name.
func TestKeysOnly(t *testing.T) {
	f := newFixture(t)
	made := f.txn(create(service("web", "tier=front")), create(network("net")), create(secret("sec", "x"))).Objects
	f.txn(create(task(made[0].GetService(), 3)))
	if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
		for _, n := range []*api.Node{
			{Description: &api.NodeDescription{Hostname: "host", Engine: &api.EngineDescription{EngineVersion: "1"}}},
			{Spec: api.NodeSpec{Annotations: annotations("unseen", "a=b")}},
		} {
			if _, err := store.Nodes.Create(tx, n); err != nil {
				return err
			}
		}
		named := task(made[0].GetService(), 4)
		named.Annotations = annotations("own", "a=b")
		if _, err := store.Tasks.Create(tx, named); err != nil {
			return err
		}
		if _, err := store.Clusters.Create(tx, &api.Cluster{
			Spec: api.ClusterSpec{Annotations: annotations("default", "a=b")}, RootCA: api.RootCA{CAKey: []byte("k")},
		}); err != nil {
			return err
		}
		_, err := store.Configs.Create(tx, &api.Config{Spec: api.ConfigSpec{Annotations: annotations("conf"), Data: []byte("d")}})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, k := range kinds.All() {
		full := f.list(k.Kind(), holdfast.Selector{}).Objects
		keys, err := f.List(t.Context(), &holdfast.ListRequest{Kind: k.Kind(), KeysOnly: true})
		if err != nil || len(keys.Objects) != len(full) {
			t.Fatalf("%v: %v, %v", k.Noun(), keys, err)
		}
		for i := range full {
			seen++
			o, key := objects.Unwrap(full[i]), objects.Unwrap(keys.Objects[i])
			meta, keyMeta := o.GetMeta(), key.GetMeta()
			if key.GetID() != o.GetID() || !keyMeta.Equal(&meta) || k.NameOf(key) != k.NameOf(o) || k.NameOf(o) == "" {
				t.Errorf("%v\nbecame %v", o, key)
			}
			bare := k.Keys(k.Blank(key.GetID()))
			most := bare.Size() + 2*meta.Size() + len(k.NameOf(o)) + 24
			if key.Size() > most || strings.Contains(fmt.Sprint(key), "tier") {
				t.Errorf("a key of %d bytes, want at most %d: %v", key.Size(), most, key)
			}
		}
	}
	if seen != 9 {
		t.Errorf("%d objects", seen)
	}
}
