package stackapi_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

const created = "created service a_db, created service a_web, created network a_front, " +
	"created secret a_key, created config a_conf"

func TestDeployCreatesThenChangesNothing(t *testing.T) {
	f := newFixture(t)
	request := app("a")
	sent := must(request.Marshal())
	first := f.deploy(request)
	if got := say(first.Changes); got != created || first.Revision != 1 {
		t.Errorf("first: %s at %d", got, first.Revision)
	}
	if !bytes.Equal(must(request.Marshal()), sent) {
		t.Error("the request was changed")
	}
	ids := map[string]string{}
	for _, c := range first.Changes {
		ids[short(c.Name)] = c.ID
	}
	web := f.service("a_web")
	container := web.Spec.Task.GetContainer()
	if web.Spec.Task.Networks[0].Target != ids["a_front"] || container.Secrets[0].SecretID != ids["a_key"] ||
		container.Configs[0].ConfigID != ids["a_conf"] || web.ID != ids["a_web"] {
		t.Errorf("names are not resolved: %v", web.Spec)
	}
	if web.Spec.Annotations.Labels[store.StackLabel] != "a" {
		t.Errorf("labels: %v", web.Spec.Annotations.Labels)
	}
	second := f.deploy(request)
	if got := say(second.Changes); got != strings.ReplaceAll(created, "created", "unchanged") {
		t.Errorf("second: %s", got)
	}
	if second.Revision != 1 || f.store.Root().Revision() != 1 {
		t.Errorf("the revision moved: %d, %d", second.Revision, f.store.Root().Revision())
	}
	for _, c := range second.Changes {
		if c.ID != ids[short(c.Name)] {
			t.Errorf("%s is %s, was %s", c.Name, c.ID, ids[short(c.Name)])
		}
	}
}

func TestDeployUpdatesAndRemoves(t *testing.T) {
	f := newFixture(t)
	f.deploy(app("a"))
	db := f.service("a_db")

	next := app("a")
	next.Services[1].Mode.(*api.ServiceSpec_Replicated).Replicated.Replicas = 3
	next.Secrets[0].Annotations.Labels = map[string]string{"owner": "me"}
	resp := f.deploy(next)
	if got, want := say(resp.Changes), "updated service a_db, unchanged service a_web, unchanged network a_front, "+
		"updated secret a_key, unchanged config a_conf"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	after := f.service("a_db")
	if after.ID != db.ID || after.Spec.GetReplicated().Replicas != 3 || after.PreviousSpec.GetReplicated().Replicas != 1 {
		t.Errorf("updated: %v", after)
	}
	if resp.Revision != 2 || after.Meta.Version.Index != 2 {
		t.Errorf("revisions %d, %d", resp.Revision, after.Meta.Version.Index)
	}

	// Without its first service nothing uses the rest; and with a history of 1, no release names it.
	next.MaxHistory = 1
	next.Services, next.Networks, next.Secrets, next.Configs = next.Services[1:], nil, nil, nil
	next.Services = append(next.Services, serviceSpec("Other"))
	resp = f.deploy(next)
	if got, want := say(resp.Changes), "unchanged service a_db, removed service a_web, created service Other, "+
		"removed network a_front, removed secret a_key, removed config a_conf"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := f.inventory(); got != "service a_db, service Other" {
		t.Errorf("left: %s", got)
	}
	// What was taken out of a stack by its label is not the stack's any more.
	f.update(func(tx *store.Tx) error {
		o := f.service("Other").Copy()
		o.Spec.Annotations.Labels = nil
		_, err := store.Services.Update(tx, o)
		return err
	})
	next.Services = next.Services[:1]
	if got := say(f.deploy(next).Changes); got != "unchanged service a_db" {
		t.Errorf("got %s", got)
	}
}

