package stackapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

const nameLabel = "holdfast.stack.name"

func (f *fixture) config(name string) *api.Config {
	f.t.Helper()
	all := must(store.Configs.FindAll(f.store.Root(), store.ByName(name)))
	if len(all) != 1 {
		f.t.Fatalf("there are %d configs %s", len(all), name)
	}
	return all[0]
}

func (f *fixture) secret(name string) *api.Secret {
	f.t.Helper()
	all := must(store.Secrets.FindAll(f.store.Root(), store.ByName(name)))
	if len(all) != 1 {
		f.t.Fatalf("there are %d secrets %s", len(all), name)
	}
	return all[0]
}

func digest(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])[:12]
}

// A changed file is another object, and the service that has it is updated.
func TestChangedContents(t *testing.T) {
	f := newFixture(t)
	f.deploy(app("a"))
	if got, want := f.stored("a_conf"), "a_conf-"+digest("listen 80"); got != want {
		t.Errorf("the config is %s, want %s", got, want)
	}
	labels := f.config(f.stored("a_conf")).Spec.Annotations.Labels
	if !maps.Equal(labels, map[string]string{store.StackLabel: "a", nameLabel: "a_conf"}) {
		t.Errorf("labels: %v", labels)
	}
	key := f.stored("a_key")
	if strings.Contains(key, digest(canary)) {
		t.Errorf("the secret's name %s has its digest", key)
	}
	next := app("a")
	next.Configs[0].Data, next.Secrets[0].Data = []byte("listen 81"), []byte(canary+"2")
	resp := f.deploy(next)
	if got, want := say(resp.Changes), "unchanged service a_db, updated service a_web, unchanged network a_front, "+
		"created secret a_key, created config a_conf"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	web := f.service("a_web").Spec.Task.GetContainer()
	conf := f.config("a_conf-" + digest("listen 81"))
	if r := web.Configs[0]; r.ConfigID != conf.ID || r.ConfigName != conf.Spec.Annotations.Name || r.GetFile().Name != "conf" {
		t.Errorf("the service has %v", r)
	}
	secret := f.secret(f.stored("a_key"))
	if r := web.Secrets[0]; r.SecretID != secret.ID || string(secret.Spec.Data) != canary+"2" || r.GetFile().Name != "key" {
		t.Errorf("the service has %v", r)
	}
	// What was before is there still, and is used again.
	resp = f.deploy(app("a"))
	if got := say(resp.Changes); strings.Contains(got, "created") || !strings.Contains(got, "updated service a_web") {
		t.Errorf("got %s", got)
	}
	if got := f.service("a_web").Spec.Task.GetContainer().Secrets[0].SecretName; got != key {
		t.Errorf("the service has %s, want %s", got, key)
	}
	// A shorter history makes what only it named go.
	last := scaled("a", 2)
	last.MaxHistory = 1
	resp = f.deploy(last)
	if got := say(resp.Changes); !strings.Contains(got, "removed secret a_key") || !strings.Contains(got, "removed config a_conf") {
		t.Errorf("got %s", got)
	}
	if got := f.inventory(); got != "service a_db, service a_web, network a_front, secret a_key, config a_conf" {
		t.Errorf("left: %s", got)
	}
}

