package stackapi_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
	"holdfast/release/driver/object"
	"holdfast/release/storage"
)

func TestListAndRemove(t *testing.T) {
	f := newFixture(t)
	f.network("proxy", nil)
	f.deploy(app("b"))
	small := app("a")
	small.Services = small.Services[1:]
	f.deploy(small)
	list, err := f.List(t.Context(), &holdfast.ListStacksRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Stacks {
		if r := s.Release; r.GetNumber() != 1 || r.Status != "deployed" || r.Created != map[string]uint32{"a": 4, "b": 5}[s.Name] {
			t.Errorf("the release of %s is %v", s.Name, r)
		}
		s.Release = nil
	}
	want := &holdfast.ListStacksResponse{Revision: 3, Stacks: []*holdfast.Stack{
		{Name: "a", Services: 1, Networks: 1, Secrets: 1, Configs: 1},
		{Name: "b", Services: 2, Networks: 1, Secrets: 1, Configs: 1},
	}}
	if !list.Equal(want) {
		t.Errorf("got %v, want %v", list, want)
	}
	f.task(f.service("b_web"))
	resp, err := f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := say(resp.Changes), "removed service b_db, removed service b_web, removed network b_front, "+
		"removed secret b_key, removed config b_conf"; got != want || resp.Revision != 5 {
		t.Errorf("got %s at %d, want %s", got, resp.Revision, want)
	}
	if got := f.inventory(); got != "service a_db, network a_front, network proxy, secret a_key, config a_conf" {
		t.Errorf("left: %s", got)
	}
	if tasks := must(store.Tasks.FindAll(f.store.Root(), store.All())); len(tasks) != 1 {
		t.Errorf("tasks are left to their controllers; %d are left", len(tasks))
	}
	_, err = f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "b"})
	wantError(t, err, errkind.NotFound, "", "stack b")
	_, err = f.Remove(t.Context(), &holdfast.RemoveStackRequest{})
	wantError(t, err, errkind.Invalid, "name", "is empty")
}

func TestRemoveOfALargeStack(t *testing.T) {
	f := newFixture(t)
	r := &holdfast.DeployRequest{Name: "a", MaxHistory: 1}
	const most = 512 - 3 // a release takes three: its head, its body, and the mark that it is deployed
	for i := range most + 1 {
		r.Services = append(r.Services, serviceSpec(fmt.Sprint("s", i)))
	}
	_, err := f.Deploy(t.Context(), r)
	wantError(t, err, errkind.Limit, "", "stack a", "510 objects", "3 more", "512")
	r.Services = r.Services[1:]
	f.deploy(r)
	r.Services = append(r.Services, serviceSpec("more"))
	f.deploy(r) // one change more is not too many
	_, err = f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"})
	wantError(t, err, errkind.Limit, "", "stack a", "513 objects", "512")
	r.Services = r.Services[1:]
	f.deploy(r)
	if resp, err := f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"}); err != nil || len(resp.Changes) != most {
		t.Errorf("got %v, %v", resp, err)
	}
	if left := f.records(); left != 0 {
		t.Errorf("%d parts of records are left", left)
	}
}

