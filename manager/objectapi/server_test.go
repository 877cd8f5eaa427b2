package objectapi_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/descriptors"
	"holdfast/internal/errkind"
	"holdfast/manager/objectapi"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// reader reads the newest state.
type reader struct{ store *store.MemoryStore }

func (r reader) Read(context.Context) (store.ReadTx, error) { return r.store.Root(), nil }

// pinned reads one revision.
type pinned struct {
	store    *store.MemoryStore
	revision uint64
}

func (p pinned) Read(context.Context) (store.ReadTx, error) { return p.store.At(p.revision) }

// fixture is a server over a store of its own.
type fixture struct {
	*objectapi.Server
	t     testing.TB
	store *store.MemoryStore
}

// files describe the objects.
func files(t testing.TB) *descriptors.Files {
	t.Helper()
	files, err := descriptors.New()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func newFixture(t testing.TB) *fixture {
	s := storetest.New(t)
	return &fixture{objectapi.New(s, reader{s}, files(t)), t, s}
}

// at gives the server as it answers a call that asks for one revision.
func (f *fixture) at(revision uint64) *objectapi.Server {
	f.t.Helper()
	return objectapi.New(f.store, pinned{f.store, revision}, files(f.t))
}

// txn does operations that must succeed.
func (f *fixture) txn(operations ...*holdfast.Operation) *holdfast.TxnResponse {
	f.t.Helper()
	resp, err := f.Txn(f.t.Context(), &holdfast.TxnRequest{Operations: operations})
	if err != nil {
		f.t.Fatal(err)
	}
	if len(resp.Objects) != len(operations) {
		f.t.Fatalf("%d objects for %d operations", len(resp.Objects), len(operations))
	}
	return resp
}

// list gives the objects of a kind that must be listed.
func (f *fixture) list(kind holdfast.Kind, s holdfast.Selector) *holdfast.ListResponse {
	f.t.Helper()
	resp, err := f.List(f.t.Context(), &holdfast.ListRequest{Kind: kind, Selector: s})
	if err != nil {
		f.t.Fatal(err)
	}
	return resp
}

// withRequest gives a call a request ID.
func withRequest(t testing.TB, digest byte) context.Context {
	return state.WithRequest(t.Context(), state.Request{
		ID: "0.abcdefghijklmnop", Digest: []byte{digest}, Caller: "test",
	})
}

func service(name string, labels ...string) *api.Service {
	s := &api.Service{Spec: api.ServiceSpec{
		Annotations: annotations(name, labels...),
		Task: api.TaskSpec{Runtime: &api.TaskSpec_Container{
			Container: &api.ContainerSpec{Image: "busybox:1"},
		}},
		Mode: &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: 1}},
	}}
	return s
}

func network(name string) *api.Network {
	return &api.Network{Spec: api.NetworkSpec{Annotations: annotations(name)}}
}

func secret(name, data string) *api.Secret {
	return &api.Secret{Spec: api.SecretSpec{Annotations: annotations(name), Data: []byte(data)}}
}

func task(service *api.Service, slot uint64) *api.Task {
	return &api.Task{
		ServiceID: service.ID, Slot: slot, Spec: *service.Spec.Task.Copy(),
		ServiceAnnotations: service.Spec.Annotations, DesiredState: api.TaskState_RUNNING,
	}
}

func annotations(name string, labels ...string) api.Annotations {
	a := api.Annotations{Name: name}
	for _, l := range labels {
		if a.Labels == nil {
			a.Labels = map[string]string{}
		}
		key, value, _ := strings.Cut(l, "=")
		a.Labels[key] = value
	}
	return a
}

func wrap(o state.Object) *holdfast.Object {
	switch o := o.(type) {
	case *api.Service:
		return &holdfast.Object{Target: &holdfast.Object_Service{Service: o}}
	case *api.Task:
		return &holdfast.Object{Target: &holdfast.Object_Task{Task: o}}
	case *api.Network:
		return &holdfast.Object{Target: &holdfast.Object_Network{Network: o}}
	case *api.Secret:
		return &holdfast.Object{Target: &holdfast.Object_Secret{Secret: o}}
	}
	panic("a kind that no test needed yet")
}

func create(o state.Object) *holdfast.Operation {
	return &holdfast.Operation{Op: &holdfast.Operation_Create{Create: wrap(o)}}
}

func update(o state.Object) *holdfast.Operation {
	return &holdfast.Operation{Op: &holdfast.Operation_Update{Update: &holdfast.Update{Object: wrap(o)}}}
}

func updateSpec(o state.Object) *holdfast.Operation {
	return &holdfast.Operation{Op: &holdfast.Operation_Update{
		Update: &holdfast.Update{Object: wrap(o), SpecOnly: true},
	}}
}

func remove(kind holdfast.Kind, id string) *holdfast.Operation {
	return &holdfast.Operation{Op: &holdfast.Operation_Remove{Remove: &holdfast.Remove{Kind: kind, ID: id}}}
}

