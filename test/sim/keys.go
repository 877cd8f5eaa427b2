package sim

import (
	"fmt"
	"strconv"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// Objects of the simulation: keys are what the clients fight over, accounts hold money that is
// only moved, and the counter is what batches count up.
const (
	keys     = 9
	accounts = 3
	money    = 100 // of each account in the beginning
)

func keyID(i int) string     { return fmt.Sprintf("k%d", i) }
func accountID(i int) string { return fmt.Sprintf("a%d", i) }

const counterID = "c0"

// noteOp and noteValue are the labels of an object: which operation wrote it last, and what.
const (
	noteOp    = "op"
	noteValue = "value"
)

// Seen is what was seen of an object.
type Seen struct {
	Version uint64 `json:",omitempty"` // 0: it is not there
	Value   string `json:",omitempty"`
	Op      string `json:",omitempty"`
}

func (s Seen) number() int {
	n, err := strconv.Atoi(s.Value)
	if err != nil {
		return 0
	}
	return n
}

// kind is a kind of object, as the operations use it.
type kind interface {
	create(tx *store.Tx, id string, s Seen) error
	// put replaces value and op of what is there; with a version it must be the present one.
	put(tx *store.Tx, id string, version uint64, s Seen) error
	remove(tx *store.Tx, id string) error
	get(tx store.ReadTx, id string) Seen
	see(o state.Object) Seen
	// find counts the objects that begin with an ID, by each selector that finds them all.
	find(tx store.ReadTx, id string) ([]int, error)
}

// object is what the store asks of a kind's type.
type object[T any] interface {
	comparable
	state.Object
	Copy() T
	Equal(any) bool
}

type kindOf[T object[T]] struct {
	table *store.Table[T]
	blank func(id string) T
	meta  func(T) *api.Meta
	notes func(T) *api.Annotations
	by    []store.By // selectors that find every object made by blank
}

func (k kindOf[T]) create(tx *store.Tx, id string, s Seen) error {
	o := k.blank(id)
	n := k.notes(o)
	n.Name, n.Labels = id, map[string]string{noteOp: s.Op, noteValue: s.Value}
	_, err := k.table.Create(tx, o)
	return err
}

func (k kindOf[T]) put(tx *store.Tx, id string, version uint64, s Seen) error {
	var zero T
	o := k.table.Get(tx, id)
	if o == zero {
		return errkind.New(errkind.NotFound, "not found").On(k.table.Noun(), id)
	}
	o = o.Copy()
	if version != 0 {
		k.meta(o).Version.Index = version
	}
	k.notes(o).Labels = map[string]string{noteOp: s.Op, noteValue: s.Value}
	_, err := k.table.Update(tx, o)
	return err
}

func (k kindOf[T]) remove(tx *store.Tx, id string) error {
	_, err := k.table.Delete(tx, id)
	return err
}

func (k kindOf[T]) get(tx store.ReadTx, id string) Seen {
	var zero T
	if o := k.table.Get(tx, id); o != zero {
		return k.see(o)
	}
	return Seen{}
}

func (k kindOf[T]) see(so state.Object) Seen {
	o, ok := so.(T)
	if !ok {
		return Seen{}
	}
	labels := k.notes(o).Labels
	return Seen{Version: k.meta(o).Version.Index, Value: labels[noteValue], Op: labels[noteOp]}
}

func (k kindOf[T]) find(tx store.ReadTx, id string) ([]int, error) {
	var counts []int
	for _, by := range append(k.by, store.All(), store.Or(store.ByName(id), store.ByNamePrefix(id))) {
		found, err := k.table.FindAll(tx, store.And(by, store.ByIDPrefix(id)))
		if err != nil {
			return nil, err
		}
		counts = append(counts, len(found))
	}
	return counts, nil
}

// referTo is what services and tasks refer to.
func referTo() api.TaskSpec {
	return api.TaskSpec{
		Networks: []*api.NetworkAttachmentConfig{{Target: "net"}},
		Runtime: &api.TaskSpec_Container{Container: &api.ContainerSpec{
			Secrets: []*api.SecretReference{{SecretID: "secret"}}, Configs: []*api.ConfigReference{{ConfigID: "config"}},
		}},
	}
}

// byReference selects what refers to that.
func byReference() []store.By {
	return []store.By{store.ByNetworkID("net"), store.BySecretID("secret"), store.ByConfigID("config"), store.ByRuntime("container")}
}

// kinds are the kinds of object, in the order of their numbers.
func kinds() []kind {
	return []kind{
		kindOf[*api.Service]{
			store.Services, func(id string) *api.Service {
				return &api.Service{ID: id, Spec: api.ServiceSpec{Task: referTo()}}
			},
			func(o *api.Service) *api.Meta { return &o.Meta }, func(o *api.Service) *api.Annotations { return &o.Spec.Annotations },
			byReference(),
		},
		kindOf[*api.Task]{
			store.Tasks, func(id string) *api.Task {
				return &api.Task{ID: id, ServiceID: "service", NodeID: "node", Slot: 1, Spec: referTo()}
			},
			func(o *api.Task) *api.Meta { return &o.Meta }, func(o *api.Task) *api.Annotations { return &o.Annotations },
			append(byReference(), store.ByServiceID("service"), store.ByNodeID("node"), store.BySlot("service", 1),
				store.ByTaskState(api.TaskState_NEW), store.ByDesiredState(api.TaskState_NEW)),
		},
		kindOf[*api.Node]{
			store.Nodes, func(id string) *api.Node { return &api.Node{ID: id} },
			func(o *api.Node) *api.Meta { return &o.Meta }, func(o *api.Node) *api.Annotations { return &o.Spec.Annotations },
			[]store.By{store.ByRole(api.NodeRole_WORKER), store.ByMembership(api.NodeSpec_PENDING)},
		},
		kindOf[*api.Secret]{
			store.Secrets, func(id string) *api.Secret { return &api.Secret{ID: id} },
			func(o *api.Secret) *api.Meta { return &o.Meta }, func(o *api.Secret) *api.Annotations { return &o.Spec.Annotations },
			nil,
		},
		kindOf[*api.Config]{
			store.Configs, func(id string) *api.Config { return &api.Config{ID: id} },
			func(o *api.Config) *api.Meta { return &o.Meta }, func(o *api.Config) *api.Annotations { return &o.Spec.Annotations },
			nil,
		},
		kindOf[*api.Network]{
			store.Networks, func(id string) *api.Network { return &api.Network{ID: id} },
			func(o *api.Network) *api.Meta { return &o.Meta }, func(o *api.Network) *api.Annotations { return &o.Spec.Annotations },
			nil,
		},
		kindOf[*api.Cluster]{
			store.Clusters, func(id string) *api.Cluster { return &api.Cluster{ID: id} },
			func(o *api.Cluster) *api.Meta { return &o.Meta }, func(o *api.Cluster) *api.Annotations { return &o.Spec.Annotations },
			nil,
		},
	}
}

// number is the place of a kind among kinds.
func number(k holdfast.Kind) int {
	for i, of := range []holdfast.Kind{
		holdfast.Kind_KIND_SERVICE, holdfast.Kind_KIND_TASK, holdfast.Kind_KIND_NODE, holdfast.Kind_KIND_SECRET,
		holdfast.Kind_KIND_CONFIG, holdfast.Kind_KIND_NETWORK, holdfast.Kind_KIND_CLUSTER,
	} {
		if of == k {
			return i
		}
	}
	panic(fmt.Sprintf("sim: kind %v", k))
}
