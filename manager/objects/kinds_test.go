package objects_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

func TestNetworkRules(t *testing.T) {
	w := newWorld(t)
	pool := func(subnet, ipRange, gateway string) func(*api.NetworkSpec) {
		return func(s *api.NetworkSpec) {
			s.IPAM = &api.IPAMOptions{Configs: []*api.IPAMConfig{{Subnet: subnet, Range: ipRange, Gateway: gateway}}}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*api.NetworkSpec)
		kind   errkind.Kind
		field  string
	}{
		{"plain", func(*api.NetworkSpec) {}, 0, ""},
		{"attachable", func(s *api.NetworkSpec) { s.Attachable = true }, 0, ""},
		{"driver", func(s *api.NetworkSpec) { s.DriverConfig = &api.Driver{Name: "overlay"} }, 0, ""},
		{"pool", pool("10.0.9.0/24", "10.0.9.128/25", "10.0.9.1"), 0, ""},
		{"IPv6 pool", pool("fd00::/64", "fd00::/80", "fd00::1"), 0, ""},
		{"no name", func(s *api.NetworkSpec) { s.Annotations.Name = "" }, errkind.Invalid, "spec.annotations.name"},
		{"bad name", func(s *api.NetworkSpec) { s.Annotations.Name = "a.b" }, errkind.Invalid, "spec.annotations.name"},
		{"taken name", func(s *api.NetworkSpec) { s.Annotations.Name = "Front" }, errkind.Exists, "spec.annotations.name"},
		{"reserved label", func(s *api.NetworkSpec) {
			s.Annotations.Labels = map[string]string{"com.docker.swarm.predefined": ""}
		}, errkind.Invalid, "spec.annotations.labels"},
		{"driver without name", func(s *api.NetworkSpec) { s.DriverConfig = &api.Driver{} }, errkind.Invalid, "spec.driver_config.name"},
		{"IPAM driver without name", func(s *api.NetworkSpec) {
			s.IPAM = &api.IPAMOptions{Driver: &api.Driver{}}
		}, errkind.Invalid, "spec.ipam.driver.name"},
		{"attachable ingress", func(s *api.NetworkSpec) { s.Attachable, s.Ingress = true, true }, errkind.Invalid, "spec.attachable"},
		{"ingress of another driver", func(s *api.NetworkSpec) {
			s.Ingress, s.DriverConfig = true, &api.Driver{Name: "bridge"}
		}, errkind.Invalid, "spec.driver_config.name"},
		{"second ingress", func(s *api.NetworkSpec) { s.Ingress = true }, errkind.Exists, "spec.ingress"},
		{"no subnet", pool("", "", "10.0.9.1"), errkind.Invalid, "spec.ipam.configs[0].subnet"},
		{"bad subnet", pool("10.0.9.0", "", ""), errkind.Invalid, "spec.ipam.configs[0].subnet"},
		{"bad range", pool("10.0.9.0/24", "10.0.9.128", ""), errkind.Invalid, "spec.ipam.configs[0].range"},
		{"range outside", pool("10.0.9.0/24", "10.0.8.0/25", ""), errkind.Invalid, "spec.ipam.configs[0].range"},
		{"range larger", pool("10.0.9.0/24", "10.0.9.0/23", ""), errkind.Invalid, "spec.ipam.configs[0].range"},
		{"bad gateway", pool("10.0.9.0/24", "", "x"), errkind.Invalid, "spec.ipam.configs[0].gateway"},
		{"gateway outside", pool("10.0.9.0/24", "", "10.0.8.1"), errkind.Invalid, "spec.ipam.configs[0].gateway"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := networkSpec("net")
			c.change(spec)
			err := w.try(func(tx *store.Tx) error {
				n, err := objects.CreateNetwork(tx, spec)
				if err == nil {
					_, err = objects.RemoveNetwork(tx, n.ID)
				}
				return err
			})
			if c.kind == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			want(t, err, c.kind, c.field)
		})
	}
}

