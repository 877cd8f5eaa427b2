package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/client"
	"holdfast/internal/errkind"
	"holdfast/test/testcluster"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Run(m)) }

// service gives the spec of a service.
func service(name string) *api.ServiceSpec {
	return &api.ServiceSpec{
		Annotations: api.Annotations{Name: name},
		Task: api.TaskSpec{Runtime: &api.TaskSpec_Container{
			Container: &api.ContainerSpec{Image: "nginx"},
		}},
		Mode: &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: 2}},
	}
}

// made is what a create was answered with.
type made struct {
	id       string
	revision uint64
}

// create creates a service through a client, with a request ID if one is given.
func create(ctx context.Context, c *client.Client, name, requestID string) (made, error) {
	if requestID != "" {
		ctx = client.WithRequestID(ctx, requestID)
	}
	r, err := c.Control().CreateService(ctx, &api.CreateServiceRequest{Spec: service(name)})
	if err != nil {
		return made{}, err
	}
	return madeOf(r.Service), nil
}

func madeOf(s *api.Service) made { return made{id: s.ID, revision: s.Meta.CreatedVersion.Index} }

// check compares what a cluster holds with what was acknowledged, by name: all of that is
// there, once, and as it was answered. It returns the number of others.
func check(t *testing.T, content *testcluster.Content, acknowledged map[string]made) int {
	t.Helper()
	found := map[string]made{}
	others := 0
	for _, s := range content.Services {
		name := s.Spec.Annotations.Name
		if _, twice := found[name]; twice {
			t.Errorf("service %s is there twice", name)
		}
		found[name] = madeOf(s)
		if _, known := acknowledged[name]; !known {
			others++
		}
	}
	wrong := 0
	for name, want := range acknowledged {
		if got := found[name]; got != want {
			if wrong++; wrong <= 5 {
				t.Errorf("service %s was acknowledged as %+v, and is %+v", name, want, got)
			}
		}
	}
	if wrong > 5 {
		t.Errorf("%d services in all are not as they were acknowledged", wrong)
	}
	return others
}

// retriable tells whether a call that failed may be made again with its request ID.
func retriable(err error) bool {
	return errkind.Is(err, errkind.NoLeader) || errkind.Is(err, errkind.UnknownOutcome)
}

// refused checks that err is of a kind, and that its text and its parts name what is wanted.
func refused(t *testing.T, err error, kind errkind.Kind, want ...string) {
	t.Helper()
	e, ok := errors.AsType[*errkind.Error](err)
	if !ok || e.Kind != kind {
		t.Errorf("got %v (%T), want an error of kind %d", err, err, kind)
		return
	}
	text := fmt.Sprintf("%v field=%q max=%q", e, e.Field, e.Max)
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("got %s, which does not tell %q", text, w)
		}
	}
}
