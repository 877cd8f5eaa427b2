package objects

import (
	"fmt"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// Create creates an object of any kind, as it is given but for what the store and the
// managers keep. Its ID is made if it is empty. The result is redacted.
//
// A cluster cannot be created, and a node only as a worker.
func Create(tx *store.Tx, o *holdfast.Object) (*holdfast.Object, error) {
	given := Unwrap(o)
	if given == nil {
		return nil, errkind.Field("object", "is empty")
	}
	if i := given.GetID(); i != "" && !id.Valid(i) {
		return nil, errkind.Field("id", "%q is not an ID", i).
			WithHint("leave it empty, or use 25 characters of 0-9 and a-z")
	}
	switch o := given.(type) {
	case *api.Node:
		return reply(CreateNode(tx, o))
	case *api.Service:
		return reply(createService(tx, o))
	case *api.Task:
		return reply(CreateTask(tx, o))
	case *api.Network:
		return reply(createNetwork(tx, o))
	case *api.Secret:
		return reply(secrets().create(tx, o))
	case *api.Config:
		return reply(configs().create(tx, o))
	case *api.Cluster:
		return nil, errkind.New(errkind.Refused, "a cluster is created by its first manager").
			On(store.Clusters.Noun(), "")
	}
	return nil, unknownKind(given)
}

// Update replaces an object of any kind, or its spec alone. The version in the object is the
// one that the change is made from. The result is redacted.
//
// Of a cluster only the spec can be replaced, of secrets and configs only the labels; the
// rest of a cluster and the data of a secret may be left out.
func Update(tx *store.Tx, u *holdfast.Update) (*holdfast.Object, error) {
	given := Unwrap(u.GetObject())
	if given == nil {
		return nil, errkind.Field("object", "is empty")
	}
	meta := given.GetMeta()
	if u.SpecOnly {
		return updateSpec(tx, given, &meta.Version)
	}
	switch o := given.(type) {
	case *api.Node:
		return reply(updateNode(tx, o))
	case *api.Service:
		return reply(updateService(tx, o))
	case *api.Task:
		return reply(UpdateTask(tx, o))
	case *api.Network:
		return reply(updateNetwork(tx, o))
	}
	if err := checkVersion(tx, given, meta.Version.Index); err != nil {
		return nil, err
	}
	return updateSpec(tx, given, &meta.Version)
}

// updateSpec replaces the spec of an object by that of given.
func updateSpec(tx *store.Tx, given state.Object, version *api.Version) (*holdfast.Object, error) {
	switch o := given.(type) {
	case *api.Node:
		return reply(UpdateNode(tx, o.ID, version, &o.Spec))
	case *api.Service:
		return reply(UpdateService(tx, o.ID, version, &o.Spec))
	case *api.Task:
		old, err := forUpdate(tx, store.Tasks, o.ID, version)
		if err != nil {
			return nil, err
		}
		t := *old
		t.Spec = o.Spec
		return reply(UpdateTask(tx, &t))
	case *api.Network:
		old, err := forUpdate(tx, store.Networks, o.ID, version)
		if err != nil {
			return nil, err
		}
		n := *old
		n.Spec = o.Spec
		return reply(updateNetwork(tx, &n))
	case *api.Secret:
		return reply(UpdateSecret(tx, o.ID, version, &o.Spec))
	case *api.Config:
		return reply(UpdateConfig(tx, o.ID, version, &o.Spec))
	case *api.Cluster:
		return reply(UpdateCluster(tx, o.ID, version, &o.Spec, nil))
	}
	return nil, unknownKind(given)
}

// Remove removes an object of any kind and returns what it was, redacted. A cluster cannot be
// removed.
func Remove(tx *store.Tx, r *holdfast.Remove) (*holdfast.Object, error) {
	if r == nil {
		return nil, errkind.Field("remove", "is empty")
	}
	present, err := getKind(tx, r.Kind, r.ID)
	if err != nil {
		return nil, err
	}
	if r.Version != 0 {
		if err := checkVersion(tx, present, r.Version); err != nil {
			return nil, err
		}
	}
	switch present.(type) {
	case *api.Node:
		return reply(RemoveNode(tx, r.ID, false))
	case *api.Service:
		return reply(RemoveService(tx, r.ID))
	case *api.Task:
		return reply(RemoveTask(tx, r.ID))
	case *api.Network:
		return reply(RemoveNetwork(tx, r.ID))
	case *api.Secret:
		return reply(RemoveSecret(tx, r.ID))
	case *api.Config:
		return reply(RemoveConfig(tx, r.ID))
	}
	return nil, errkind.New(errkind.Refused, "a cluster cannot be removed").On(store.Clusters.Noun(), r.ID)
}

func reply[T Object[T]](o T, err error) (*holdfast.Object, error) {
	if err != nil {
		return nil, err
	}
	return Wrap(Redact(o)), nil
}

// getKind returns the object of a kind with an ID.
func getKind(tx store.ReadTx, kind holdfast.Kind, id string) (state.Object, error) {
	switch kind {
	case holdfast.Kind_KIND_NODE:
		return getAny(tx, store.Nodes, id)
	case holdfast.Kind_KIND_SERVICE:
		return getAny(tx, store.Services, id)
	case holdfast.Kind_KIND_TASK:
		return getAny(tx, store.Tasks, id)
	case holdfast.Kind_KIND_NETWORK:
		return getAny(tx, store.Networks, id)
	case holdfast.Kind_KIND_CLUSTER:
		return getAny(tx, store.Clusters, id)
	case holdfast.Kind_KIND_SECRET:
		return getAny(tx, store.Secrets, id)
	case holdfast.Kind_KIND_CONFIG:
		return getAny(tx, store.Configs, id)
	case holdfast.Kind_KIND_UNSPECIFIED:
		return nil, errkind.Field("kind", "is empty")
	}
	return nil, errkind.Field("kind", "has the unknown value %d", kind)
}

func getAny[T Object[T]](tx store.ReadTx, t *store.Table[T], id string) (state.Object, error) {
	if id == "" {
		return nil, errkind.Field("id", "is empty").On(t.Noun(), "")
	}
	o, err := Get(tx, t, id)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// checkVersion checks that an object was last changed at a revision.
func checkVersion(tx store.ReadTx, o state.Object, version uint64) error {
	kind, noun := KindOf(o)
	present, err := getKind(tx, kind, o.GetID())
	if err != nil {
		return err
	}
	meta := present.GetMeta()
	if meta.Version.Index == version {
		return nil
	}
	return (&errkind.Error{
		Kind: errkind.OutOfSequence, Seen: version, Now: meta.Version.Index, Field: "version",
		Msg:  fmt.Sprintf("out of sequence: it is at revision %d now, not %d", meta.Version.Index, version),
		Hint: "read it again and repeat the change",
	}).On(noun, o.GetID())
}

// KindOf returns the kind of an object and its noun; none for an object of no kind of ours.
func KindOf(o state.Object) (holdfast.Kind, string) {
	switch o.(type) {
	case *api.Node:
		return store.Nodes.Kind(), store.Nodes.Noun()
	case *api.Service:
		return store.Services.Kind(), store.Services.Noun()
	case *api.Task:
		return store.Tasks.Kind(), store.Tasks.Noun()
	case *api.Network:
		return store.Networks.Kind(), store.Networks.Noun()
	case *api.Cluster:
		return store.Clusters.Kind(), store.Clusters.Noun()
	case *api.Secret:
		return store.Secrets.Kind(), store.Secrets.Noun()
	case *api.Config:
		return store.Configs.Kind(), store.Configs.Noun()
	}
	return holdfast.Kind_KIND_UNSPECIFIED, ""
}

func unknownKind(o state.Object) error {
	return errkind.New(errkind.Internal, "object of the unknown type %T", o)
}