func TestNetworkInUse(t *testing.T) {
	w := newWorld(t)
	remove := func(id string) error {
		return w.try(func(tx *store.Tx) error {
			_, err := objects.RemoveNetwork(tx, id)
			return err
		})
	}
	spec := serviceSpec("web")
	spec.Task.Networks = []*api.NetworkAttachmentConfig{{Target: w.network.ID}}
	s := w.service(spec)
	task := &api.Task{Spec: spec.Task, ServiceID: s.ID, Slot: 1, ServiceAnnotations: named("web"), DesiredState: api.TaskState_RUNNING}
	w.must(func(tx *store.Tx) (err error) { task, err = objects.CreateTask(tx, task); return err })

	err := remove(w.network.ID)
	want(t, err, errkind.Refused, "")
	if !strings.Contains(err.Error(), "services web") {
		t.Errorf("does not name the service: %v", err)
	}
	w.must(func(tx *store.Tx) error { _, err := objects.RemoveService(tx, s.ID); return err })
	err = remove(w.network.ID)
	want(t, err, errkind.Refused, "")
	if !strings.Contains(err.Error(), "tasks web.1."+task.ID) {
		t.Errorf("does not name the task: %v", err)
	}
	w.must(func(tx *store.Tx) error {
		ended := task.Copy()
		ended.Status.State = api.TaskState_SHUTDOWN
		_, err := objects.UpdateTask(tx, ended)
		return err
	})
	if err := remove(w.network.ID); err != nil {
		t.Error(err)
	}
	want(t, remove(w.network.ID), errkind.NotFound, "")

	s = w.service(publishing("open", ingressPort(80)))
	want(t, remove(w.ingress.ID), errkind.Refused, "")
	w.must(func(tx *store.Tx) error { _, err := objects.RemoveService(tx, s.ID); return err })
	if err := remove(w.ingress.ID); err != nil {
		t.Error(err)
	}
}

func TestSecretAndConfigRules(t *testing.T) {
	w := newWorld(t)
	create := func(name string, size int) (secret, config error) {
		data := bytes.Repeat([]byte("x"), size)
		secret = w.try(func(tx *store.Tx) error {
			o, err := objects.CreateSecret(tx, &api.SecretSpec{Annotations: named(name), Data: data})
			if err == nil {
				_, err = objects.RemoveSecret(tx, o.ID)
			}
			return err
		})
		config = w.try(func(tx *store.Tx) error {
			o, err := objects.CreateConfig(tx, &api.ConfigSpec{Annotations: named(name), Data: data})
			if err == nil {
				_, err = objects.RemoveConfig(tx, o.ID)
			}
			return err
		})
		return secret, config
	}
	for _, c := range []struct {
		name           string
		size           int
		secret, config errkind.Kind // 0: accepted
		field          string
	}{
		{"a.b-c_d", 1, 0, 0, ""},
		{strings.Repeat("a", 64), 511_999, 0, 0, ""},
		{"a", 512_000, errkind.Limit, 0, "spec.data"},
		{"a", 1_023_999, errkind.Limit, 0, "spec.data"},
		{"a", 1_024_000, errkind.Limit, errkind.Limit, "spec.data"},
		{"a", 0, errkind.Invalid, errkind.Invalid, "spec.data"},
		{"", 1, errkind.Invalid, errkind.Invalid, "spec.annotations.name"},
		{strings.Repeat("a", 65), 1, errkind.Invalid, errkind.Invalid, "spec.annotations.name"},
		{".a", 1, errkind.Invalid, errkind.Invalid, "spec.annotations.name"},
		{"a/b", 1, errkind.Invalid, errkind.Invalid, "spec.annotations.name"},
		{"ONE", 1, errkind.Exists, errkind.Exists, "spec.annotations.name"},
	} {
		t.Run(fmt.Sprintf("%.10s %d", c.name, c.size), func(t *testing.T) {
			secret, config := create(c.name, c.size)
			for _, r := range []struct {
				err  error
				kind errkind.Kind
			}{{secret, c.secret}, {config, c.config}} {
				if r.kind != 0 {
					want(t, r.err, r.kind, c.field)
				} else if r.err != nil {
					t.Error(r.err)
				}
			}
		})
	}
	w.must(func(tx *store.Tx) error { // a driver gives the data
		_, err := objects.CreateSecret(tx, &api.SecretSpec{Annotations: named("driven"), Driver: &api.Driver{Name: "vault"}})
		return err
	})
	want(t, w.try(func(tx *store.Tx) error {
		_, err := objects.CreateSecret(tx, &api.SecretSpec{Annotations: named("x"), Driver: &api.Driver{}})
		return err
	}), errkind.Invalid, "spec.driver.name")
}

func TestUpdateSecret(t *testing.T) {
	w := newWorld(t)
	s := w.secrets[0]
	update := func(change func(*api.SecretSpec)) (out *api.Secret, err error) {
		spec := objects.RedactSecret(s).Spec.Copy() // as a client knows it
		change(spec)
		err = w.try(func(tx *store.Tx) (err error) {
			out, err = objects.UpdateSecret(tx, s.ID, &s.Meta.Version, spec)
			return err
		})
		return out, err
	}
	for field, change := range map[string]func(*api.SecretSpec){
		"spec.annotations.name":   func(s *api.SecretSpec) { s.Annotations.Name = "other" },
		"spec.data":               func(s *api.SecretSpec) { s.Data = []byte("other") },
		"spec.templating":         func(s *api.SecretSpec) { s.Templating = &api.Driver{Name: "golang"} },
		"spec.driver":             func(s *api.SecretSpec) { s.Driver = &api.Driver{Name: "vault"} },
		"spec.annotations.labels": func(s *api.SecretSpec) { s.Annotations.Labels = map[string]string{"": "x"} },
	} {
		_, err := update(change)
		want(t, err, errkind.Invalid, field)
	}
	out, err := update(func(s *api.SecretSpec) { s.Annotations.Labels = map[string]string{"a": "b"} })
	if err != nil {
		t.Fatal(err)
	}
	if out.Spec.Annotations.Labels["a"] != "b" || !bytes.Equal(out.Spec.Data, s.Spec.Data) {
		t.Errorf("got %v", out)
	}
	if _, err := update(func(*api.SecretSpec) {}); !errkind.Is(err, errkind.OutOfSequence) {
		t.Errorf("an old version: %v", err)
	}
}

