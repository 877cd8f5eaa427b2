package objectapi_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objectapi"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

func exists(kind holdfast.Kind, id string, exists bool) *holdfast.Precondition {
	return &holdfast.Precondition{Kind: kind, ID: id, Test: &holdfast.Precondition_Exists{Exists: exists}}
}

func version(kind holdfast.Kind, id string, version uint64) *holdfast.Precondition {
	return &holdfast.Precondition{Kind: kind, ID: id, Test: &holdfast.Precondition_Version{Version: version}}
}

func TestTxnDoesAllInOneRevision(t *testing.T) {
	f := newFixture(t)
	first := f.txn(create(service("a")), create(network("n")), create(secret("s", "x")))
	a := first.Objects[0].GetService()
	if a.ID == "" || a.Meta.Version.Index != first.Revision || first.Objects[2].GetSecret().Meta.Version.Index != 1 {
		t.Errorf("created: %v", first)
	}
	changed := a.Copy()
	changed.Spec.Mode.(*api.ServiceSpec_Replicated).Replicated.Replicas = 5
	second := f.txn(
		remove(holdfast.Kind_KIND_NETWORK, first.Objects[1].GetNetwork().ID),
		updateSpec(changed), create(task(a, 1)),
	)
	if second.Objects[0].GetNetwork().Spec.Annotations.Name != "n" ||
		second.Objects[1].GetService().Spec.GetReplicated().Replicas != 5 ||
		second.Objects[2].GetTask().ID == "" || second.Revision != 2 {
		t.Errorf("changed: %v", second)
	}
	if got := names(f.list(holdfast.Kind_KIND_NETWORK, holdfast.Selector{})); got != "" {
		t.Errorf("networks left: %s", got)
	}
	written := second.Objects[2].GetTask().Copy()
	written.Status.State = api.TaskState_RUNNING
	third := f.txn(update(written))
	if got := third.Objects[0].GetTask(); got.Status.State != api.TaskState_RUNNING || got.Meta.Version.Index != 3 {
		t.Errorf("whole object: %v", got)
	}
	// Nothing is left to change, so the revision does not move.
	if again := f.txn(updateSpec(second.Objects[1].GetService())); again.Revision != 3 {
		t.Errorf("an update of nothing made revision %d", again.Revision)
	}
}

