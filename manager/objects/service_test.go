package objects_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

func (w *world) updateService(s *api.Service, change func(*api.ServiceSpec)) (*api.Service, error) {
	spec := s.Spec.Copy()
	change(spec)
	var out *api.Service
	err := w.try(func(tx *store.Tx) (err error) {
		out, err = objects.UpdateService(tx, s.ID, &s.Meta.Version, spec)
		return err
	})
	return out, err
}

func (w *world) rollback(s *api.Service) (*api.Service, error) {
	var out *api.Service
	err := w.try(func(tx *store.Tx) (err error) {
		out, err = objects.RollbackService(tx, s.ID, &s.Meta.Version)
		return err
	})
	return out, err
}

func scale(n uint64) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { s.GetReplicated().Replicas = n }
}

func TestUpdateServiceKeepsPrevious(t *testing.T) {
	w := newWorld(t)
	one := w.service(serviceSpec("web"))
	if one.PreviousSpec != nil || one.SpecVersion.Index != one.Meta.Version.Index {
		t.Fatalf("new service: %v", one)
	}
	two, err := w.updateService(one, scale(5))
	if err != nil {
		t.Fatal(err)
	}
	if !two.PreviousSpec.Equal(&one.Spec) || !two.PreviousSpecVersion.Equal(one.SpecVersion) ||
		two.SpecVersion.Index != two.Meta.Version.Index || two.UpdateStatus != nil {
		t.Fatalf("after update: %v", two)
	}

	same, err := w.updateService(two, scale(5))
	if err != nil || same != two {
		t.Fatalf("an update that changes nothing: %v, %v", same, err)
	}

	back, err := w.rollback(two)
	if err != nil {
		t.Fatal(err)
	}
	if !back.Spec.Equal(&one.Spec) || !back.PreviousSpec.Equal(&two.Spec) ||
		!back.SpecVersion.Equal(one.SpecVersion) || !back.PreviousSpecVersion.Equal(two.SpecVersion) ||
		back.UpdateStatus.GetState() != api.UpdateStatus_ROLLBACK_STARTED {
		t.Fatalf("after rollback: %v", back)
	}
	three, err := w.updateService(back, scale(7))
	if err != nil || three.UpdateStatus != nil {
		t.Fatalf("update after rollback: %v, %v", three.GetUpdateStatus(), err)
	}
}

func TestRollbackIsRefused(t *testing.T) {
	w := newWorld(t)
	s := w.service(serviceSpec("web"))
	_, err := w.rollback(s)
	want(t, err, errkind.Refused, "")

	// The port of the previous spec went to another service.
	s, err = w.updateService(s, func(s *api.ServiceSpec) {
		s.Endpoint = &api.EndpointSpec{Ports: []*api.PortConfig{ingressPort(80)}}
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err = w.updateService(s, func(s *api.ServiceSpec) { s.Endpoint = nil })
	if err != nil {
		t.Fatal(err)
	}
	w.service(publishing("other", ingressPort(80)))
	_, err = w.rollback(s)
	want(t, err, errkind.Refused, "spec.endpoint.ports[0].published_port")
}

func TestUpdateServiceIsRefused(t *testing.T) {
	w := newWorld(t)
	s := w.service(serviceSpec("web"))
	for _, c := range []struct {
		name   string
		change func(*api.ServiceSpec)
		field  string
	}{
		{"other name", name("web2"), "spec.annotations.name"},
		{"name in another case", name("WEB"), "spec.annotations.name"},
		{"other mode", job(1, 1), "spec.mode"},
		{"bad image", image("UPPER"), "spec.task.container.image"},
	} {
		_, err := w.updateService(s, c.change)
		want(t, err, errkind.Invalid, c.field)
	}
	for _, c := range []struct {
		name    string
		id      string
		version *api.Version
		spec    *api.ServiceSpec
		kind    errkind.Kind
		field   string
	}{
		{"no ID", "", &s.Meta.Version, &s.Spec, errkind.Invalid, "service_id"},
		{"unknown ID", "x", &s.Meta.Version, &s.Spec, errkind.NotFound, ""},
		{"no version", s.ID, nil, &s.Spec, errkind.Invalid, "service_version"},
		{"no spec", s.ID, &s.Meta.Version, nil, errkind.Invalid, "spec"},
		{"old version", s.ID, &api.Version{Index: 1}, &s.Spec, errkind.OutOfSequence, "version"},
		{"future version", s.ID, &api.Version{Index: 1 << 40}, &s.Spec, errkind.OutOfSequence, "version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want(t, w.try(func(tx *store.Tx) error {
				_, err := objects.UpdateService(tx, c.id, c.version, c.spec)
				return err
			}), c.kind, c.field)
		})
	}
	want(t, w.try(func(tx *store.Tx) error {
		_, err := objects.CreateService(tx, serviceSpec("WEB"))
		return err
	}), errkind.Exists, "spec.annotations.name")
	want(t, w.try(func(tx *store.Tx) error {
		_, err := objects.RemoveService(tx, "x")
		return err
	}), errkind.NotFound, "")
}

func TestNetworkNamesAreResolved(t *testing.T) {
	w := newWorld(t)
	spec := serviceSpec("web")
	spec.Task.Networks = []*api.NetworkAttachmentConfig{{Target: "front", Aliases: []string{"a"}}}
	s := w.service(spec)
	if got := s.Spec.Task.Networks[0]; got.Target != w.network.ID || got.Aliases[0] != "a" {
		t.Fatalf("stored as %v", got)
	}
	same, err := w.updateService(s, func(s *api.ServiceSpec) { s.Task.Networks[0].Target = "front" })
	if err != nil || same != s {
		t.Errorf("the same network by name is a change: %v, %v", same, err)
	}
}