func TestSecretsAndConfigsInUse(t *testing.T) {
	w := newWorld(t)
	var users []*api.Service
	for i := range 7 {
		spec := serviceSpec(fmt.Sprint("web", i))
		spec.Task.GetContainer().Secrets = []*api.SecretReference{w.secretRef(0, "a")}
		spec.Task.GetContainer().Configs = []*api.ConfigReference{w.configRef(0, "a")}
		users = append(users, w.service(spec))
	}
	removeSecret := func(tx *store.Tx) error { _, err := objects.RemoveSecret(tx, w.secrets[0].ID); return err }
	removeConfig := func(tx *store.Tx) error { _, err := objects.RemoveConfig(tx, w.configs[0].ID); return err }
	for _, remove := range []func(*store.Tx) error{removeSecret, removeConfig} {
		err := w.try(remove)
		want(t, err, errkind.Refused, "")
		if !strings.Contains(err.Error(), "web") || !strings.Contains(err.Error(), "and 2 more") {
			t.Errorf("does not name the users: %v", err)
		}
	}
	w.must(func(tx *store.Tx) error { // in one transaction they go together
		for _, s := range users {
			if _, err := objects.RemoveService(tx, s.ID); err != nil {
				return err
			}
		}
		if err := removeSecret(tx); err != nil {
			return err
		}
		return removeConfig(tx)
	})
}

func TestTaskRules(t *testing.T) {
	w := newWorld(t)
	s := w.service(serviceSpec("web"))
	var node *api.Node
	w.must(func(tx *store.Tx) (err error) {
		node, err = objects.CreateNode(tx, &api.Node{Spec: api.NodeSpec{Annotations: named("n")}})
		return err
	})
	good := &api.Task{Spec: s.Spec.Task, ServiceID: s.ID, NodeID: node.ID, Slot: 1}
	for field, change := range map[string]func(*api.Task){
		"service_id":           func(t *api.Task) { t.ServiceID = "x" },
		"node_id":              func(t *api.Task) { t.NodeID = "x" },
		"desired_state":        func(t *api.Task) { t.DesiredState = 5 },
		"status.state":         func(t *api.Task) { t.Status.State = 5 },
		"spec.container.image": func(t *api.Task) { t.Spec.GetContainer().Image = "" },
		"spec.runtime":         func(t *api.Task) { t.Spec.Runtime = nil },
		"annotations.labels":   func(t *api.Task) { t.Annotations.Labels = map[string]string{"": ""} },
		"status.message":       func(t *api.Task) { t.Status.Message = "\xff" },
	} {
		task := good.Copy()
		change(task)
		want(t, w.try(func(tx *store.Tx) error { _, err := objects.CreateTask(tx, task); return err }), errkind.Invalid, field)
	}
	var task *api.Task
	w.must(func(tx *store.Tx) (err error) { task, err = objects.CreateTask(tx, good); return err })
	w.must(func(tx *store.Tx) error { _, err := objects.RemoveService(tx, s.ID); return err })
	update := func(change func(*api.Task)) error {
		c := task.Copy()
		change(c)
		return w.try(func(tx *store.Tx) error { _, err := objects.UpdateTask(tx, c); return err })
	}
	want(t, update(func(t *api.Task) { t.ServiceID = "" }), errkind.Invalid, "service_id")
	want(t, update(func(t *api.Task) { t.NodeID = "x" }), errkind.Invalid, "node_id")
	want(t, update(func(t *api.Task) { t.Spec.Runtime = nil }), errkind.Invalid, "spec.runtime")
	want(t, update(func(t *api.Task) { t.Meta.Version.Index++ }), errkind.OutOfSequence, "meta.version")
	// The task outlives its service.
	if err := update(func(t *api.Task) { t.Status.State = api.TaskState_RUNNING }); err != nil {
		t.Error(err)
	}
	w.must(func(tx *store.Tx) error { _, err := objects.RemoveTask(tx, task.ID); return err })
	want(t, w.try(func(tx *store.Tx) error { _, err := objects.RemoveTask(tx, ""); return err }), errkind.Invalid, "task_id")
}