func TestTxnRefuses(t *testing.T) {
	f := newFixture(t)
	made := f.txn(create(service("web")), create(network("net"))).Objects
	web, net := made[0].GetService(), made[1].GetNetwork()
	scaled := web.Copy()
	scaled.Spec.Mode.(*api.ServiceSpec_Replicated).Replicated.Replicas = 2
	f.txn(update(scaled)) // so that web is stale
	stale := web.Copy()
	stale.Spec.Mode.(*api.ServiceSpec_Replicated).Replicated.Replicas = 3
	badImage := service("bad")
	badImage.Spec.Task.GetContainer().Image = "UPPER CASE"
	many := func(n int) []*holdfast.Operation {
		operations := make([]*holdfast.Operation, n)
		for i := range operations {
			operations[i] = create(service(fmt.Sprint("s", i)))
		}
		return operations
	}
	ok := create(service("ok"))
	const services, tasks = holdfast.Kind_KIND_SERVICE, holdfast.Kind_KIND_TASK
	for _, c := range []struct {
		name          string
		preconditions []*holdfast.Precondition
		operations    []*holdfast.Operation
		kind          errkind.Kind
		field, text   string
	}{
		{"empty", nil, nil, errkind.Invalid, "operations", "is empty"},
		{"preconditions alone", []*holdfast.Precondition{exists(services, web.ID, true)}, nil, errkind.Invalid, "operations", "is empty"},
		{"too many operations", nil, many(513), errkind.Limit, "operations", "at most 512"},
		{"too many preconditions", make([]*holdfast.Precondition, 513), many(1), errkind.Limit, "preconditions", "at most 512"},
		{"too large", nil, []*holdfast.Operation{create(service("x", "a="+strings.Repeat("x", 4<<20)))}, errkind.Limit, "operations", "4 MiB"},
		{"no operation", nil, []*holdfast.Operation{ok, {}}, errkind.Invalid, "operations[1]", "is empty"},
		{"no object", nil, []*holdfast.Operation{{Op: &holdfast.Operation_Create{}}}, errkind.Invalid, "operations[0].create.object", "is empty"},
		{"update of nothing", nil, []*holdfast.Operation{{Op: &holdfast.Operation_Update{}}}, errkind.Invalid, "operations[0].update.object", "is empty"},
		{"update without ID", nil, []*holdfast.Operation{update(service("x"))}, errkind.Invalid, "operations[0].update.id", "is empty"},
		{"remove without ID", nil, []*holdfast.Operation{remove(services, "")}, errkind.Invalid, "operations[0].remove.id", "is empty"},
		{"remove of no kind", nil, []*holdfast.Operation{remove(0, "x")}, errkind.Invalid, "operations[0].remove.kind", "is empty"},
		{"remove of an unknown kind", nil, []*holdfast.Operation{remove(42, "x")}, errkind.Invalid, "operations[0].remove.kind", "42"},
		{"remove of a stranger", nil, []*holdfast.Operation{ok, remove(tasks, "x")}, errkind.NotFound, "operations[1].remove", "task x"},
		{"bad spec", nil, []*holdfast.Operation{ok, ok, create(badImage)}, errkind.Exists, "operations[1].create.service.spec.annotations.name", "ok"},
		{"bad field", nil, []*holdfast.Operation{ok, create(badImage)}, errkind.Invalid, "operations[1].create.service.spec.task.container.image", "bad"},
		{"stale", nil, []*holdfast.Operation{ok, updateSpec(stale)}, errkind.OutOfSequence, "operations[1].update.object.service.version", "out of sequence"},
		{"precondition on nothing", []*holdfast.Precondition{nil}, many(1), errkind.Invalid, "preconditions[0].kind", "is empty"},
		{"precondition without ID", []*holdfast.Precondition{exists(services, "", true)}, many(1), errkind.Invalid, "preconditions[0].id", "is empty"},
		{"precondition without test", []*holdfast.Precondition{{Kind: services, ID: "x"}}, many(1), errkind.Invalid, "preconditions[0]", "no test"},
		{"precondition of version 0", []*holdfast.Precondition{version(services, "x", 0)}, many(1), errkind.Invalid, "preconditions[0].version", "is 0"},
		{"version", []*holdfast.Precondition{
			exists(services, web.ID, true), version(services, web.ID, 2), version(services, web.ID, 1),
		}, many(1), errkind.OutOfSequence, "preconditions[2]", web.ID},
		{"version of nothing", []*holdfast.Precondition{version(tasks, "x", 1)}, many(1), errkind.OutOfSequence, "preconditions[0]", "does not exist"},
		{"exists", []*holdfast.Precondition{exists(holdfast.Kind_KIND_NETWORK, net.ID, false)}, many(1), errkind.OutOfSequence, "preconditions[0]", "network " + net.ID},
		{"does not exist", []*holdfast.Precondition{exists(services, net.ID, true)}, many(1), errkind.OutOfSequence, "preconditions[0]", "does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := f.Txn(t.Context(), &holdfast.TxnRequest{Preconditions: c.preconditions, Operations: c.operations})
			wantError(t, err, c.kind, c.field, c.text)
			if c.kind == errkind.OutOfSequence && errkind.Hint(err) == "" {
				t.Error("no hint")
			}
			if got := f.store.Root().Revision(); got != 2 {
				t.Fatalf("the revision moved to %d", got)
			}
		})
	}
	if got := names(f.list(services, holdfast.Selector{})); got != "web" {
		t.Errorf("services: %s", got)
	}
	_, err := f.Txn(t.Context(), &holdfast.TxnRequest{
		Preconditions: []*holdfast.Precondition{
			version(services, web.ID, 2), exists(services, "x", false), exists(services, web.ID, true),
		}, Operations: many(512),
	})
	if err != nil {
		t.Errorf("512 operations whose preconditions hold: %v", err)
	}
}

