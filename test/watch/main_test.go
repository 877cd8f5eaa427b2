package watch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/errkind"
	"holdfast/test/testcluster"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Run(m)) }

// names is how many services, and configs, there may be at once.
const names = 20

// writer does random transactions.
type writer struct {
	c      *client.Client
	random *rand.Rand
	nodes  []string
}

// write does one transaction of a few operations on services, configs and tasks. Others write
// the same objects, so that it may be refused: then it is another one's turn.
func (w *writer) write(ctx context.Context) error {
	var ops []*holdfast.Operation
	for range 1 + w.random.IntN(3) {
		op, err := w.operation(ctx)
		if err != nil {
			return err
		}
		if op != nil {
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	_, err := w.c.Objects().Txn(ctx, &holdfast.TxnRequest{Operations: ops})
	switch errkind.Of(err) {
	case errkind.Exists, errkind.NotFound, errkind.OutOfSequence, errkind.Invalid, errkind.UnknownOutcome, errkind.Refused:
		return nil
	}
	return err
}

func (w *writer) annotations(name string) api.Annotations {
	return api.Annotations{Name: name, Labels: map[string]string{
		"x": fmt.Sprint(w.random.IntN(3)), "n": fmt.Sprint(w.random.IntN(1000)),
	}}
}

// operation makes a random operation on a random object; nil if there is nothing to do.
func (w *writer) operation(ctx context.Context) (*holdfast.Operation, error) {
	name := fmt.Sprint("o", w.random.IntN(names))
	kind := []holdfast.Kind{holdfast.Kind_KIND_SERVICE, holdfast.Kind_KIND_CONFIG, holdfast.Kind_KIND_TASK}[w.random.IntN(3)]
	if kind == holdfast.Kind_KIND_TASK {
		return w.task(ctx, name)
	}
	got, err := w.c.Objects().Get(client.ReadLocal(ctx), &holdfast.GetRequest{Kind: kind, Name: name})
	switch {
	case errkind.Is(err, errkind.NotFound):
		return create(kind, w.annotations(name)), nil
	case err != nil:
		return nil, err
	case w.random.IntN(3) == 0:
		return remove(kind, idOf(got.Object)), nil
	}
	if s := got.Object.GetService(); s != nil {
		s.Spec.Annotations.Labels = w.annotations("").Labels
	} else {
		got.Object.GetConfig().Spec.Annotations.Labels = w.annotations("").Labels
	}
	return update(got.Object), nil
}

// task creates a task of a service, or moves or removes one that the service has.
func (w *writer) task(ctx context.Context, service string) (*holdfast.Operation, error) {
	got, err := w.c.Objects().Get(client.ReadLocal(ctx), &holdfast.GetRequest{Kind: holdfast.Kind_KIND_SERVICE, Name: service})
	if errkind.Is(err, errkind.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := got.Object.GetService()
	tasks, err := w.c.Objects().List(client.ReadLocal(ctx), &holdfast.ListRequest{
		Kind: holdfast.Kind_KIND_TASK, Selector: holdfast.Selector{ServiceIDs: []string{s.ID}},
	})
	if err != nil {
		return nil, err
	}
	node := w.nodes[w.random.IntN(len(w.nodes))]
	if n := len(tasks.Objects); n > 0 {
		one := tasks.Objects[w.random.IntN(n)]
		if n > 2 || w.random.IntN(3) == 0 {
			return remove(holdfast.Kind_KIND_TASK, idOf(one)), nil
		}
		one.GetTask().NodeID = node
		return update(one), nil
	}
	return &holdfast.Operation{Op: &holdfast.Operation_Create{Create: &holdfast.Object{Target: &holdfast.Object_Task{
		Task: &api.Task{
			ServiceID: s.ID, NodeID: node, Spec: s.Spec.Task, Annotations: w.annotations(""),
			ServiceAnnotations: api.Annotations{Name: s.Spec.Annotations.Name},
		},
	}}}}, nil
}

func create(kind holdfast.Kind, a api.Annotations) *holdfast.Operation {
	o := &holdfast.Object{Target: &holdfast.Object_Config{Config: &api.Config{
		Spec: api.ConfigSpec{Annotations: a, Data: []byte("data of a config")},
	}}}
	if kind == holdfast.Kind_KIND_SERVICE {
		o.Target = &holdfast.Object_Service{Service: &api.Service{Spec: api.ServiceSpec{
			Annotations: a,
			Task: api.TaskSpec{Runtime: &api.TaskSpec_Container{
				Container: &api.ContainerSpec{Image: "nginx"},
			}},
		}}}
	}
	return &holdfast.Operation{Op: &holdfast.Operation_Create{Create: o}}
}

func update(o *holdfast.Object) *holdfast.Operation {
	return &holdfast.Operation{Op: &holdfast.Operation_Update{Update: &holdfast.Update{Object: o}}}
}

func remove(kind holdfast.Kind, id string) *holdfast.Operation {
	return &holdfast.Operation{Op: &holdfast.Operation_Remove{Remove: &holdfast.Remove{Kind: kind, ID: id}}}
}

// kinds are those that the tests look at.
func kinds() []holdfast.Kind {
	return []holdfast.Kind{holdfast.Kind_KIND_SERVICE, holdfast.Kind_KIND_TASK, holdfast.Kind_KIND_CONFIG}
}

func idOf(o *holdfast.Object) string { return lookAt(o).id }

// lookAt tells what a selector can ask of an object.
func lookAt(o *holdfast.Object) looks {
	switch o := o.GetTarget().(type) {
	case *holdfast.Object_Service:
		a := o.Service.Spec.Annotations
		return looks{holdfast.Kind_KIND_SERVICE, o.Service.ID, a.Name, a.Labels["x"], "", o.Service.Meta.Version.Index}
	case *holdfast.Object_Task:
		return looks{
			holdfast.Kind_KIND_TASK, o.Task.ID, "", o.Task.Annotations.Labels["x"], o.Task.NodeID, o.Task.Meta.Version.Index,
		}
	case *holdfast.Object_Config:
		a := o.Config.Spec.Annotations
		return looks{holdfast.Kind_KIND_CONFIG, o.Config.ID, a.Name, a.Labels["x"], "", o.Config.Meta.Version.Index}
	}
	return looks{}
}

// looks is what matters of an object.
type looks struct {
	kind        holdfast.Kind
	id, name, x string
	node        string
	changed     uint64
}