func TestTwoUpdatesInOneTransaction(t *testing.T) {
	w := newWorld(t)
	one := w.service(serviceSpec("web"))
	var out *api.Service
	w.must(func(tx *store.Tx) (err error) {
		spec := one.Spec.Copy()
		spec.GetReplicated().Replicas = 3
		if out, err = objects.UpdateService(tx, one.ID, &one.Meta.Version, spec); err != nil {
			return err
		}
		spec = spec.Copy()
		spec.GetReplicated().Replicas = 4
		out, err = objects.UpdateService(tx, one.ID, &out.Meta.Version, spec)
		return err
	})
	if out.Spec.GetReplicated().Replicas != 4 || !out.PreviousSpec.Equal(&one.Spec) {
		t.Errorf("got %v", out)
	}
}

func TestJobRunsAgain(t *testing.T) {
	w := newWorld(t)
	spec := serviceSpec("job")
	job(1, 2)(spec)
	s := w.service(spec)
	if s.JobStatus == nil || s.JobStatus.JobIteration.GetIndex() != 0 || s.JobStatus.LastExecution == nil {
		t.Fatalf("new job: %v", s.JobStatus)
	}
	s, err := w.updateService(s, func(s *api.ServiceSpec) { s.Annotations.Labels = map[string]string{"a": "b"} })
	if err != nil || s.JobStatus.JobIteration.Index != 0 {
		t.Fatalf("after a change of labels: %v, %v", s.GetJobStatus(), err)
	}
	s, err = w.updateService(s, func(s *api.ServiceSpec) { s.Task.ForceUpdate++ })
	if err != nil || s.JobStatus.JobIteration.Index != 1 {
		t.Fatalf("after a forced update: %v, %v", s.GetJobStatus(), err)
	}
}

func TestPortConflicts(t *testing.T) {
	w := newWorld(t)
	w.service(publishing("ingress", ingressPort(80)))
	w.service(publishing("host", hostPort(81)))
	given := w.service(publishing("given", ingressPort(0)))
	w.must(func(tx *store.Tx) error { // the cluster chose a port
		c := given.Copy()
		c.Endpoint = &api.Endpoint{Ports: []*api.PortConfig{ingressPort(30000)}}
		_, err := store.Services.Update(tx, c)
		return err
	})
	udp := ingressPort(80)
	udp.Protocol = api.PortConfig_UDP
	for _, c := range []struct {
		port  *api.PortConfig
		taken string
	}{
		{ingressPort(80), "ingress"},
		{hostPort(80), "ingress"},
		{ingressPort(81), "host"},
		{hostPort(81), ""},
		{ingressPort(82), ""},
		{udp, ""},
		{ingressPort(0), ""},
		{hostPort(30000), "given"},
	} {
		t.Run(fmt.Sprint(c.port), func(t *testing.T) {
			spec := publishing("new", ingressPort(0), c.port)
			var made *api.Service
			err := w.try(func(tx *store.Tx) (err error) {
				made, err = objects.CreateService(tx, spec)
				return err
			})
			if c.taken != "" {
				want(t, err, errkind.Refused, "spec.endpoint.ports[1].published_port")
				if err != nil && !strings.Contains(err.Error(), "service "+c.taken+" (") {
					t.Errorf("does not name %s: %v", c.taken, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			// A service is not in its own way.
			if made, err = w.updateService(made, scale(3)); err != nil {
				t.Error(err)
			}
			w.must(func(tx *store.Tx) error {
				_, err := objects.RemoveService(tx, made.ID)
				return err
			})
		})
	}
}

func TestPortMovesInOneTransaction(t *testing.T) {
	w := newWorld(t)
	old := w.service(publishing("old", ingressPort(80)))
	w.must(func(tx *store.Tx) error {
		if _, err := objects.RemoveService(tx, old.ID); err != nil {
			return err
		}
		_, err := objects.CreateService(tx, publishing("new", ingressPort(80)))
		return err
	})
}

func TestWithDefaults(t *testing.T) {
	w := newWorld(t)
	s := w.service(serviceSpec("web"))
	before := s.Copy()
	d := objects.WithDefaults(s)
	if !s.Equal(before) {
		t.Fatal("the stored service changed")
	}
	if g := d.Spec.Task.GetContainer().StopGracePeriod.GetSeconds(); g != 10 {
		t.Errorf("stop grace period %d", g)
	}
	if r := d.Spec.Task.Restart; r.GetCondition() != api.RestartPolicy_ANY || r.GetDelay().GetSeconds() != 5 {
		t.Errorf("restart %v", r)
	}
	for _, u := range []*api.UpdateConfig{d.Spec.Update, d.Spec.Rollback} {
		if u.GetParallelism() != 1 || u.FailureAction != api.UpdateConfig_PAUSE ||
			u.Monitor.GetSeconds() != 5 || u.Order != api.UpdateConfig_STOP_FIRST {
			t.Errorf("rollout %v", u)
		}
	}
	// What a client read with defaults it can write back.
	if _, err := w.updateService(s, func(s *api.ServiceSpec) { *s = d.Spec }); err != nil {
		t.Error(err)
	}
	j := serviceSpec("job")
	job(1, 1)(j)
	done := objects.WithDefaults(w.service(j))
	if _, err := w.updateService(done, scaleJob(2)); err != nil {
		t.Error(err)
	}
}

func scaleJob(n uint64) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { s.GetReplicatedJob().TotalCompletions = n }
}