// An operation that changes nothing is not in the transaction, but its reply has a bound too.
func TestTxnBoundsItsReply(t *testing.T) {
	f := newFixture(t)
	big := service("big")
	big.Endpoint = &api.Endpoint{}
	for range 40_000 {
		big.Endpoint.VirtualIPs = append(big.Endpoint.VirtualIPs, &api.Endpoint_VirtualIP{Addr: "10.0.0.1"})
	}
	made := f.txn(create(big)).Objects[0].GetService()
	small := &api.Service{ID: made.ID, Meta: made.Meta, Spec: made.Spec}
	operations := make([]*holdfast.Operation, 512)
	for i := range operations {
		operations[i] = updateSpec(small)
	}
	_, err := f.Txn(t.Context(), &holdfast.TxnRequest{Operations: operations})
	wantError(t, err, errkind.Limit, "operations", "32 MiB")
}

func TestTxnReplayed(t *testing.T) {
	f := newFixture(t)
	made := f.txn(create(service("a")), create(service("gone")), create(service("same"))).Objects
	changed := made[0].GetService().Copy()
	changed.Spec.Mode.(*api.ServiceSpec_Replicated).Replicated.Replicas = 2
	named := service("named")
	named.ID = strings.Repeat("k", 25)
	r := &holdfast.TxnRequest{Operations: []*holdfast.Operation{
		create(service("new1")), updateSpec(changed), remove(holdfast.Kind_KIND_SERVICE, made[1].GetService().ID),
		create(named), updateSpec(made[2].GetService()), create(secret("new2", "x")), create(service("new3")),
	}}
	ctx := withRequest(t, 1)
	first, err := f.Txn(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	// What is done later does not show.
	f.txn(remove(holdfast.Kind_KIND_SERVICE, first.Objects[0].GetService().ID))
	again, err := f.Txn(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if !again.Equal(first) {
		t.Errorf("got %v\nwant %v", again, first)
	}
	if got := f.store.Root().Revision(); got != 3 {
		t.Errorf("the revision moved to %d", got)
	}
	_, err = f.Txn(withRequest(t, 2), r)
	if !errkind.Is(err, errkind.Invalid) {
		t.Errorf("same ID for another request: %v", err)
	}
}

// Once the history is compacted, what is gone is given by its ID.
func TestTxnReplayedAfterCompaction(t *testing.T) {
	loop := storetest.NewLoop(t, store.Options{MaxLog: 2})
	f := &fixture{objectapi.New(loop.Store, reader{loop.Store}, files(t)), t, loop.Store}
	gone := f.txn(create(service("gone"))).Objects[0].GetService()
	r := &holdfast.TxnRequest{Operations: []*holdfast.Operation{
		remove(holdfast.Kind_KIND_SERVICE, gone.ID), create(service("new")),
	}}
	ctx := withRequest(t, 1)
	first, err := f.Txn(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		f.txn(create(network(fmt.Sprint("n", i))))
	}
	again, err := f.Txn(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if again.Revision != first.Revision || !again.Objects[1].Equal(first.Objects[1]) {
		t.Errorf("got %v, want %v", again, first)
	}
	if o := objects.Unwrap(again.Objects[0]); o.GetID() != gone.ID {
		t.Errorf("removed: %v", o)
	}
	f.txn(remove(holdfast.Kind_KIND_SERVICE, first.Objects[1].GetService().ID))
	again, err = f.Txn(ctx, r)
	if err != nil || again.Objects[1].GetService().ID != first.Objects[1].GetService().ID {
		t.Errorf("all is gone: %v, %v", again, err)
	}
}

// A create without an ID is not mistaken for what an operation changed beside.
func TestTxnReplayedWithSideEffects(t *testing.T) {
	f := newFixture(t)
	web := f.txn(create(service("web"))).Objects[0].GetService()
	var nodeID string
	if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
		n, err := store.Nodes.Create(tx, &api.Node{Description: &api.NodeDescription{Hostname: "h"}})
		if err == nil {
			nodeID = n.ID
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	placed := task(web, 1)
	placed.NodeID = nodeID
	f.txn(create(placed))
	r := &holdfast.TxnRequest{Operations: []*holdfast.Operation{
		remove(holdfast.Kind_KIND_NODE, nodeID), create(task(web, 2)),
	}}
	ctx := withRequest(t, 1)
	first, err := f.Txn(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.Txn(ctx, r)
	if err != nil || !again.Equal(first) {
		t.Errorf("got %v, %v\nwant %v", again, err, first)
	}
}