func TestReplays(t *testing.T) {
	f := newFixture(t)
	ctx1, ctx2, ctx3 := withRequest(t, "1"), withRequest(t, "2"), withRequest(t, "3")
	first, err := f.Deploy(ctx1, app("a"))
	if err != nil {
		t.Fatal(err)
	}
	next := app("a")
	next.Services[0] = serviceSpec("a_new")
	next.Services[1].Task.GetContainer().Env = []string{"A=b"}
	next.Configs = nil
	second, err := f.Deploy(ctx2, next)
	if err != nil {
		t.Fatal(err)
	}
	third, err := f.Remove(ctx3, &holdfast.RemoveStackRequest{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	f.deploy(app("a")) // later things do not show
	for i, again := range []*holdfast.DeployResponse{
		must(f.Deploy(ctx1, app("a"))), must(f.Deploy(ctx2, next)),
	} {
		if want := []*holdfast.DeployResponse{first, second}[i]; !again.Equal(want) {
			t.Errorf("got %d %s\nwant %d %s", again.Revision, say(again.Changes), want.Revision, say(want.Changes))
		}
	}
	again, err := f.Remove(ctx3, &holdfast.RemoveStackRequest{Name: "a"})
	if err != nil || !again.Equal(third) {
		t.Errorf("got %v, %v\nwant %v", again, err, third)
	}
	if got := f.store.Root().Revision(); got != 4 {
		t.Errorf("the revision moved to %d", got)
	}
}

// A replay tells what the history still has.
func TestReplaysAfterCompaction(t *testing.T) {
	loop := storetest.NewLoop(t, store.Options{MaxLog: 3})
	f := over(t, loop.Store)
	f.deploy(app("a"))
	next := app("a")
	next.Services[0], next.Configs = serviceSpec("a_new"), nil
	ctx := withRequest(t, "1")
	second := must(f.Deploy(ctx, next))
	all := say(second.Changes)
	left := strings.NewReplacer(", removed service a_web", "").Replace(all)
	for i, want := range []string{
		all, all, // the revision before is still there
		"removed unspecified , " + left, // it is not
		left,                            // its own revision is not
	} {
		f.network(fmt.Sprint("n", i), nil)
		again := must(f.Deploy(ctx, next))
		if got := say(again.Changes); got != want || again.Revision != second.Revision || again.Release != 2 {
			t.Errorf("step %d: got %s at %d\nwant %s at %d, release %d", i, got, again.Revision, want, second.Revision, again.Release)
		}
	}
	// What came and went later does not show as its.
	f.deploy(app("a"))
	for i := range 3 {
		f.network(fmt.Sprint("later", i), nil)
	}
	if got := say(must(f.Deploy(ctx, next)).Changes); got != strings.ReplaceAll(left, "created service a_new, ", "") {
		t.Errorf("later: %s", got)
	}
}

// Two deployments of one stack at once end as if one had come after the other.
func TestConcurrentDeployments(t *testing.T) {
	for range 20 {
		f := newFixture(t)
		one, two := app("a"), app("a")
		one.Services[0].Mode.(*api.ServiceSpec_Replicated).Replicated.Replicas = 11
		two.Services[0] = serviceSpec("a_two")
		two.Networks, two.Secrets = nil, nil
		var wg sync.WaitGroup
		var responses [2]*holdfast.DeployResponse
		for i, r := range []*holdfast.DeployRequest{one, two} {
			wg.Go(func() {
				var err error
				if responses[i], err = f.Deploy(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		last, want := one, "service a_db, service a_web, network a_front, secret a_key, config a_conf"
		if responses[1].Revision > responses[0].Revision {
			last, want = two, "service a_db, service a_two, secret a_key, config a_conf" // of release 1
		}
		if got := f.inventory(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if again := f.deploy(last); again.Revision != 2 {
			t.Errorf("the last one changes again: %s", say(again.Changes))
		}
	}
}

// No reply gives the data of a secret away, and no record has it. (That no error does is checked
// with each error.)
func TestRepliesDoNotHoldData(t *testing.T) {
	f := newFixture(t)
	ctx := withRequest(t, "1")
	dry, staged := version(4), version(5)
	dry.DryRun = true
	replies := []interface{ String() string }{
		f.deploy(app("a")), f.deploy(app("a")), f.deploy(version(1)), f.deploy(version(2)), f.deploy(dry),
		must(f.Stage(t.Context(), staging(staged))),
		must(f.List(t.Context(), &holdfast.ListStacksRequest{})),
		must(f.History(t.Context(), &holdfast.StackHistoryRequest{Name: "a"})),
		must(f.GetRelease(t.Context(), &holdfast.GetReleaseRequest{Name: "a"})),
		must(f.Compare(t.Context(), &holdfast.CompareStackRequest{Name: "a", Request: version(3)})),
		must(f.Compare(t.Context(), &holdfast.CompareStackRequest{Name: "a", From: 1, To: 2})),
		must(f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a", DryRun: true})),
		must(f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a"})),
	}
	bodies := 0
	for o := range must(store.Secrets.Find(f.store.Root(), store.All())) {
		p, ok := object.PartOf(o.Spec.Annotations.Labels)
		if !ok {
			if !strings.Contains(string(o.Spec.Data), canary) {
				t.Errorf("%s is without the canary: the test tells nothing", o.Spec.Annotations.Name)
			}
			continue
		}
		if strings.Contains(o.String(), canary) {
			t.Errorf("the data of a secret is in %s", o)
		}
		if !p.Head && !p.Mark {
			bodies++
			body := string(must(storage.Decode(o.Spec.Data)))
			if strings.Contains(body, canary) || strings.Contains(body, base64.StdEncoding.EncodeToString([]byte(canary))[:12]) {
				t.Errorf("the data of a secret is in the record %s", body)
			}
			if !strings.Contains(body, `"stagedSecrets":{"a_key":"a_key-`) {
				t.Errorf("the record names no secret: %s", body)
			}
		}
	}
	if bodies != 4 {
		t.Errorf("%d bodies", bodies)
	}
	replies = append(replies,
		must(f.Remove(ctx, &holdfast.RemoveStackRequest{Name: "a"})),
		must(f.Remove(ctx, &holdfast.RemoveStackRequest{Name: "a"})),
	)
	for _, reply := range replies {
		if strings.Contains(reply.String(), canary) {
			t.Errorf("the data of a secret is in %s", reply)
		}
	}
}
