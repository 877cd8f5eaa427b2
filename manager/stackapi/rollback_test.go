package stackapi_test

import (
	"errors"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// version is one of several versions of a stack: they differ in a secret, a config and replicas.
func version(n uint64) *holdfast.DeployRequest {
	r := scaled("a", n)
	r.Secrets[0].Data = append([]byte(canary), byte('0'+n))
	r.Configs[0].Data = append([]byte("listen "), byte('0'+n))
	r.Compose = strings.Repeat("#", int(n))
	return r
}

// holds checks which version of the stack is there.
func (f *fixture) holds(n uint64) {
	f.t.Helper()
	web, want := f.service("a_web").Spec, version(n)
	container := web.Task.GetContainer()
	secret := store.Secrets.Get(f.store.Root(), container.Secrets[0].SecretID)
	config := store.Configs.Get(f.store.Root(), container.Configs[0].ConfigID)
	if web.GetReplicated().Replicas != n || string(secret.GetSpec().Data) != string(want.Secrets[0].Data) ||
		string(config.GetSpec().Data) != string(want.Configs[0].Data) {
		f.t.Errorf("%d replicas, %q, %q; want version %d", web.GetReplicated().Replicas, secret.GetSpec().Data, config.GetSpec().Data, n)
	}
}

func TestRollback(t *testing.T) {
	f := newFixture(t)
	for n := range uint64(3) {
		f.deploy(version(n + 1))
	}
	resp := must(f.Rollback(as(t, "carol", "back"), &holdfast.RollbackRequest{Name: "a"}))
	if resp.Release != 4 || say(resp.Changes) != "unchanged service a_db, updated service a_web, unchanged network a_front, "+
		"unchanged secret a_key, unchanged config a_conf" {
		t.Errorf("release %d: %s", resp.Release, say(resp.Changes))
	}
	f.holds(2)
	if got := f.history("a"); got != "1 superseded, 2 superseded, 3 superseded, 4 deployed of 2" {
		t.Errorf("got %s", got)
	}
	four := must(f.GetRelease(t.Context(), &holdfast.GetReleaseRequest{Name: "a"}))
	if four.Compose != "##" || four.Release.Actor != "carol" || four.Release.RollbackOf != 2 {
		t.Errorf("got %v", four)
	}
	// Of a rollback there is a release before it, too: 3, which was deployed then.
	must(f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a"}))
	f.holds(3)
	must(f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a", Number: 1}))
	f.holds(1)
	// To what is deployed there is nothing to do, and the file that it was made of changes nothing.
	revision := f.store.Root().Revision()
	if resp := must(f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a", Number: 1})); resp.Release != 6 {
		t.Errorf("release %d", resp.Release)
	}
	f.deploy(version(1))
	if now := f.store.Root().Revision(); now != revision {
		t.Errorf("the revision moved from %d to %d", revision, now)
	}
	dry := must(f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a", Number: 3, DryRun: true}))
	if now := f.store.Root().Revision(); now != revision || dry.Release != 7 || dry.Revision != revision {
		t.Errorf("the revision moved from %d to %d: %v", revision, now, dry)
	}
	f.holds(1)
	// A retry gets what the first one did.
	ctx := withRequest(t, "1")
	first := must(f.Rollback(ctx, &holdfast.RollbackRequest{Name: "a", Number: 3}))
	f.deploy(version(9))
	if again := must(f.Rollback(ctx, &holdfast.RollbackRequest{Name: "a", Number: 3})); !again.Equal(first) {
		t.Errorf("got %v, want %v", again, first)
	}
	f.holds(9)
}

func TestRollbackRefuses(t *testing.T) {
	f := newFixture(t)
	f.deploy(app("b"))
	_, err := f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "b"})
	wantError(t, err, errkind.NotFound, "", "stack b", "before release 1")
	f.network("proxy", nil)
	first := version(1)
	first.ExternalNetworks = []string{"proxy"}
	f.deploy(first)
	key := f.stored("a_key")
	f.deploy(version(2))
	for _, c := range []struct {
		request *holdfast.RollbackRequest
		kind    errkind.Kind
		field   string
		texts   []string
	}{
		{&holdfast.RollbackRequest{}, errkind.Invalid, "name", []string{"is empty"}},
		{&holdfast.RollbackRequest{Name: "gone"}, errkind.NotFound, "", []string{"stack gone"}},
		{&holdfast.RollbackRequest{Name: "a", Number: 7}, errkind.NotFound, "", []string{"stack a", "release 7"}},
		{&holdfast.RollbackRequest{
			Name: "a", Expect: &holdfast.RollbackRequest_ExpectRelease{ExpectRelease: 1},
		}, errkind.OutOfSequence, "expect_release", []string{"release 2 came first"}},
	} {
		_, err := f.Rollback(t.Context(), c.request)
		wantError(t, err, c.kind, c.field, c.texts...)
	}
	remove := func(do func(tx *store.Tx) error) {
		f.t.Helper()
		f.update(do)
	}
	proxy := must(store.Networks.FindAll(f.store.Root(), store.ByName("proxy")))[0]
	remove(func(tx *store.Tx) error { _, err := store.Networks.Delete(tx, proxy.ID); return err })
	_, err = f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a"})
	wantError(t, err, errkind.Refused, "external_networks[0]", `"proxy"`, "release 1 cannot be deployed again")
	f.network("proxy", nil)

	old := f.secret(key)
	remove(func(tx *store.Tx) error { _, err := store.Secrets.Delete(tx, old.ID); return err })
	_, err = f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a"})
	wantError(t, err, errkind.Refused, "", "secret "+key, "does not exist", "release 1")
	remove(func(tx *store.Tx) error { // that has its name is not it
		o := old.Copy()
		o.ID, o.Spec.Data = "", []byte("guess")
		_, err := store.Secrets.Create(tx, o)
		return err
	})
	_, err = f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a"})
	wantError(t, err, errkind.Refused, "", "secret "+key, "replaced", "release 1")
	f.holds(2)
}

func TestRemoveWithHistory(t *testing.T) {
	f := newFixture(t)
	f.deploy(version(1))
	f.deploy(version(2))
	ctx := withRequest(t, "1")
	keep := &holdfast.RemoveStackRequest{Name: "a", KeepHistory: true}
	resp := must(f.Remove(ctx, keep))
	if got := say(resp.Changes); got != "removed service a_db, removed service a_web, removed network a_front" {
		t.Errorf("got %s", got)
	}
	if got := f.inventory(); got != "secret a_key, secret a_key, config a_conf, config a_conf" {
		t.Errorf("left: %s", got)
	}
	if got := f.history("a"); got != "1 superseded, 2 uninstalled" {
		t.Errorf("got %s", got)
	}
	if again := must(f.Remove(ctx, keep)); !again.Equal(resp) {
		t.Errorf("got %v, want %v", again, resp)
	}
	if resp := must(f.Remove(t.Context(), keep)); len(resp.Changes) != 0 || resp.Revision != 3 {
		t.Errorf("once more: %v", resp)
	}
	list := must(f.List(t.Context(), &holdfast.ListStacksRequest{})).Stacks
	if len(list) != 1 || list[0].Release.GetStatus() != "uninstalled" || list[0].Services != 0 {
		t.Errorf("got %v", list)
	}
	if r := must(f.GetRelease(t.Context(), &holdfast.GetReleaseRequest{Name: "a"})).Release; r.Number != 2 {
		t.Errorf("got %v", r)
	}
	_, err := f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a"})
	wantError(t, err, errkind.Refused, "", "stack a", "no release is deployed")
	_, err = f.Deploy(t.Context(), expect(version(1), 2))
	wantError(t, err, errkind.OutOfSequence, "expect_release", "no release is deployed")
	must(f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a", Number: 1}))
	f.holds(1)
	if got := f.history("a"); got != "1 superseded, 2 uninstalled, 3 deployed of 1" {
		t.Errorf("got %s", got)
	}
	// One that was uninstalled is not gone back to, unless it is asked for: this goes to 1 again.
	if resp := must(f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a"})); resp.Release != 3 {
		t.Errorf("release %d: %s", resp.Release, say(resp.Changes))
	}

	must(f.Remove(t.Context(), keep))
	resp = must(f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"}))
	if got := say(resp.Changes); got != "removed secret a_key, removed secret a_key, removed config a_conf, removed config a_conf" {
		t.Errorf("got %s", got)
	}
	if got := f.inventory(); got != "" || f.records() != 0 {
		t.Errorf("left: %s, and %d parts of records", got, f.records())
	}
	_, err = f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"})
	wantError(t, err, errkind.NotFound, "", "stack a")
	if r := f.deploy(version(1)); r.Release != 1 {
		t.Errorf("it begins with release %d", r.Release)
	}
}

func TestGetRelease(t *testing.T) {
	f := newFixture(t)
	first := version(1)
	first.Secrets[0].Templating = &api.Driver{Name: "golang"}
	f.deploy(first)
	key, conf := f.stored("a_key"), f.stored("a_conf")
	f.deploy(version(2))
	resp := must(f.GetRelease(t.Context(), &holdfast.GetReleaseRequest{Name: "a", Number: 1}))
	want := version(1)
	want.Secrets[0].Templating = &api.Driver{Name: "golang"}
	want.Secrets[0].Data, want.Configs[0].Data, want.Compose = nil, nil, ""
	want.StagedSecrets, want.StagedConfigs = map[string]string{"a_key": key}, map[string]string{"a_conf": conf}
	if !resp.Request.Equal(want) {
		t.Errorf("got  %v\nwant %v", resp.Request, want)
	}
	if resp.Compose != "#" || resp.Release.Status != "superseded" || resp.Release.Number != 1 {
		t.Errorf("got %v, %q", resp.Release, resp.Compose)
	}
	// It can be deployed as it is.
	again := f.deploy(resp.Request)
	if again.Release != 3 {
		t.Errorf("release %d", again.Release)
	}
	_, err := f.GetRelease(t.Context(), &holdfast.GetReleaseRequest{Name: "a", Number: 9})
	wantError(t, err, errkind.NotFound, "", "stack a", "release 9")
	_, err = f.GetRelease(t.Context(), &holdfast.GetReleaseRequest{})
	wantError(t, err, errkind.Invalid, "name", "is empty")
}

// A dry run tells what would be done, and does nothing.
func TestDryRun(t *testing.T) {
	f := newFixture(t)
	first := app("a")
	first.DryRun = true
	resp := f.deploy(first)
	if got := say(resp.Changes); got != created || resp.Release != 1 || resp.Revision != 0 {
		t.Errorf("got %s, release %d at %d", got, resp.Release, resp.Revision)
	}
	for _, c := range resp.Changes {
		if c.ID != "" || c.Kind == holdfast.Kind_KIND_SECRET && c.Name != "a_key" {
			t.Errorf("%v is not yet there, and has an ID or a name that it will not have", c)
		}
	}
	if got := f.inventory(); got != "" || f.records() != 0 {
		t.Errorf("it made %s", got)
	}
	f.deploy(version(1))
	next := version(2)
	next.DryRun = true
	next.Configs[0].Annotations.Labels = map[string]string{"x": "y"}
	next.Services[0].Task.GetContainer().Env = []string{"A=b"}
	resp = f.deploy(next)
	if resp.Release != 2 || resp.Revision != 1 || f.store.Root().Revision() != 1 {
		t.Errorf("release %d at %d", resp.Release, resp.Revision)
	}
	fields := map[string]string{}
	for _, c := range resp.Changes {
		for _, d := range c.Fields {
			fields[short(c.Name)+" "+d.Path] = d.Old + ">" + d.New
			if d.Secret {
				fields[short(c.Name)+" "+d.Path] = "secret"
			}
		}
	}
	for path, want := range map[string]string{
		"a_web spec.replicated.replicas":            `"1">"2"`,
		"a_web spec.task.container.env[0]":          `>"A=b"`,
		"a_web spec.task.container.secrets[0].data": "secret",
		"a_web spec.task.container.configs[0].data": `"` + digest("listen 1") + `">"` + digest("listen 2") + `"`,
	} {
		if fields[path] != want {
			t.Errorf("%s: got %q, want %q", path, fields[path], want)
		}
	}
	if len(fields) != 4 {
		t.Errorf("got %v", fields)
	}
	if strings.Contains(resp.String(), canary) {
		t.Errorf("the data of a secret is in %s", resp)
	}
	f.holds(1)
	// Its errors are those of the deployment.
	large := app("a")
	large.DryRun = true
	for i := range 10 {
		large.Secrets = append(large.Secrets, api.SecretSpec{
			Annotations: api.Annotations{Name: "a_s" + string(rune('a'+i))}, Data: make([]byte, 500_000),
		})
	}
	_, err := f.Deploy(t.Context(), large)
	wantError(t, err, errkind.Limit, "", "stack a", "4 MiB")
	bad := app("a")
	bad.DryRun = true
	bad.Networks[0].Internal = true
	_, err = f.Deploy(t.Context(), bad)
	wantError(t, err, errkind.Invalid, "networks[0].internal", "network a_front")
}

// A record that would not fit into the transaction is refused.
func TestLargeRecord(t *testing.T) {
	f := newFixture(t)
	r := app("a")
	r.Compose = noise(9 << 20)
	_, err := f.Deploy(t.Context(), r)
	wantError(t, err, errkind.Limit, "", "release stacks/a.v1", "bytes")
	if e, _ := errors.AsType[*errkind.Error](err); e.Hint == "" || e.Max != "3.75 MiB" {
		t.Errorf("got %+v", e)
	}
	r.Compose = noise(1 << 20)
	f.deploy(r)
	got := must(f.GetRelease(t.Context(), &holdfast.GetReleaseRequest{Name: "a"})).Compose
	if got != r.Compose {
		t.Errorf("%d bytes came of %d", len(got), len(r.Compose))
	}
	must(f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"}))
	if n := f.records(); n != 0 {
		t.Errorf("%d parts of records are left", n)
	}
}