// What is not data makes another object, too; labels do not.
func TestWhatMakesAnotherObject(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*holdfast.DeployRequest)
		want   string
	}{
		{"driver of a secret", func(r *holdfast.DeployRequest) { r.Secrets[0].Driver = &api.Driver{Name: "vault"} }, "created secret a_key"},
		{"templating of a secret", func(r *holdfast.DeployRequest) { r.Secrets[0].Templating = &api.Driver{Name: "golang"} }, "created secret a_key"},
		{"templating of a config", func(r *holdfast.DeployRequest) { r.Configs[0].Templating = &api.Driver{Name: "golang"} }, "created config a_conf"},
		{"label of a config", func(r *holdfast.DeployRequest) {
			r.Configs[0].Annotations.Labels = map[string]string{"tier": "front"}
		}, "updated config a_conf"},
		{"its own labels", func(r *holdfast.DeployRequest) {
			r.Configs[0].Annotations.Labels = map[string]string{nameLabel: "a_conf", store.StackLabel: "a"}
		}, "unchanged config a_conf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.deploy(app("a"))
			r := app("a")
			c.change(r)
			got := say(f.deploy(r).Changes)
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if made := strings.HasPrefix(c.want, "created"); made != strings.Contains(got, "updated service a_web") {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestNamesOfContents(t *testing.T) {
	f := newFixture(t)
	// A name that is too long for an object is shortened, and still the only one.
	long := strings.Repeat("a_very-long.name", 5)
	r := &holdfast.DeployRequest{Name: "a", Services: []api.ServiceSpec{serviceSpec("a_web")}, Configs: []api.ConfigSpec{
		{Annotations: api.Annotations{Name: long + "1"}, Data: []byte("same")},
		{Annotations: api.Annotations{Name: long + "2"}, Data: []byte("same")},
	}}
	r.Services[0].Task.GetContainer().Configs = []*api.ConfigReference{
		{ConfigName: strings.ToUpper(long) + "2", Target: &api.ConfigReference_File{File: &api.FileTarget{Name: "f"}}},
	}
	f.deploy(r)
	all := must(store.Configs.FindAll(f.store.Root(), store.All()))
	if len(all) != 2 {
		t.Fatalf("%d configs", len(all))
	}
	for _, o := range all {
		name := o.Spec.Annotations.Name
		if len(name) > 64 || !strings.HasPrefix(name, long[:40]) || !strings.HasSuffix(name, "-"+digest("same")) {
			t.Errorf("the name is %s", name)
		}
		used := f.service("a_web").Spec.Task.GetContainer().Configs[0].ConfigID == o.ID
		if used != (o.Spec.Annotations.Labels[nameLabel] == long+"2") {
			t.Errorf("%s for %s: used %v", name, o.Spec.Annotations.Labels[nameLabel], used)
		}
	}
	// A name in another case is the same one.
	r.Configs[0].Annotations.Name = strings.ToUpper(long) + "1"
	if got := f.deploy(r).Changes; len(got) != 3 || got[1].Action+got[2].Action != holdfast.StackChange_UPDATED {
		t.Errorf("got %v", got)
	}

	revision := f.store.Root().Revision()
	f.update(func(tx *store.Tx) error {
		_, err := store.Configs.Create(tx, &api.Config{Spec: api.ConfigSpec{
			Annotations: api.Annotations{Name: "b_conf-" + digest("listen 80")}, Data: []byte("listen 81"),
		}})
		return err
	})
	for _, c := range []struct {
		name   string
		change func(*holdfast.DeployRequest)
		kind   errkind.Kind
		field  string
		texts  []string
	}{
		{"taken by hand", func(*holdfast.DeployRequest) {}, errkind.Exists, "configs[0].annotations.name", []string{"config b_conf-", "no stack"}},
		{"much too long", func(r *holdfast.DeployRequest) {
			r.Secrets[0].Annotations.Name = strings.Repeat("b", 254)
		}, errkind.Invalid, "secrets[0].annotations.name", []string{"254", "253"}},
		{"bad", func(r *holdfast.DeployRequest) {
			r.Secrets[0].Annotations.Name = "b key"
		}, errkind.Invalid, "secrets[0].annotations.name", []string{"secret b key", "not a valid name"}},
		{"label of another name", func(r *holdfast.DeployRequest) {
			r.Secrets[0].Annotations.Labels = map[string]string{nameLabel: "b_other"}
		}, errkind.Invalid, "secrets[0].annotations.labels", []string{"secret b_key", nameLabel, `"b_other"`}},
		{"external, of another stack", func(r *holdfast.DeployRequest) {
			r.ExternalConfigs = []string{long + "2"}
		}, errkind.Invalid, "external_configs[0]", []string{"does not exist"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := app("b")
			c.change(r)
			_, err := f.Deploy(t.Context(), r)
			wantError(t, err, c.kind, c.field, c.texts...)
		})
	}
	if got := f.store.Root().Revision(); got != revision+1 {
		t.Errorf("the revision moved from %d to %d", revision, got)
	}
}

// A config that gives the credentials goes by its ID.
func TestCredentials(t *testing.T) {
	f := newFixture(t)
	credentials := func(name string) *holdfast.DeployRequest {
		r := app("a")
		r.Services[0].Task.GetContainer().Privileges = &api.Privileges{CredentialSpec: &api.Privileges_CredentialSpec{
			Source: &api.Privileges_CredentialSpec_Config{Config: name},
		}}
		return r
	}
	f.deploy(credentials("a_conf"))
	conf := f.config(f.stored("a_conf"))
	if got := f.service("a_web").Spec.Task.GetContainer().Privileges.CredentialSpec.GetConfig(); got != conf.ID {
		t.Errorf("the credentials are in %s, want %s", got, conf.ID)
	}
	if got := say(f.deploy(credentials("a_conf")).Changes); strings.Contains(got, "updated") {
		t.Errorf("again: %s", got)
	}
	if got := f.compare(&holdfast.CompareStackRequest{Name: "a", From: 1}); got != "" {
		t.Errorf("got %s", got)
	}
	_, err := f.Deploy(t.Context(), credentials("gone"))
	wantError(t, err, errkind.Invalid, "services[0].task.container.privileges.credential_spec.config", "service a_web", `"gone"`)
}
