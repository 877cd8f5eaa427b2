package objectapi_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objectapi"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// names gives the names of listed objects, sorted.
func names(resp *holdfast.ListResponse) string {
	var all []string
	for _, o := range resp.Objects {
		switch o := objects.Unwrap(o).(type) {
		case *api.Service:
			all = append(all, o.Spec.Annotations.Name)
		case *api.Task:
			all = append(all, fmt.Sprintf("%s.%d", o.ServiceAnnotations.Name, o.Slot))
		case *api.Node:
			all = append(all, o.Description.Hostname)
		case *api.Network:
			all = append(all, o.Spec.Annotations.Name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestListSelects(t *testing.T) {
	f := newFixture(t)
	net := f.txn(create(network("net"))).Objects[0].GetNetwork()
	sec := f.txn(create(secret("sec", "x"))).Objects[0].GetSecret()
	withNet := service("api", "tier=back", "x")
	withNet.Spec.Task.Networks = []*api.NetworkAttachmentConfig{{Target: net.ID}}
	withSecret := service("web", "tier=front", store.StackLabel+"=shop")
	withSecret.Spec.Task.GetContainer().Secrets = []*api.SecretReference{{
		SecretID: sec.ID, SecretName: "sec",
		Target: &api.SecretReference_File{File: &api.FileTarget{Name: "f"}},
	}}
	made := f.txn(create(withNet), create(withSecret), create(service("Worker"))).Objects
	first, second := made[0].GetService(), made[1].GetService()
	f.txn(create(task(first, 1)), create(task(first, 2)), create(task(second, 1)))
	if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
		for i, role := range []api.NodeRole{api.NodeRole_WORKER, api.NodeRole_MANAGER} {
			if _, err := store.Nodes.Create(tx, &api.Node{
				Role: role, Description: &api.NodeDescription{Hostname: fmt.Sprint("host", i)},
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	type selector = holdfast.Selector
	for _, c := range []struct {
		name string
		kind holdfast.Kind
		s    selector
		want string
	}{
		{"all", holdfast.Kind_KIND_SERVICE, selector{}, "Worker api web"},
		{"IDs are ORed", holdfast.Kind_KIND_SERVICE, selector{IDs: []string{first.ID, second.ID, first.ID, "no"}}, "api web"},
		{"ID prefix", holdfast.Kind_KIND_SERVICE, selector{IDPrefixes: []string{first.ID[:24]}}, "api"},
		{"names without case", holdfast.Kind_KIND_SERVICE, selector{Names: []string{"WEB", "worker"}}, "Worker web"},
		{"name prefixes", holdfast.Kind_KIND_SERVICE, selector{NamePrefixes: []string{"W"}}, "Worker web"},
		{
			"fields are ANDed", holdfast.Kind_KIND_SERVICE,
			selector{NamePrefixes: []string{"w"}, Names: []string{"web", "api"}},
			"web",
		},
		{"label", holdfast.Kind_KIND_SERVICE, selector{Labels: map[string]string{"tier": "front"}}, "web"},
		{"label exists", holdfast.Kind_KIND_SERVICE, selector{Labels: map[string]string{"tier": ""}}, "api web"},
		{"empty label exists", holdfast.Kind_KIND_SERVICE, selector{Labels: map[string]string{"x": ""}}, "api"},
		{
			"labels are ANDed", holdfast.Kind_KIND_SERVICE,
			selector{Labels: map[string]string{"tier": "", "x": ""}},
			"api",
		},
		{"where a label is", holdfast.Kind_KIND_SERVICE, selector{Where: "tier in (front, back), x"}, "api"},
		{"where it is not", holdfast.Kind_KIND_SERVICE, selector{Where: "!tier"}, "Worker"},
		{"where and labels", holdfast.Kind_KIND_SERVICE, selector{Where: ".name!=api", Labels: map[string]string{"tier": ""}}, "web"},
		{"where and names", holdfast.Kind_KIND_SERVICE, selector{Where: "tier=back", Names: []string{"web"}}, ""},
		{"where its service is", holdfast.Kind_KIND_TASK, selector{Where: ".service=" + first.ID + ",.slot notin (1)"}, "api.2"},
		{"where its state is", holdfast.Kind_KIND_TASK, selector{Where: ".state=new,.service!=" + first.ID}, "web.1"},
		{"where the node is a manager", holdfast.Kind_KIND_NODE, selector{Where: ".role=manager,.availability=active"}, "host1"},
		{"where the ID is", holdfast.Kind_KIND_NETWORK, selector{Where: ".generation=1,.id=" + net.ID}, "net"},
		{"stack", holdfast.Kind_KIND_SERVICE, selector{Labels: map[string]string{store.StackLabel: "shop"}}, "web"},
		{"stack and name", holdfast.Kind_KIND_SERVICE, selector{
			Labels: map[string]string{store.StackLabel: "shop"}, Names: []string{"api"},
		}, ""},
		{"network", holdfast.Kind_KIND_SERVICE, selector{NetworkIDs: []string{net.ID}}, "api"},
		{"secret", holdfast.Kind_KIND_SERVICE, selector{SecretIDs: []string{sec.ID}}, "web"},
		{"config", holdfast.Kind_KIND_SERVICE, selector{ConfigIDs: []string{"x"}}, ""},
		{"tasks of a service", holdfast.Kind_KIND_TASK, selector{ServiceIDs: []string{first.ID}}, "api.1 api.2"},
		{"tasks by network", holdfast.Kind_KIND_TASK, selector{NetworkIDs: []string{net.ID}}, "api.1 api.2"},
		{
			"tasks by states", holdfast.Kind_KIND_TASK, selector{
				DesiredStates: []api.TaskState{api.TaskState_RUNNING}, States: []api.TaskState{api.TaskState_NEW},
				SecretIDs: []string{sec.ID},
			}, "web.1",
		},
		{"tasks by their service's label", holdfast.Kind_KIND_TASK, selector{Labels: map[string]string{"tier": "front"}}, "web.1"},
		{"tasks by node", holdfast.Kind_KIND_TASK, selector{NodeIDs: []string{"x"}}, ""},
		{"nodes by role", holdfast.Kind_KIND_NODE, selector{Roles: []api.NodeRole{api.NodeRole_MANAGER}}, "host1"},
		{"nodes by membership", holdfast.Kind_KIND_NODE, selector{
			Memberships: []api.NodeSpec_Membership{api.NodeSpec_PENDING},
		}, "host0 host1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := f.list(c.kind, c.s)
			if got := names(resp); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if !slices.IsSortedFunc(resp.Objects, func(a, b *holdfast.Object) int {
				return strings.Compare(objects.Unwrap(a).GetID(), objects.Unwrap(b).GetID())
			}) {
				t.Error("not in the order of IDs")
			}
		})
	}
}

func TestEveryKindIsListed(t *testing.T) {
	f := newFixture(t)
	for number := range holdfast.Kind_name {
		kind := holdfast.Kind(number)
		if kind == holdfast.Kind_KIND_UNSPECIFIED {
			continue
		}
		for _, s := range []holdfast.Selector{
			{},
			{IDs: []string{"x"}, IDPrefixes: []string{"x"}, Names: []string{"x"}, NamePrefixes: []string{"x"}},
			{Labels: map[string]string{store.StackLabel: "x"}},
		} {
			if got := f.list(kind, s); len(got.Objects) != 0 || got.Remaining != 0 || got.Continue != "" {
				t.Errorf("%v: %v", kind, got)
			}
		}
	}
}

func TestListRefusesFieldsThatAKindLacks(t *testing.T) {
	f := newFixture(t)
	type selector = holdfast.Selector
	one := []string{"x"}
	for _, c := range []struct {
		kind  holdfast.Kind
		s     selector
		field string
	}{
		{holdfast.Kind_KIND_SERVICE, selector{ServiceIDs: one}, "selector.service_ids"},
		{holdfast.Kind_KIND_SERVICE, selector{NodeIDs: one}, "selector.node_ids"},
		{holdfast.Kind_KIND_NETWORK, selector{NetworkIDs: one}, "selector.network_ids"},
		{holdfast.Kind_KIND_SECRET, selector{SecretIDs: []string{"x", "y"}}, "selector.secret_ids"},
		{holdfast.Kind_KIND_CONFIG, selector{ConfigIDs: one}, "selector.config_ids"},
		{holdfast.Kind_KIND_NODE, selector{States: make([]api.TaskState, 1)}, "selector.states"},
		{holdfast.Kind_KIND_NODE, selector{DesiredStates: make([]api.TaskState, 1)}, "selector.desired_states"},
		{holdfast.Kind_KIND_TASK, selector{Roles: make([]api.NodeRole, 1)}, "selector.roles"},
		{holdfast.Kind_KIND_CLUSTER, selector{Memberships: make([]api.NodeSpec_Membership, 1)}, "selector.memberships"},
	} {
		_, err := f.List(t.Context(), &holdfast.ListRequest{Kind: c.kind, Selector: c.s})
		wantError(t, err, errkind.Invalid, c.field, "do not have this field")
	}
	_, err := f.List(t.Context(), &holdfast.ListRequest{})
	wantError(t, err, errkind.Invalid, "kind", "is empty")
	_, err = f.List(t.Context(), &holdfast.ListRequest{Kind: holdfast.Kind_KIND_NODE, Continue: "nonsense"})
	wantError(t, err, errkind.Invalid, "continue", "not a token")
	for where, want := range map[string]string{"a=": "column 3", ".slot=1": ".slot", ".nonsense": ".nonsense"} {
		_, err = f.List(t.Context(), &holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, Selector: selector{Where: where}})
		wantError(t, err, errkind.Invalid, "selector.where", want)
	}
}

// All pages show the revision of the first, whatever is written between them.
func TestListPagesAtOneRevision(t *testing.T) {
	f := newFixture(t)
	var operations []*holdfast.Operation
	for i := range 25 {
		operations = append(operations, create(service(fmt.Sprint("s", i))))
	}
	made := f.txn(operations...)
	seen := map[string]bool{}
	r := &holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, Limit: 10}
	for want, last := []int{10, 10, 5}, ""; ; want = want[1:] {
		resp, err := f.List(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range resp.Objects {
			id := o.GetService().ID
			if id <= last || seen[id] {
				t.Errorf("%s after %s", id, last)
			}
			last, seen[id] = id, true
		}
		if len(resp.Objects) != want[0] || resp.Remaining != uint64(25-len(seen)) || resp.Revision != made.Revision {
			t.Fatalf("page of %d, remaining %d, revision %d", len(resp.Objects), resp.Remaining, resp.Revision)
		}
		if resp.Continue == "" {
			break
		}
		r.Continue = resp.Continue
		f.txn(create(service(fmt.Sprint("more", len(seen)))), remove(holdfast.Kind_KIND_SERVICE, func() string {
			for _, o := range made.Objects { // one that comes later
				if id := o.GetService().ID; !seen[id] && store.Services.Get(f.store.Root(), id) != nil {
					return id
				}
			}
			return ""
		}()))
	}
	if len(seen) != 25 {
		t.Errorf("%d objects in all", len(seen))
	}
}

func TestListCutsPagesByBytes(t *testing.T) {
	f := newFixture(t)
	const count, bound = 70, 32 << 10
	f.SetPageBytes(bound)
	operations := make([]*holdfast.Operation, count)
	for i := range operations {
		operations[i] = create(service(fmt.Sprint("s", i), "pad="+strings.Repeat("x", 900)))
	}
	f.txn(operations...)
	total, pages := 0, 0
	for r := (&holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE}); ; {
		resp, err := f.List(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		total += len(resp.Objects)
		pages++
		if resp.Size() > bound+1024 || len(resp.Objects) == 0 || resp.Remaining != uint64(count-total) {
			t.Fatalf("page of %d objects and %d bytes, remaining %d", len(resp.Objects), resp.Size(), resp.Remaining)
		}
		if r.Continue = resp.Continue; r.Continue == "" {
			break
		}
	}
	if total != count || pages != 3 {
		t.Errorf("%d objects in %d pages, want %d in 3", total, pages, count)
	}
	f.SetPageBytes(1)
	if resp := f.list(holdfast.Kind_KIND_SERVICE, holdfast.Selector{}); len(resp.Objects) != 1 {
		t.Errorf("a page of %d objects under the smallest bound", len(resp.Objects))
	}
}

// behind is a manager that has not applied a revision yet, until it is read freshly.
type behind struct {
	*store.MemoryStore
	revision uint64
}

func (b *behind) At(revision uint64) (store.ReadTx, error) {
	if revision > b.revision {
		return nil, &errkind.Error{Kind: errkind.OutOfRange, Seen: revision, Now: b.revision, Msg: "future revision"}
	}
	return b.MemoryStore.At(revision)
}

func (b *behind) Read(context.Context) (store.ReadTx, error) {
	b.revision = b.Root().Revision()
	return b.Root(), nil
}

func TestListGoesOnAtAManagerThatIsBehind(t *testing.T) {
	f := newFixture(t)
	f.txn(create(service("a")), create(service("b")))
	first, err := f.List(t.Context(), &holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := &behind{MemoryStore: f.store}
	resp, err := objectapi.New(b, b, files(t)).List(t.Context(), &holdfast.ListRequest{
		Kind: holdfast.Kind_KIND_SERVICE, Continue: first.Continue,
	})
	if err != nil || len(resp.Objects) != 1 || resp.Revision != first.Revision || resp.Continue != "" {
		t.Errorf("got %v, %v", resp, err)
	}
	token := objects.Token{Revision: 99, After: "x"}.Encode()
	_, err = f.List(t.Context(), &holdfast.ListRequest{Kind: holdfast.Kind_KIND_SERVICE, Continue: token})
	wantError(t, err, errkind.OutOfRange, "", "future")
}
