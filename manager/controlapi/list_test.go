package controlapi_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/controlapi"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

func names[T any](all []T, name func(T) string) string {
	out := make([]string, len(all))
	for i, o := range all {
		out[i] = name(o)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestServiceFilters(t *testing.T) {
	r := newRig(t)
	web := r.create(serviceSpec("web", "tier", "front", "app", "shop"))
	r.create(serviceSpec("web2", "tier", "front"))
	db := r.create(serviceSpec("db", "tier", "back"))
	type filters = api.ListServicesRequest_Filters
	for _, c := range []struct {
		name string
		f    *filters
		want string
	}{
		{"none", nil, "db web web2"},
		{"empty", &filters{}, "db web web2"},
		{"name", &filters{Names: []string{"WEB"}}, "web"},
		{"names are ORed", &filters{Names: []string{"web", "db", "x"}}, "db web"},
		{"name prefix", &filters{NamePrefixes: []string{"W"}}, "web web2"},
		{"ID prefix", &filters{IDPrefixes: []string{web.ID[:20], db.ID}}, "db web"},
		{"label", &filters{Labels: map[string]string{"tier": "front"}}, "web web2"},
		{"label that is there", &filters{Labels: map[string]string{"app": ""}}, "web"},
		{"labels are ANDed", &filters{Labels: map[string]string{"tier": "back", "app": ""}}, ""},
		{"filters are ANDed", &filters{NamePrefixes: []string{"web"}, Labels: map[string]string{"app": ""}}, "web"},
		{"runtime", &filters{Runtimes: []string{"container"}}, "db web web2"},
		{"other runtime", &filters{Runtimes: []string{"attachment"}}, ""},
	} {
		resp, err := r.ListServices(r.ctx, &api.ListServicesRequest{Filters: c.f})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := names(resp.Services, func(s *api.Service) string { return s.Spec.Annotations.Name }); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTaskFilters(t *testing.T) {
	r := newRig(t)
	s := r.create(serviceSpec("web", "a", "b"))
	old := s.Spec.Task.Copy()
	old.ForceUpdate = 9
	r.write(func(tx *store.Tx) error {
		for _, task := range []*api.Task{
			{Annotations: named("one", "own", ""), ServiceID: s.ID, Spec: s.Spec.Task, DesiredState: api.TaskState_RUNNING},
			{Annotations: named("two"), ServiceID: s.ID, Spec: *old, SpecVersion: s.SpecVersion},
			{Annotations: named("three"), ServiceID: s.ID, Spec: *old, ServiceAnnotations: s.Spec.Annotations},
			{Annotations: named("four"), Spec: *old, NodeID: "n"},
		} {
			if _, err := store.Tasks.Create(tx, task); err != nil {
				return err
			}
		}
		return nil
	})
	type filters = api.ListTasksRequest_Filters
	for _, c := range []struct {
		name string
		f    *filters
		want string
	}{
		{"none", nil, "four one three two"},
		{"service", &filters{ServiceIDs: []string{s.ID}}, "one three two"},
		{"node", &filters{NodeIDs: []string{"n", "m"}}, "four"},
		{"desired state", &filters{DesiredStates: []api.TaskState{api.TaskState_RUNNING}}, "one"},
		{"desired states", &filters{DesiredStates: []api.TaskState{api.TaskState_RUNNING, api.TaskState_NEW}}, "four one three two"},
		{"own label", &filters{Labels: map[string]string{"own": ""}}, "one"},
		{"label of the service", &filters{Labels: map[string]string{"a": "b"}}, "three"},
		{"up to date", &filters{UpToDate: true}, "one two"},
		{"name and service", &filters{Names: []string{"one", "four"}, ServiceIDs: []string{s.ID}}, "one"},
	} {
		resp, err := r.ListTasks(r.ctx, &api.ListTasksRequest{Filters: c.f})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := names(resp.Tasks, store.TaskName); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	_, err := r.ListTasks(r.ctx, &api.ListTasksRequest{Filters: &filters{
		DesiredStates: []api.TaskState{api.TaskState_RUNNING, 5},
	}})
	want(t, err, errkind.Invalid, "filters.desired_states[1]")
}

func TestNodeFilters(t *testing.T) {
	r := newRig(t)
	r.write(func(tx *store.Tx) error {
		for _, n := range []*api.Node{
			{
				Role: api.NodeRole_MANAGER, Spec: api.NodeSpec{Annotations: named("", "zone", "a")},
				Description: &api.NodeDescription{
					Hostname: "m", Engine: &api.EngineDescription{Labels: map[string]string{"disk": "ssd"}},
				},
			},
			{Spec: api.NodeSpec{Annotations: named("w", "disk", "ssd"), Membership: api.NodeSpec_ACCEPTED}},
		} {
			if _, err := store.Nodes.Create(tx, n); err != nil {
				return err
			}
		}
		return nil
	})
	type filters = api.ListNodesRequest_Filters
	for _, c := range []struct {
		name string
		f    *filters
		want string
	}{
		{"role", &filters{Roles: []api.NodeRole{api.NodeRole_MANAGER}}, "m"},
		{"membership", &filters{Memberships: []api.NodeSpec_Membership{api.NodeSpec_ACCEPTED}}, "w"},
		{"label of the engine", &filters{Labels: map[string]string{"disk": "ssd"}}, "m"},
		{"label of the node", &filters{NodeLabels: map[string]string{"disk": ""}}, "w"},
		{"name", &filters{Names: []string{"M"}}, "m"},
	} {
		resp, err := r.ListNodes(r.ctx, &api.ListNodesRequest{Filters: c.f})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := names(resp.Nodes, store.Nodes.Name); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	_, err := r.ListNodes(r.ctx, &api.ListNodesRequest{Filters: &filters{Roles: []api.NodeRole{7}}})
	want(t, err, errkind.Invalid, "filters.roles[0]")
	_, err = r.ListNodes(r.ctx, &api.ListNodesRequest{Filters: &filters{Memberships: []api.NodeSpec_Membership{7}}})
	want(t, err, errkind.Invalid, "filters.memberships[0]")
}

// While services come and go, the pages of a list show one revision.
func TestPagesShowOneRevision(t *testing.T) {
	r := newRig(t)
	var ids []string
	for i := range 25 {
		ids = append(ids, r.create(serviceSpec(fmt.Sprint("s", i))).ID)
	}
	slices.Sort(ids)
	var got []string
	req := &api.ListServicesRequest{Limit: 10}
	for page := 0; ; page++ {
		resp, err := r.ListServices(r.ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range resp.Services {
			got = append(got, s.ID)
		}
		if left := uint64(len(ids) - len(got)); resp.Remaining != left {
			t.Errorf("page %d: %d remain, want %d", page, resp.Remaining, left)
		}
		if req.Continue = resp.Continue; req.Continue == "" {
			break
		}
		r.create(serviceSpec(fmt.Sprint("new", page)))
		_, err = r.RemoveService(r.ctx, &api.RemoveServiceRequest{ServiceID: ids[len(ids)-1-page]})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, ids) {
		t.Errorf("got %d services, want the %d of the beginning", len(got), len(ids))
	}
	_, err := r.ListServices(r.ctx, &api.ListServicesRequest{Continue: "x"})
	want(t, err, errkind.Invalid, "continue")
	_, err = r.ListServices(r.ctx, &api.ListServicesRequest{
		Continue: objects.Token{Revision: 1 << 40, After: "0"}.Encode(),
	})
	want(t, err, errkind.OutOfRange, "")
}

// behind is a manager that sees a write only when it is asked for a fresh read.
type behind struct {
	latest
	caughtUp bool
}

func (b *behind) Read(ctx context.Context) (store.ReadTx, error) {
	b.caughtUp = true
	return b.latest.Read(ctx)
}

func (b *behind) Update(ctx context.Context, fn func(*store.Tx) error) (store.Result, error) {
	return b.s.Update(ctx, fn)
}

func (b *behind) At(revision uint64) (store.ReadTx, error) {
	if !b.caughtUp {
		return nil, &errkind.Error{Kind: errkind.OutOfRange, Seen: revision, Now: revision - 1, Msg: "future"}
	}
	return b.s.At(revision)
}

func TestNextPageFromAManagerBehind(t *testing.T) {
	r := newRig(t)
	r.create(serviceSpec("a"))
	r.create(serviceSpec("b"))
	first, err := r.ListServices(r.ctx, &api.ListServicesRequest{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := &behind{latest: latest{r.store}}
	second, err := controlapi.New(b, b).ListServices(r.ctx, &api.ListServicesRequest{Continue: first.Continue})
	if err != nil || len(second.Services) != 1 || second.Continue != "" {
		t.Errorf("%v, %v", second, err)
	}
}

func TestReplyTooLarge(t *testing.T) {
	r := newRig(t)
	data := make([]byte, 1_000_000)
	for i := range 68 {
		_, err := r.CreateConfig(r.ctx, &api.CreateConfigRequest{
			Spec: &api.ConfigSpec{Annotations: named(fmt.Sprint("c", i)), Data: data},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.ListConfigs(r.ctx, &api.ListConfigsRequest{})
	want(t, err, errkind.Limit, "limit")
	resp, err := r.ListConfigs(r.ctx, &api.ListConfigsRequest{Limit: 60})
	if err != nil || len(resp.Configs) != 60 || resp.Remaining != 8 {
		t.Errorf("%d, %d, %v", len(resp.GetConfigs()), resp.GetRemaining(), err)
	}
}
