package controlapi_test

import (
	"context"
	"errors"
	"testing"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/controlapi"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// rig is a server over a store of its own.
type rig struct {
	*controlapi.Server
	store *store.MemoryStore
	t     testing.TB
	ctx   context.Context
}

func newRig(t testing.TB) *rig {
	s := storetest.New(t)
	return &rig{controlapi.New(s, latest{s}), s, t, t.Context()}
}

// latest reads what is committed.
type latest struct{ s *store.MemoryStore }

func (l latest) Read(ctx context.Context) (store.ReadTx, error) { return l.s.Root(), ctx.Err() }

func (r *rig) write(fn func(*store.Tx) error) {
	r.t.Helper()
	if _, err := r.store.Update(r.ctx, fn); err != nil {
		r.t.Fatal(err)
	}
}

func named(name string, labels ...string) api.Annotations {
	a := api.Annotations{Name: name}
	for i := 0; i+1 < len(labels); i += 2 {
		if a.Labels == nil {
			a.Labels = map[string]string{}
		}
		a.Labels[labels[i]] = labels[i+1]
	}
	return a
}

func serviceSpec(name string, labels ...string) *api.ServiceSpec {
	return &api.ServiceSpec{
		Annotations: named(name, labels...),
		Task: api.TaskSpec{Runtime: &api.TaskSpec_Container{
			Container: &api.ContainerSpec{Image: "nginx"},
		}},
		Mode: &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: 2}},
	}
}

// create creates a service.
func (r *rig) create(spec *api.ServiceSpec) *api.Service {
	r.t.Helper()
	resp, err := r.CreateService(r.ctx, &api.CreateServiceRequest{Spec: spec})
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.Service
}

// want checks that err is of a kind and, if it is not empty, names a field.
func want(t *testing.T, err error, kind errkind.Kind, field string) {
	t.Helper()
	e, ok := errors.AsType[*errkind.Error](err)
	switch {
	case !ok:
		t.Errorf("got %v, want kind %d for %s", err, kind, field)
	case e.Kind != kind:
		t.Errorf("kind %d, want %d: %v", e.Kind, kind, err)
	case field != "" && e.Field != field:
		t.Errorf("field %q, want %q: %v", e.Field, field, err)
	}
}
