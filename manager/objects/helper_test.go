package objects_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gogo/protobuf/types"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// world is a store with one of each thing that a spec can refer to.
type world struct {
	*store.MemoryStore
	t       testing.TB
	network *api.Network
	ingress *api.Network
	secrets [2]*api.Secret
	configs [2]*api.Config
}

func newWorld(t testing.TB) *world {
	w := &world{MemoryStore: storetest.New(t), t: t}
	w.must(func(tx *store.Tx) (err error) {
		w.network, err = objects.CreateNetwork(tx, networkSpec("front"))
		return err
	})
	w.must(func(tx *store.Tx) (err error) {
		spec := networkSpec("ingress")
		spec.Ingress = true
		w.ingress, err = objects.CreateNetwork(tx, spec)
		return err
	})
	for i, name := range []string{"one", "two"} {
		w.must(func(tx *store.Tx) (err error) {
			w.secrets[i], err = objects.CreateSecret(tx, secretSpec(name))
			return err
		})
		w.must(func(tx *store.Tx) (err error) {
			w.configs[i], err = objects.CreateConfig(tx, configSpec(name))
			return err
		})
	}
	return w
}

// try runs fn in a transaction.
func (w *world) try(fn func(*store.Tx) error) error {
	_, err := w.Update(context.Background(), fn)
	return err
}

func (w *world) must(fn func(*store.Tx) error) {
	w.t.Helper()
	if err := w.try(fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) service(spec *api.ServiceSpec) *api.Service {
	w.t.Helper()
	var s *api.Service
	w.must(func(tx *store.Tx) (err error) {
		s, err = objects.CreateService(tx, spec)
		return err
	})
	return s
}

func named(name string) api.Annotations { return api.Annotations{Name: name} }

func networkSpec(name string) *api.NetworkSpec { return &api.NetworkSpec{Annotations: named(name)} }

func secretSpec(name string) *api.SecretSpec {
	return &api.SecretSpec{Annotations: named(name), Data: []byte("data of " + name)}
}

func configSpec(name string) *api.ConfigSpec {
	return &api.ConfigSpec{Annotations: named(name), Data: []byte("data of " + name)}
}

// serviceSpec returns a spec that has nothing that it does not need.
func serviceSpec(name string) *api.ServiceSpec {
	return &api.ServiceSpec{
		Annotations: named(name),
		Task: api.TaskSpec{Runtime: &api.TaskSpec_Container{
			Container: &api.ContainerSpec{Image: "nginx:1.27"},
		}},
		Mode: &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: 2}},
	}
}

func ingressPort(published uint32) *api.PortConfig {
	return &api.PortConfig{TargetPort: 80, PublishedPort: published}
}

func hostPort(published uint32) *api.PortConfig {
	p := ingressPort(published)
	p.PublishMode = api.PortConfig_HOST
	return p
}

func publishing(name string, ports ...*api.PortConfig) *api.ServiceSpec {
	s := serviceSpec(name)
	s.Endpoint = &api.EndpointSpec{Ports: ports}
	return s
}

func (w *world) secretRef(i int, file string) *api.SecretReference {
	return &api.SecretReference{
		SecretID: w.secrets[i].ID, SecretName: w.secrets[i].Spec.Annotations.Name,
		Target: &api.SecretReference_File{File: &api.FileTarget{Name: file}},
	}
}

func (w *world) configRef(i int, file string) *api.ConfigReference {
	return &api.ConfigReference{
		ConfigID: w.configs[i].ID, ConfigName: w.configs[i].Spec.Annotations.Name,
		Target: &api.ConfigReference_File{File: &api.FileTarget{Name: file}},
	}
}

func nanos(n int32) *types.Duration { return &types.Duration{Nanos: n} }

// want checks that err is of a kind and names a field. An empty field is not checked.
func want(t *testing.T, err error, kind errkind.Kind, field string) {
	t.Helper()
	e, ok := errors.AsType[*errkind.Error](err)
	switch {
	case err == nil:
		t.Errorf("accepted, want kind %d for %s", kind, field)
	case !ok:
		t.Errorf("error of type %T: %v", err, err)
	case e.Kind != kind:
		t.Errorf("kind %d, want %d: %v", e.Kind, kind, err)
	case field != "" && e.Field != field:
		t.Errorf("field %q, want %q: %v", e.Field, field, err)
	case e.Msg == "":
		t.Errorf("no message")
	}
}