func TestDeployResetsWhatWasChangedByHand(t *testing.T) {
	f := newFixture(t)
	f.deploy(app("a"))
	change := func(fn func(*api.ServiceSpec)) {
		f.update(func(tx *store.Tx) error {
			o := f.service("a_db").Copy()
			fn(&o.Spec)
			_, err := store.Services.Update(tx, o)
			return err
		})
	}
	change(func(s *api.ServiceSpec) { s.Mode.(*api.ServiceSpec_Replicated).Replicated.Replicas = 7 })
	if got := say(f.deploy(app("a")).Changes); !strings.HasPrefix(got, "updated service a_db, unchanged") {
		t.Errorf("got %s", got)
	}
	// A forced update is not undone: that would restart the tasks again.
	change(func(s *api.ServiceSpec) { s.Task.ForceUpdate = 2 })
	if got := say(f.deploy(app("a")).Changes); !strings.HasPrefix(got, "unchanged service a_db, unchanged") {
		t.Errorf("after a forced update: %s", got)
	}
}

func TestStacksShareAnExternalNetwork(t *testing.T) {
	f := newFixture(t)
	proxy := f.network("proxy", nil)
	f.data("shared")
	for _, name := range []string{"a", "b"} {
		r := app(name)
		r.ExternalNetworks = []string{"Proxy"}
		r.ExternalSecrets, r.ExternalConfigs = []string{"shared"}, []string{"shared"}
		r.Services[0].Task.Networks = append(r.Services[0].Task.Networks, &api.NetworkAttachmentConfig{Target: "proxy"})
		r.Services[1].Networks = []*api.NetworkAttachmentConfig{{Target: "proxy"}} // the older form
		r.Services[1].Task.GetContainer().Secrets = []*api.SecretReference{{
			SecretName: "SHARED", Target: &api.SecretReference_File{File: &api.FileTarget{Name: "s"}},
		}}
		f.deploy(r)
		if got := f.deploy(r); strings.Contains(say(got.Changes), "updated") {
			t.Errorf("second: %s", say(got.Changes))
		}
		db := f.service(name + "_db")
		if got := db.Spec.Networks[0].Target; got != proxy.ID {
			t.Errorf("network %s, want %s", got, proxy.ID)
		}
		if got := db.Spec.Task.GetContainer().Secrets[0].SecretName; got != "shared" {
			t.Errorf("secret %s", got)
		}
	}
	if _, err := f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"}); err != nil {
		t.Error(err)
	}
	if got := f.inventory(); got != "service b_db, service b_web, network b_front, network proxy, "+
		"secret b_key, secret shared, config b_conf, config shared" {
		t.Errorf("left: %s", got)
	}
}

// An object of the stack that the request calls external stays as it is.
func TestDeployKeepsItsOwnWhereItIsNamedAsExternal(t *testing.T) {
	f := newFixture(t)
	f.deploy(app("a"))
	r := app("a")
	r.Networks, r.ExternalNetworks = nil, []string{"a_front"}
	if got := say(f.deploy(r).Changes); got != strings.ReplaceAll(created, "created", "unchanged") {
		t.Errorf("got %s", got)
	}
}

// A port can move from one service of the stack to another, in whatever order they stand.
func TestDeployMovesPorts(t *testing.T) {
	f := newFixture(t)
	request := func(specs ...api.ServiceSpec) *holdfast.DeployRequest {
		return &holdfast.DeployRequest{Name: "a", Services: specs}
	}
	f.deploy(request(serviceSpec("a_x"), serviceSpec("a_y", 80), serviceSpec("a_z", 81)))
	f.deploy(request(serviceSpec("a_x", 80), serviceSpec("a_y", 81), serviceSpec("a_z")))
	f.deploy(request(serviceSpec("a_new", 80, 81))) // from services that go
	revision := f.store.Root().Revision()
	_, err := f.Deploy(t.Context(), &holdfast.DeployRequest{
		Name: "b", Services: []api.ServiceSpec{serviceSpec("b_ok"), serviceSpec("b_web", 80)},
	})
	wantError(t, err, errkind.Refused, "services[1].endpoint.ports[0].published_port", "service b_web", "a_new")
	if got := f.store.Root().Revision(); got != revision {
		t.Errorf("the revision moved from %d to %d", revision, got)
	}
}

