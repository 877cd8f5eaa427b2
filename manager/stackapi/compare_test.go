package stackapi_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/stackapi"
	"holdfast/manager/state/store"
)

// compare gives what differs, a line for each object.
func (f *fixture) compare(r *holdfast.CompareStackRequest) string {
	f.t.Helper()
	before := f.store.Root().Revision()
	resp, err := f.Compare(f.t.Context(), r)
	if err != nil {
		f.t.Fatal(err)
	}
	if now := f.store.Root().Revision(); now != before || resp.Revision != now {
		f.t.Errorf("the revision is %d, was %d, is told as %d", now, before, resp.Revision)
	}
	if strings.Contains(resp.String(), canary) {
		f.t.Errorf("the data of a secret is in %s", resp)
	}
	var all []string
	for _, o := range resp.Objects {
		line := strings.ToLower(strings.TrimPrefix(o.Kind.String(), "KIND_")) + " " + o.Name + " " +
			strings.ToLower(strings.TrimPrefix(o.Action.String(), "ACTION_"))
		for _, d := range o.Fields {
			if d.Secret {
				line += fmt.Sprintf(" %s:secret", d.Path)
				continue
			}
			line += fmt.Sprintf(" %s:%s>%s", d.Path, d.Old, d.New)
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

// dataOf is how the data of two versions differs.
func dataOf(from, to int) string {
	return fmt.Sprintf(`data:"%s">"%s"`, digest(fmt.Sprint("listen ", from)), digest(fmt.Sprint("listen ", to)))
}

func versions(from, to int) string {
	return strings.Join([]string{
		fmt.Sprintf(`service a_web update spec.replicated.replicas:"%d">"%d" spec.task.container.secrets[0].data:secret `+
			"spec.task.container.configs[0].%s", from, to, dataOf(from, to)),
		"secret a_key update data:secret",
		"config a_conf update " + dataOf(from, to),
	}, "\n")
}

func TestCompare(t *testing.T) {
	f := newFixture(t)
	f.network("proxy", nil)
	f.data("shared")
	shared := func(n uint64) *holdfast.DeployRequest {
		r := version(n)
		r.ExternalNetworks, r.ExternalSecrets = []string{"Proxy"}, []string{"shared"}
		r.Services[1].Task.Networks = []*api.NetworkAttachmentConfig{{Target: "PROXY"}}
		r.Services[1].Task.GetContainer().Secrets = []*api.SecretReference{{
			SecretName: "SHARED", Target: &api.SecretReference_File{File: &api.FileTarget{Name: "s"}},
		}}
		return r
	}
	if got := f.compare(&holdfast.CompareStackRequest{Name: "a", Request: shared(1)}); got != "service a_db create\n"+
		"service a_web create\nnetwork a_front create\nsecret a_key create\nconfig a_conf create" {
		t.Errorf("before: %s", got)
	}
	f.deploy(shared(1))
	f.deploy(shared(2))
	with := shared(2)
	with.Services[1].Annotations.Labels = map[string]string{"tier": "back"}
	with.Services = append(with.Services[1:], serviceSpec("a_new"))
	with.Networks[0].Internal = true
	with.Configs[0].Annotations.Labels = map[string]string{"x": "y"}
	kept := with.Copy()
	kept.KeepOthers = true
	changed := `service a_db update spec.annotations.labels[tier]:>"back"` + "\nservice a_new create\n%snetwork a_front " +
		`update spec.internal:false>true` + "\n" + `config a_conf update spec.annotations.labels[x]:>"y"`
	for _, c := range []struct {
		name    string
		request *holdfast.CompareStackRequest
		want    string
	}{
		{"what is there and the same request", &holdfast.CompareStackRequest{Request: shared(2)}, ""},
		{"what is there and another request", &holdfast.CompareStackRequest{Request: shared(3)}, versions(2, 3)},
		{"what is there and a request of other objects", &holdfast.CompareStackRequest{Request: with}, fmt.Sprintf(changed, "service a_web remove\n")},
		{"a request that keeps others", &holdfast.CompareStackRequest{Request: kept}, fmt.Sprintf(changed, "")},
		{"two releases", &holdfast.CompareStackRequest{From: 1, To: 2}, versions(1, 2)},
		{"two releases, back", &holdfast.CompareStackRequest{From: 2, To: 1}, versions(2, 1)},
		{"a release and itself", &holdfast.CompareStackRequest{From: 1, To: 1}, ""},
		{"a release and what is there", &holdfast.CompareStackRequest{From: 2}, ""},
		{"an old release and what is there", &holdfast.CompareStackRequest{From: 1}, versions(1, 2)},
		{"what is there and an old release", &holdfast.CompareStackRequest{To: 1}, versions(2, 1)},
		{"a release and a request", &holdfast.CompareStackRequest{From: 1, Request: shared(3)}, versions(1, 3)},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.request.Name = "a"
			if got := f.compare(c.request); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	// What is staged is not live, and is told by its object.
	third := shared(3)
	staged := must(f.Stage(t.Context(), staging(third)))
	third.StagedSecrets, third.StagedConfigs = staged.Secrets, staged.Configs
	if got := f.compare(&holdfast.CompareStackRequest{Name: "a", Request: third}); got != versions(2, 3) {
		t.Errorf("staged: %s", got)
	}
	if got := f.compare(&holdfast.CompareStackRequest{Name: "a", From: 2}); got != "" {
		t.Errorf("with more that is staged: %s", got)
	}
}

// What was changed by hand shows between the release and what is there.
func TestDrift(t *testing.T) {
	f := newFixture(t)
	f.deploy(version(1))
	f.deploy(version(2))
	old := f.config("a_conf-" + digest("listen 1"))
	f.update(func(tx *store.Tx) error {
		o := f.service("a_web").Copy()
		o.Spec.Task.ForceUpdate = 3 // a deployment leaves it
		o.Spec.Mode.(*api.ServiceSpec_Replicated).Replicated.Replicas = 9
		o.Spec.Task.GetContainer().Configs[0].ConfigID = old.ID
		o.Spec.Task.GetContainer().Configs[0].ConfigName = old.Spec.Annotations.Name
		if _, err := store.Services.Update(tx, o); err != nil {
			return err
		}
		_, err := store.Services.Delete(tx, f.service("a_db").ID)
		return err
	})
	want := "service a_db remove\nservice a_web update " + `spec.replicated.replicas:"2">"9" ` +
		"spec.task.container.configs[0]." + dataOf(2, 1)
	if got := f.compare(&holdfast.CompareStackRequest{Name: "a", From: 2}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// The objects of an old release that are gone can still be told from others.
	f.update(func(tx *store.Tx) error {
		for _, o := range must(store.Secrets.FindAll(tx, store.ByStack("a"))) {
			if string(o.Spec.Data) == canary+"1" {
				if _, err := store.Secrets.Delete(tx, o.ID); err != nil {
					return err
				}
			}
		}
		_, err := store.Configs.Delete(tx, old.ID)
		return err
	})
	if got := f.compare(&holdfast.CompareStackRequest{Name: "a", From: 1, To: 2}); got != versions(1, 2) {
		t.Errorf("got %s", got)
	}
	if got := f.compare(&holdfast.CompareStackRequest{Name: "a", From: 1, To: 1}); got != "" {
		t.Errorf("got %s", got)
	}
	must(f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a", KeepHistory: true}))
	if got := f.compare(&holdfast.CompareStackRequest{Name: "a", From: 2}); strings.Count(got, "remove") != 5 {
		t.Errorf("after the removal: %s", got)
	}
}

func TestCompareRefuses(t *testing.T) {
	f := newFixture(t)
	f.deploy(app("a"))
	bad := app("a")
	bad.Services[0].Annotations.Name = ""
	for _, c := range []struct {
		request *holdfast.CompareStackRequest
		kind    errkind.Kind
		field   string
		texts   []string
	}{
		{&holdfast.CompareStackRequest{Name: "a"}, errkind.Invalid, "from", []string{"stack a"}},
		{&holdfast.CompareStackRequest{From: 1}, errkind.Invalid, "name", []string{"is empty"}},
		{&holdfast.CompareStackRequest{Name: "a", To: 1, Request: app("a")}, errkind.Invalid, "to", []string{"a request is given, too"}},
		{&holdfast.CompareStackRequest{Name: "a", Request: app("b")}, errkind.Invalid, "request.name", []string{`"b"`, `"a"`}},
		{&holdfast.CompareStackRequest{Name: "a", Request: bad}, errkind.Invalid, "request.services[0].annotations.name", nil},
		{&holdfast.CompareStackRequest{Name: "a", From: 2}, errkind.NotFound, "", []string{"stack a", "release 2"}},
		{&holdfast.CompareStackRequest{Name: "a", To: 3}, errkind.NotFound, "", []string{"release 3"}},
		{&holdfast.CompareStackRequest{Name: "gone", From: 1}, errkind.NotFound, "", []string{"stack gone"}},
	} {
		_, err := f.Compare(t.Context(), c.request)
		wantError(t, err, c.kind, c.field, c.texts...)
	}
}

// Digests of secrets tell them apart, and what cannot be tried out: they are made with a key.
func TestDigestsOfSecrets(t *testing.T) {
	f := newFixture(t)
	f.deploy(version(1))
	f.deploy(version(2))
	told := func(f *fixture, from, to uint64) (pairs []string) {
		resp := must(f.Compare(t.Context(), &holdfast.CompareStackRequest{Name: "a", From: from, To: to}))
		for _, o := range resp.Objects {
			for _, d := range o.Fields {
				if d.Secret {
					pairs = append(pairs, d.Old+" "+d.New)
				}
			}
		}
		return pairs
	}
	forth, back := told(f, 1, 2), told(f, 2, 1)
	if len(forth) != 2 || forth[0] != forth[1] { // where it is used, and itself
		t.Fatalf("got %q", forth)
	}
	before, after, _ := strings.Cut(forth[0], " ")
	if form := regexp.MustCompile(`^"[0-9a-f]{12}"$`); !form.MatchString(before) || !form.MatchString(after) || before == after {
		t.Errorf("got %q", forth)
	}
	if back[0] != after+" "+before {
		t.Errorf("back: %q, forth: %q", back, forth)
	}
	c := config(t, f.store)
	c.Key = []byte("another key")
	if other := told(&fixture{stackapi.New(c), t, f.store}, 1, 2); other[0] == forth[0] {
		t.Errorf("with another key they are %q, too", other)
	}
}
