package objects_test

import (
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

func (w *world) create(o state.Object) (state.Object, error) {
	var out *holdfast.Object
	err := w.try(func(tx *store.Tx) (err error) {
		out, err = objects.Create(tx, objects.Wrap(o))
		return err
	})
	return objects.Unwrap(out), err
}

func (w *world) update(o state.Object, specOnly bool) (state.Object, error) {
	var out *holdfast.Object
	err := w.try(func(tx *store.Tx) (err error) {
		out, err = objects.Update(tx, &holdfast.Update{Object: objects.Wrap(o), SpecOnly: specOnly})
		return err
	})
	return objects.Unwrap(out), err
}

func (w *world) remove(r *holdfast.Remove) (state.Object, error) {
	var out *holdfast.Object
	err := w.try(func(tx *store.Tx) (err error) {
		out, err = objects.Remove(tx, r)
		return err
	})
	return objects.Unwrap(out), err
}

// created creates an object of each kind that can be created.
func (w *world) created() []state.Object {
	w.t.Helper()
	var all []state.Object
	for _, o := range []state.Object{
		&api.Node{Description: &api.NodeDescription{Hostname: "n"}},
		&api.Service{Spec: *serviceSpec("web")},
		&api.Task{Spec: serviceSpec("web").Task},
		&api.Network{Spec: *networkSpec("net")},
		&api.Secret{Spec: *secretSpec("secret")},
		&api.Config{Spec: *configSpec("config")},
	} {
		c, err := w.create(o)
		if err != nil {
			w.t.Fatalf("%T: %v", o, err)
		}
		all = append(all, c)
	}
	return all
}

func kindOf(o state.Object) holdfast.Kind {
	switch o.(type) {
	case *api.Node:
		return holdfast.Kind_KIND_NODE
	case *api.Service:
		return holdfast.Kind_KIND_SERVICE
	case *api.Task:
		return holdfast.Kind_KIND_TASK
	case *api.Network:
		return holdfast.Kind_KIND_NETWORK
	case *api.Secret:
		return holdfast.Kind_KIND_SECRET
	case *api.Config:
		return holdfast.Kind_KIND_CONFIG
	}
	return holdfast.Kind_KIND_CLUSTER
}

func TestAnyKind(t *testing.T) {
	w := newWorld(t)
	for _, o := range w.created() {
		if s, ok := o.(*api.Secret); ok && s.Spec.Data != nil {
			t.Error("a created secret comes with its data")
		}
		revision := w.Root().Revision()
		for _, specOnly := range []bool{false, true} {
			if _, err := w.update(o, specOnly); err != nil {
				t.Errorf("%T: writing back what was read: %v", o, err)
			}
		}
		if now := w.Root().Revision(); now != revision {
			t.Errorf("%T: writing back what was read made revision %d", o, now)
		}
		r := &holdfast.Remove{Kind: kindOf(o), ID: o.GetID(), Version: 1}
		_, err := w.remove(r)
		want(t, err, errkind.OutOfSequence, "version")
		meta := o.GetMeta()
		r.Version = meta.Version.Index
		gone, err := w.remove(r)
		if err != nil || gone.GetID() != o.GetID() {
			t.Errorf("%T: %v, %v", o, gone, err)
		}
		if s, ok := gone.(*api.Secret); ok && s.Spec.Data != nil {
			t.Error("a removed secret comes with its data")
		}
		_, err = w.remove(r)
		want(t, err, errkind.NotFound, "")
	}
}

func TestAnyKindIsRefused(t *testing.T) {
	w := newWorld(t)
	c := w.cluster()
	for _, r := range []struct {
		name  string
		do    func() error
		kind  errkind.Kind
		field string
	}{
		{"create nothing", func() error { _, err := w.create(nil); return err }, errkind.Invalid, "object"},
		{"create a nil service", func() error { _, err := w.create((*api.Service)(nil)); return err }, errkind.Invalid, "object"},
		{"update nothing", func() error { _, err := w.update(nil, true); return err }, errkind.Invalid, "object"},
		{"create with a bad ID", func() error {
			_, err := w.create(&api.Task{ID: "x", Spec: serviceSpec("a").Task})
			return err
		}, errkind.Invalid, "id"},
		{"create a cluster", func() error { _, err := w.create(&api.Cluster{}); return err }, errkind.Refused, ""},
		{"remove a cluster", func() error {
			_, err := w.remove(&holdfast.Remove{Kind: holdfast.Kind_KIND_CLUSTER, ID: c.ID})
			return err
		}, errkind.Refused, ""},
		{"remove no kind", func() error { _, err := w.remove(&holdfast.Remove{ID: c.ID}); return err }, errkind.Invalid, "kind"},
		{"remove an unknown kind", func() error { _, err := w.remove(&holdfast.Remove{Kind: 99, ID: c.ID}); return err }, errkind.Invalid, "kind"},
		{"remove no ID", func() error {
			_, err := w.remove(&holdfast.Remove{Kind: holdfast.Kind_KIND_TASK})
			return err
		}, errkind.Invalid, "id"},
		{"remove nothing", func() error { _, err := w.remove(nil); return err }, errkind.Invalid, "remove"},
		{"update a network's spec", func() error {
			n := w.network.Copy()
			n.Spec.Internal = true
			_, err := w.update(n, true)
			return err
		}, errkind.Invalid, "spec"},
		{"update a secret from an older version", func() error {
			s := w.secrets[0].Copy()
			s.Meta.Version.Index--
			_, err := w.update(s, false)
			return err
		}, errkind.OutOfSequence, "version"},
		{"endpoint that is not UTF-8", func() error {
			_, err := w.create(&api.Service{Spec: *serviceSpec("x"), UpdateStatus: &api.UpdateStatus{Message: "\xff"}})
			return err
		}, errkind.Invalid, "update_status.message"},
	} {
		t.Run(r.name, func(t *testing.T) { want(t, r.do(), r.kind, r.field) })
	}
	n := w.manager("m")
	for field, change := range map[string]func(*api.Node){
		"role":              func(n *api.Node) { n.Role = api.NodeRole_WORKER },
		"manager_status":    func(n *api.Node) { n.ManagerStatus = nil },
		"certificate":       func(n *api.Node) { n.Certificate.CN = "x" },
		"spec.desired_role": func(n *api.Node) { n.Spec.DesiredRole = api.NodeRole_WORKER },
	} {
		c := n.Copy()
		change(c)
		_, err := w.update(c, false)
		kind := errkind.Invalid
		if strings.HasPrefix(field, "spec") {
			kind = errkind.Refused
		}
		want(t, err, kind, field)
	}
}

func TestClusterIsWrittenBackRedacted(t *testing.T) {
	w := newWorld(t)
	c := objects.RedactCluster(w.cluster()).Copy()
	c.Spec.Orchestration.TaskHistoryRetentionLimit = 3
	if _, err := w.update(c, false); err != nil {
		t.Fatal(err)
	}
	got := store.Clusters.Get(w.Root(), c.ID)
	if got.Spec.Orchestration.TaskHistoryRetentionLimit != 3 || len(got.RootCA.CAKey) == 0 || len(got.UnlockKeys) == 0 {
		t.Errorf("got %v", got)
	}
}

// A controller writes the parts of a service that are not its spec, or all of it.
func TestControllerWritesService(t *testing.T) {
	w := newWorld(t)
	one := w.service(serviceSpec("web"))
	c := one.Copy()
	c.UpdateStatus = &api.UpdateStatus{State: api.UpdateStatus_UPDATING}
	out, err := w.update(c, false)
	if err != nil {
		t.Fatal(err)
	}
	two := out.(*api.Service).Copy()
	if two.UpdateStatus.GetState() != api.UpdateStatus_UPDATING || !two.SpecVersion.Equal(one.SpecVersion) {
		t.Fatalf("after a status write: %v", two)
	}

	two.Spec.GetReplicated().Replicas = 9
	if out, err = w.update(two, false); err != nil {
		t.Fatal(err)
	}
	three := out.(*api.Service).Copy()
	if !three.PreviousSpec.Equal(&one.Spec) || three.SpecVersion.Index != three.Meta.Version.Index {
		t.Fatalf("after a new spec: %v", three)
	}

	// A rollback of the controller's own: it says what the previous spec is.
	three.Spec, three.SpecVersion = *three.PreviousSpec, three.PreviousSpecVersion
	three.PreviousSpec, three.PreviousSpecVersion = nil, nil
	if out, err = w.update(three, false); err != nil {
		t.Fatal(err)
	}
	if four := out.(*api.Service); four.PreviousSpec != nil || !four.SpecVersion.Equal(one.SpecVersion) {
		t.Fatalf("after a rollback: %v", four)
	}

	three.Spec.Annotations.Name = "other"
	_, err = w.update(three, false)
	want(t, err, errkind.Invalid, "spec.annotations.name")

	// An editor of the spec is not disturbed by the status writes, but by the other specs.
	_, err = w.update(one, true)
	want(t, err, errkind.OutOfSequence, "version")
}

func TestSpecOnlyKeepsTheRest(t *testing.T) {
	w := newWorld(t)
	made, err := w.create(&api.Task{Spec: serviceSpec("a").Task, Status: api.TaskStatus{State: api.TaskState_RUNNING}})
	if err != nil {
		t.Fatal(err)
	}
	task := made.(*api.Task).Copy()
	task.Status, task.Spec.ForceUpdate = api.TaskStatus{}, 7
	out, err := w.update(task, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.(*api.Task); got.Status.State != api.TaskState_RUNNING || got.Spec.ForceUpdate != 7 {
		t.Errorf("got %v", got)
	}
}