func TestDeployRefuses(t *testing.T) {
	f := newFixture(t)
	f.network("proxy", nil)
	f.network("b_net", map[string]string{store.StackLabel: "b"})
	f.deploy(app("a"))
	before, inventory := f.store.Root().Revision(), f.inventory()
	type request = holdfast.DeployRequest
	stranger := serviceSpec("a_new")
	stranger.Task.Networks = []*api.NetworkAttachmentConfig{{Target: "proxy"}}
	for _, c := range []struct {
		name   string
		change func(*request)
		kind   errkind.Kind
		field  string
		texts  []string
	}{
		{"no name", func(r *request) { r.Name = "" }, errkind.Invalid, "name", []string{"is empty"}},
		{"bad name", func(r *request) { r.Name = "a b" }, errkind.Invalid, "name", []string{`"a b"`}},
		{"name ends in -", func(r *request) { r.Name = "a-" }, errkind.Invalid, "name", nil},
		{"long name", func(r *request) { r.Name = strings.Repeat("a", 64) }, errkind.Invalid, "name", []string{"64", "63"}},
		{"nothing", func(r *request) { *r = request{Name: "a"} }, errkind.Invalid, "services", []string{"is empty"}},
		{"no service name", func(r *request) { r.Services[1].Annotations.Name = "" }, errkind.Invalid, "services[1].annotations.name", []string{"is empty"}},
		{
			"name twice", func(r *request) { r.Services[1].Annotations.Name = "A_WEB" },
			errkind.Invalid, "services[1].annotations.name",
			[]string{"A_WEB", "services[0]"},
		},
		{"label of another stack", func(r *request) {
			r.Configs[0].Annotations.Labels = map[string]string{store.StackLabel: "b"}
		}, errkind.Invalid, "configs[0].annotations.labels", []string{"config a_conf", `"b"`}},
		{"external and own", func(r *request) { r.ExternalSecrets = []string{"a_KEY"} }, errkind.Invalid, "external_secrets[0]", []string{"secrets[0]"}},
		{"external without name", func(r *request) { r.ExternalConfigs = []string{""} }, errkind.Invalid, "external_configs[0]", nil},
		{"missing externals", func(r *request) {
			r.ExternalNetworks = []string{"proxy", "gone"}
			r.ExternalSecrets, r.ExternalConfigs = []string{"s1"}, []string{"c1"}
		}, errkind.Invalid, "external_networks[1]", []string{
			`network "gone" is external and does not exist`, `secret "s1" is external and does not exist`,
			`config "c1" is external and does not exist`,
		}},
		{"unknown network", func(r *request) { r.Services[0].Task.Networks[0].Target = "nope" }, errkind.Invalid, "services[0].task.networks[0].target", []string{"service a_web", `"nope"`}},
		{
			"unknown network, older form", func(r *request) {
				r.Services[1].Networks = []*api.NetworkAttachmentConfig{{Target: "nope"}}
			},
			errkind.Invalid, "services[1].networks[0].target",
			[]string{"service a_db", `"nope"`},
		},
		{"network without target", func(r *request) { r.Services[0].Task.Networks[0].Target = "" }, errkind.Invalid, "services[0].task.networks[0].target", []string{"is empty"}},
		{"network that is not declared", func(r *request) { r.Services = append(r.Services, stranger) }, errkind.Invalid, "services[2].task.networks[0].target", []string{`"proxy"`}},
		{
			"unknown secret", func(r *request) { r.Services[0].Task.GetContainer().Secrets[0].SecretName = "nope" },
			errkind.Invalid, "services[0].task.container.secrets[0].secret_name",
			[]string{"service a_web", `"nope"`},
		},
		{
			"unknown config", func(r *request) { r.Services[0].Task.GetContainer().Configs[0].ConfigName = "nope" },
			errkind.Invalid, "services[0].task.container.configs[0].config_name",
			[]string{"service a_web", `"nope"`},
		},
		{"network outside", func(r *request) {
			r.Networks = append(r.Networks, api.NetworkSpec{Annotations: api.Annotations{Name: "Proxy"}})
		}, errkind.Exists, "networks[1].annotations.name", []string{"network proxy", "no stack"}},
		{"network of another stack", func(r *request) {
			r.Networks = append(r.Networks, api.NetworkSpec{Annotations: api.Annotations{Name: "b_net"}})
		}, errkind.Exists, "networks[1].annotations.name", []string{"network b_net", "the stack b"}},
		{"changed network", func(r *request) {
			r.Networks[0].DriverConfig = &api.Driver{Name: "macvlan", Options: map[string]string{"parent": "eth0"}}
			r.Networks[0].Internal = true
			r.Networks[0].ConfigFrom = &api.NetworkSpec_Network{Network: "x"}
		}, errkind.Invalid, "networks[0].driver_config.name", []string{
			"network a_front", `driver_config.name is "overlay", wanted "macvlan"`, `options["parent"] is not there, wanted "eth0"`,
			"internal is false, wanted true", "config_from is not there",
		}},
		{
			"changed labels of a network", func(r *request) { r.Networks[0].Annotations.Labels = map[string]string{"x": "y"} },
			errkind.Invalid, `networks[0].annotations.labels["x"]`,
			[]string{"network a_front", `wanted "y"`},
		},
		{
			"changed mode", func(r *request) { r.Services[1].Mode = &api.ServiceSpec_Global{Global: &api.GlobalService{}} },
			errkind.Invalid, "services[1].mode",
			[]string{"service a_db", "replicated", "global"},
		},
		{
			"another case", func(r *request) { r.Services[1].Annotations.Name = "a_DB" },
			errkind.Invalid, "services[1].annotations.name",
			[]string{"a_db", "a_DB"},
		},
		{
			"bad service", func(r *request) { r.Services[1].Task.GetContainer().Image = "NO IMAGE" },
			errkind.Invalid, "services[1].task.container.image",
			[]string{"service a_db"},
		},
		{"bad new service, last", func(r *request) {
			r.Services = append(r.Services, serviceSpec("a_c"), serviceSpec("a b"))
			r.Networks = append(r.Networks, api.NetworkSpec{Annotations: api.Annotations{Name: "a_more"}})
		}, errkind.Invalid, "services[3].annotations.name", []string{"service a b"}},
		{"empty secret", func(r *request) {
			r.Secrets = append(r.Secrets, api.SecretSpec{Annotations: api.Annotations{Name: "a_empty"}})
		}, errkind.Invalid, "secrets[1].data", []string{"secret a_empty"}},
		{"too many objects", func(r *request) {
			for i := range 513 {
				r.Services = append(r.Services, serviceSpec(fmt.Sprint("s", i)))
			}
		}, errkind.Limit, "", []string{"stack a", "512 objects"}},
		{"too many bytes", func(r *request) {
			for i := range 10 {
				r.Secrets = append(r.Secrets, api.SecretSpec{
					Annotations: api.Annotations{Name: fmt.Sprint("s", i)}, Data: make([]byte, 500_000),
				})
			}
		}, errkind.Limit, "", []string{"stack a", "4 MiB"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := app("a")
			r.Services[0].Mode.(*api.ServiceSpec_Replicated).Replicated.Replicas = 9 // else there is no change
			c.change(r)
			_, err := f.Deploy(t.Context(), r)
			wantError(t, err, c.kind, c.field, c.texts...)
			if got := f.store.Root().Revision(); got != before {
				t.Errorf("the revision moved from %d to %d", before, got)
			}
			if got := f.inventory(); got != inventory {
				t.Errorf("now there is %s", got)
			}
		})
	}
	if got := f.service("a_web").Spec.GetReplicated().Replicas; got != 1 {
		t.Errorf("a_web has %d replicas", got)
	}
}

func TestLabelsOfTheRequestAreKept(t *testing.T) {
	f := newFixture(t)
	r := app("a")
	r.Services[0].Annotations.Labels = map[string]string{"tier": "front", store.StackLabel: "a"}
	r.Services[1].Annotations.Labels = map[string]string{"tier": "back"}
	f.deploy(r)
	for name, tier := range map[string]string{"a_web": "front", "a_db": "back"} {
		want := map[string]string{"tier": tier, store.StackLabel: "a"}
		if got := f.service(name).Spec.Annotations.Labels; !maps.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
