package stackapi_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/descriptors"
	"holdfast/internal/errkind"
	"holdfast/manager/stackapi"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
	"holdfast/release/driver/memory"
	"holdfast/release/driver/object"
)

// canary is the data of secrets: nothing but the store may ever show it.
const canary = "canary-4711"

// reader reads the newest state.
type reader struct{ store *store.MemoryStore }

func (r reader) Read(context.Context) (store.ReadTx, error)   { return r.store.Root(), nil }
func (r reader) Newest(context.Context) (store.ReadTx, error) { return r.store.Root(), nil }

// fixture is a server over a store of its own.
type fixture struct {
	*stackapi.Server
	t     testing.TB
	store *store.MemoryStore
}

func newFixture(t testing.TB) *fixture { return over(t, storetest.New(t)) }

// over makes a server over a store. Below TestWithArchive it has an archive, too.
func over(t testing.TB, s *store.MemoryStore) *fixture {
	t.Helper()
	c := config(t, s)
	if strings.HasPrefix(t.Name(), withArchive+"/") {
		c.Archive, c.Namespace = memory.New(time.Now), "stacks-of-a-cluster"
	}
	return &fixture{stackapi.New(c), t, s}
}

func config(t testing.TB, s *store.MemoryStore) stackapi.Config {
	t.Helper()
	files, err := descriptors.New()
	if err != nil {
		t.Fatal(err)
	}
	return stackapi.Config{
		Store: s, Reader: reader{s}, Files: files, Key: []byte("key"),
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// deploy deploys a request that must succeed.
func (f *fixture) deploy(r *holdfast.DeployRequest) *holdfast.DeployResponse {
	f.t.Helper()
	resp, err := f.Deploy(f.t.Context(), r)
	if err != nil {
		f.t.Fatalf("deploy %s: %v", r.Name, err)
	}
	return resp
}

// update changes the store, which must succeed.
func (f *fixture) update(fn func(tx *store.Tx) error) {
	f.t.Helper()
	if _, err := f.store.Update(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

// network makes a network outside of stacks, or with a stack's label.
func (f *fixture) network(name string, labels map[string]string) *api.Network {
	f.t.Helper()
	var made *api.Network
	f.update(func(tx *store.Tx) (err error) {
		made, err = store.Networks.Create(tx, &api.Network{
			Spec: api.NetworkSpec{Annotations: api.Annotations{Name: name, Labels: labels}},
		})
		return err
	})
	return made
}

// data makes a secret and a config of one name outside of stacks.
func (f *fixture) data(name string) {
	f.t.Helper()
	a := api.Annotations{Name: name}
	f.update(func(tx *store.Tx) error {
		if _, err := store.Secrets.Create(tx, &api.Secret{Spec: api.SecretSpec{Annotations: a, Data: []byte(canary)}}); err != nil {
			return err
		}
		_, err := store.Configs.Create(tx, &api.Config{Spec: api.ConfigSpec{Annotations: a, Data: []byte("c")}})
		return err
	})
}

// task makes a task of a service that is in the service's networks.
func (f *fixture) task(s *api.Service) {
	f.t.Helper()
	f.update(func(tx *store.Tx) error {
		_, err := store.Tasks.Create(tx, &api.Task{
			ServiceID: s.ID, Slot: 1, Spec: s.Spec.Task, ServiceAnnotations: s.Spec.Annotations,
			DesiredState: api.TaskState_RUNNING, Status: api.TaskStatus{State: api.TaskState_RUNNING},
		})
		return err
	})
}

// service returns a service by name.
func (f *fixture) service(name string) *api.Service {
	f.t.Helper()
	all, err := store.Services.FindAll(f.store.Root(), store.ByName(name))
	if err != nil || len(all) != 1 {
		f.t.Fatalf("service %s: %v, %v", name, all, err)
	}
	return all[0]
}

// suffix is what follows the stack's name for a secret or a config in the name of its object.
var suffix = regexp.MustCompile(`^([a-z]+_(?:[a-z]+))-[0-9a-z]{12}$`)

// short gives the stack's name for a secret or a config.
func short(name string) string { return suffix.ReplaceAllString(name, "$1") }

// isRecord tells whether a secret is a part of a release's record.
func isRecord(s *api.Secret) bool {
	_, ok := object.PartOf(s.Spec.Annotations.Labels)
	return ok
}

// inventory names all objects of the store that stacks are made of, secrets and configs without
// their suffixes, and without those of records.
func (f *fixture) inventory() string {
	tx := f.store.Root()
	var all []string
	add := func(kind, name string) { all = append(all, kind+" "+name) }
	for o := range must(store.Services.Find(tx, store.ByNamePrefix(""))) {
		add("service", o.Spec.Annotations.Name)
	}
	for o := range must(store.Networks.Find(tx, store.ByNamePrefix(""))) {
		add("network", o.Spec.Annotations.Name)
	}
	for o := range must(store.Secrets.Find(tx, store.ByNamePrefix(""))) {
		if !isRecord(o) {
			add("secret", short(o.Spec.Annotations.Name))
		}
	}
	for o := range must(store.Configs.Find(tx, store.ByNamePrefix(""))) {
		add("config", short(o.Spec.Annotations.Name))
	}
	return strings.Join(all, ", ")
}

// records returns the number of secrets that are parts of records.
func (f *fixture) records() int {
	n := 0
	for o := range must(store.Secrets.Find(f.store.Root(), store.All())) {
		if isRecord(o) {
			n++
		}
	}
	return n
}

// stored returns the name of the newest object that a stack has for a secret or a config.
func (f *fixture) stored(name string) string {
	f.t.Helper()
	found, at := "", uint64(0)
	note := func(o string, meta api.Meta) {
		if short(o) == name && meta.CreatedVersion.Index > at {
			found, at = o, meta.CreatedVersion.Index
		}
	}
	for o := range must(store.Secrets.Find(f.store.Root(), store.ByNamePrefix(name))) {
		note(o.Spec.Annotations.Name, o.Meta)
	}
	for o := range must(store.Configs.Find(f.store.Root(), store.ByNamePrefix(name))) {
		note(o.Spec.Annotations.Name, o.Meta)
	}
	if found == "" {
		f.t.Fatalf("there is no %s", name)
	}
	return found
}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// say gives changes on one line, without the suffixes of names.
func say(changes []*holdfast.StackChange) string {
	var all []string
	for _, c := range changes {
		kind := strings.ToLower(strings.TrimPrefix(c.Kind.String(), "KIND_"))
		all = append(all, fmt.Sprintf("%s %s %s", strings.ToLower(c.Action.String()), kind, short(c.Name)))
	}
	return strings.Join(all, ", ")
}

func withRequest(t testing.TB, id string) context.Context {
	return state.WithRequest(t.Context(), state.Request{ID: "0.abcdefghijklmnop" + id, Digest: []byte(id)})
}

// app is a stack of two services, a network, a secret and a config.
func app(name string) *holdfast.DeployRequest {
	web := serviceSpec(name + "_web")
	web.Task.Networks = []*api.NetworkAttachmentConfig{{Target: name + "_front", Aliases: []string{"web"}}}
	web.Task.GetContainer().Secrets = []*api.SecretReference{{
		SecretName: name + "_key", Target: &api.SecretReference_File{File: &api.FileTarget{Name: "key"}},
	}}
	web.Task.GetContainer().Configs = []*api.ConfigReference{{
		ConfigName: name + "_conf", Target: &api.ConfigReference_File{File: &api.FileTarget{Name: "conf"}},
	}}
	return &holdfast.DeployRequest{
		Name:     name,
		Services: []api.ServiceSpec{web, serviceSpec(name + "_db")},
		Networks: []api.NetworkSpec{{
			Annotations: api.Annotations{Name: name + "_front"}, DriverConfig: &api.Driver{Name: "overlay"},
		}},
		Secrets: []api.SecretSpec{{Annotations: api.Annotations{Name: name + "_key"}, Data: []byte(canary)}},
		Configs: []api.ConfigSpec{{Annotations: api.Annotations{Name: name + "_conf"}, Data: []byte("listen 80")}},
	}
}

func serviceSpec(name string, ports ...uint32) api.ServiceSpec {
	s := api.ServiceSpec{
		Annotations: api.Annotations{Name: name},
		Task: api.TaskSpec{Runtime: &api.TaskSpec_Container{
			Container: &api.ContainerSpec{Image: "busybox:1"},
		}},
		Mode: &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: 1}},
	}
	for _, p := range ports {
		if s.Endpoint == nil {
			s.Endpoint = &api.EndpointSpec{}
		}
		s.Endpoint.Ports = append(s.Endpoint.Ports, &api.PortConfig{TargetPort: 80, PublishedPort: p})
	}
	return s
}

// wantError checks the kind of an error, the path of its field and parts of its text.
func wantError(t testing.TB, err error, kind errkind.Kind, field string, texts ...string) {
	t.Helper()
	e, ok := errors.AsType[*errkind.Error](err)
	if !ok {
		t.Fatalf("got %v, which has no kind; want kind %d", err, kind)
	}
	if e.Kind != kind || e.Field != field {
		t.Errorf("got %q of kind %d, field %q; want kind %d, field %q", err, e.Kind, e.Field, kind, field)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %q, want it to tell %q", err, text)
		}
	}
	if strings.Contains(err.Error()+e.Hint, canary) {
		t.Errorf("the data of a secret is in %q, %q", err, e.Hint)
	}
}