// wantError checks the kind of an error, the path of its field and a part of its text.
func wantError(t testing.TB, err error, kind errkind.Kind, field, text string) {
	t.Helper()
	e, ok := errors.AsType[*errkind.Error](err)
	if !ok {
		t.Fatalf("got %v, which has no kind; want kind %d", err, kind)
	}
	if e.Kind != kind || e.Field != field || !strings.Contains(err.Error(), text) {
		t.Errorf("got %q of kind %d, field %q; want kind %d, field %q, with %q", err, e.Kind, e.Field, kind, field, text)
	}
}

func TestGet(t *testing.T) {
	f := newFixture(t)
	made := f.txn(create(service("web"))).Objects[0].GetService()
	node := func(id string) {
		if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := store.Nodes.Create(tx, &api.Node{
				ID: id, Description: &api.NodeDescription{Hostname: "host"},
			})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	node("node1")
	node("node2")

	for _, r := range []*holdfast.GetRequest{
		{Kind: holdfast.Kind_KIND_SERVICE, ID: made.ID},
		{Kind: holdfast.Kind_KIND_SERVICE, Name: "WEB"},
	} {
		resp, err := f.Get(t.Context(), r)
		if err != nil || !resp.Object.GetService().Equal(made) || resp.Revision != 3 {
			t.Errorf("%v: %v, %v", r, resp, err)
		}
	}
	for _, c := range []struct {
		name    string
		request *holdfast.GetRequest
		kind    errkind.Kind
		field   string
		text    string
	}{
		{"no kind", &holdfast.GetRequest{ID: "x"}, errkind.Invalid, "kind", "is empty"},
		{"unknown kind", &holdfast.GetRequest{Kind: 99, ID: "x"}, errkind.Invalid, "kind", "99"},
		{"neither", &holdfast.GetRequest{Kind: holdfast.Kind_KIND_TASK}, errkind.Invalid, "id", "is empty"},
		{
			"both", &holdfast.GetRequest{Kind: holdfast.Kind_KIND_TASK, ID: "x", Name: "y"},
			errkind.Invalid, "name", "id is too",
		},
		{"no such ID", &holdfast.GetRequest{Kind: holdfast.Kind_KIND_TASK, ID: "x"}, errkind.NotFound, "", "task x"},
		{
			"no such name", &holdfast.GetRequest{Kind: holdfast.Kind_KIND_SECRET, Name: "x"},
			errkind.NotFound, "", "secret x",
		},
		{
			"of another kind", &holdfast.GetRequest{Kind: holdfast.Kind_KIND_TASK, ID: made.ID},
			errkind.NotFound, "", "not found",
		},
		{
			"ambiguous", &holdfast.GetRequest{Kind: holdfast.Kind_KIND_NODE, Name: "host"},
			errkind.Invalid, "name", "node1, node2",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := f.Get(t.Context(), c.request)
			wantError(t, err, c.kind, c.field, c.text)
		})
	}
}

// No call gives the data of a secret away, in whatever form.
func TestSecretDataStaysInside(t *testing.T) {
	const canary = "canary-4711"
	f := newFixture(t)
	var told strings.Builder
	tell := func(m interface {
		Marshal() ([]byte, error)
		String() string
	}, err error,
	) {
		t.Helper()
		if err != nil {
			told.WriteString(err.Error() + errkind.Hint(err))
			return
		}
		b, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		told.Write(b)
		told.WriteString(m.String())
	}
	txn := func(ctx context.Context, operations ...*holdfast.Operation) *holdfast.TxnResponse {
		resp, err := f.Txn(ctx, &holdfast.TxnRequest{Operations: operations})
		tell(resp, err)
		return resp
	}
	request := []*holdfast.Operation{create(secret("a", canary))}
	made := txn(withRequest(t, 1), request...).Objects[0].GetSecret()
	txn(withRequest(t, 1), request...) // the same again
	txn(t.Context(), request...)       // the name is taken
	txn(t.Context(), create(secret("b c", canary)))

	stored := store.Secrets.Get(f.store.Root(), made.ID)
	if string(stored.Spec.Data) != canary {
		t.Fatalf("the store has %q", stored.Spec.Data)
	}
	labelled := made.Copy() // without data, as clients know it
	labelled.Spec.Annotations.Labels = map[string]string{"a": "b"}
	made = txn(t.Context(), updateSpec(labelled)).Objects[0].GetSecret()
	other := made.Copy()
	other.Spec.Data = []byte(canary + "2")
	txn(t.Context(), update(other)) // data cannot be changed
	get, err := f.Get(t.Context(), &holdfast.GetRequest{Kind: holdfast.Kind_KIND_SECRET, ID: made.ID})
	tell(get, err)
	list, err := f.List(t.Context(), &holdfast.ListRequest{Kind: holdfast.Kind_KIND_SECRET})
	tell(list, err)
	if len(list.GetObjects()) != 1 {
		t.Errorf("list: %v", list)
	}
	removal := []*holdfast.Operation{remove(holdfast.Kind_KIND_SECRET, made.ID)}
	again := state.WithRequest(t.Context(), state.Request{ID: "0.ponmlkjihgfedcba"})
	txn(again, removal...)
	txn(again, removal...)
	if strings.Contains(told.String(), canary) {
		t.Errorf("the data of a secret is in %q", told.String())
	}
	if !strings.Contains(told.String(), made.ID) {
		t.Error("nothing was collected")
	}
}
