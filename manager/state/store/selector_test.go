package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// picked is a selector beside what it must select, said without the store's indexes.
type picked[T any] struct {
	by   store.By
	what string
	does func(T) bool
}

// values are few, so that objects share them, and some are the beginning of others.
var values = []string{"", "a", "A", "ab", "b", "é", "a\x00b", "a\x01", "\x00"}

type dice struct{ *rand.Rand }

func (d dice) value() string { return values[d.IntN(len(values))] }

func (d dice) some() []string {
	var out []string
	for range d.IntN(4) {
		out = append(out, d.value())
	}
	return out
}

func (d dice) ports() (out []*api.PortConfig) {
	for range d.IntN(3) {
		out = append(out, &api.PortConfig{Protocol: api.PortConfig_Protocol(d.IntN(3)), PublishedPort: uint32(d.IntN(3)) * 80})
	}
	return out
}

func (d dice) task() api.TaskSpec {
	var s api.TaskSpec
	c := &api.ContainerSpec{}
	for _, id := range d.some() {
		c.Secrets = append(c.Secrets, &api.SecretReference{SecretID: id})
	}
	for _, id := range d.some() {
		c.Configs = append(c.Configs, &api.ConfigReference{ConfigID: id})
	}
	switch d.IntN(4) {
	case 0:
	case 1:
		s.Runtime = &api.TaskSpec_Attachment{Attachment: &api.NetworkAttachmentSpec{}}
	case 2:
		s.Runtime = &api.TaskSpec_Generic{Generic: &api.GenericRuntimeSpec{Kind: d.value()}}
	default:
		s.Runtime = &api.TaskSpec_Container{Container: c}
	}
	s.Networks = d.networks()
	return s
}

func (d dice) networks() (out []*api.NetworkAttachmentConfig) {
	for _, id := range d.some() {
		out = append(out, &api.NetworkAttachmentConfig{Target: id})
	}
	return out
}

func (d dice) annotations(n int) api.Annotations {
	a := api.Annotations{Name: fmt.Sprint(d.value(), "-", n), Labels: map[string]string{store.StackLabel: d.value(), store.ReleaseLabel: d.value()}}
	if d.IntN(3) == 0 {
		a.Labels = nil
	}
	return a
}

func (d dice) service(n int) *api.Service {
	o := &api.Service{Spec: api.ServiceSpec{Annotations: d.annotations(n), Task: d.task(), Networks: d.networks()}}
	if d.IntN(2) == 0 {
		o.Spec.Endpoint = &api.EndpointSpec{Ports: d.ports()}
	}
	if d.IntN(2) == 0 {
		o.Endpoint = &api.Endpoint{Ports: d.ports()}
	}
	return o
}

func (d dice) taskObject(int) *api.Task {
	states := []api.TaskState{api.TaskState_NEW, api.TaskState_RUNNING, api.TaskState_REMOVE}
	o := &api.Task{
		Spec: d.task(), ServiceID: d.value(), NodeID: d.value(), Slot: d.Uint64N(3), DesiredState: states[d.IntN(3)],
		Annotations: api.Annotations{Name: d.value()}, ServiceAnnotations: api.Annotations{Name: d.value()},
	}
	o.Status.State = states[d.IntN(3)]
	for _, id := range d.some() {
		a := &api.NetworkAttachment{}
		if id != "b" {
			a.Network = &api.Network{ID: id}
		}
		o.Networks = append(o.Networks, a)
	}
	return o
}

func (d dice) node(int) *api.Node {
	o := &api.Node{Role: api.NodeRole(d.IntN(2))}
	o.Spec.Membership = api.NodeSpec_Membership(d.IntN(2))
	o.Spec.Annotations.Name = d.value()
	if d.IntN(2) == 0 {
		o.Description = &api.NodeDescription{Hostname: d.value()}
	}
	return o
}

func (d dice) secret(n int) *api.Secret {
	return &api.Secret{Spec: api.SecretSpec{Annotations: d.annotations(n)}}
}

// fold is what "without regard to case" means here.
func fold(a, b string) bool { return strings.EqualFold(a, b) }

func named[T state.Object](name func(T) string) (out []picked[T]) {
	for _, v := range append([]string{"a-1", "A-2", "AB-3", "Host"}, values...) {
		out = append(out,
			picked[T]{store.ByName(v), fmt.Sprintf("name %q", v), func(o T) bool { return name(o) != "" && fold(name(o), v) }},
			picked[T]{store.ByNamePrefix(v), fmt.Sprintf("name %q…", v), func(o T) bool {
				return name(o) != "" && strings.HasPrefix(strings.ToLower(name(o)), strings.ToLower(v))
			}},
			picked[T]{store.ByID(v), fmt.Sprintf("ID %q", v), func(o T) bool { return o.GetID() == v }})
	}
	for _, v := range []string{"", "m", "m0000", "x"} {
		out = append(out, picked[T]{store.ByIDPrefix(v), fmt.Sprintf("ID %q…", v), func(o T) bool { return strings.HasPrefix(o.GetID(), v) }})
	}
	return append(out, picked[T]{store.All(), "all", func(T) bool { return true }})
}

func each[T any](by func(string) store.By, what string, has func(T) []string) (out []picked[T]) {
	for _, v := range values {
		out = append(out, picked[T]{by(v), fmt.Sprintf("%s %q", what, v), func(o T) bool { return v != "" && slices.Contains(has(o), v) }})
	}
	return out
}

func secretIDs(s *api.TaskSpec) (out []string) {
	for _, r := range s.GetContainer().GetSecrets() {
		out = append(out, r.SecretID)
	}
	return out
}

func configIDs(s *api.TaskSpec) (out []string) {
	for _, r := range s.GetContainer().GetConfigs() {
		out = append(out, r.ConfigID)
	}
	return out
}

func targets(n []*api.NetworkAttachmentConfig) (out []string) {
	for _, a := range n {
		out = append(out, a.Target)
	}
	return out
}

func runtimes(s *api.TaskSpec) []string {
	switch {
	case s.GetContainer() != nil:
		return []string{"container"}
	case s.GetAttachment() != nil:
		return []string{"attachment"}
	}
	return []string{s.GetGeneric().GetKind()}
}

func stack(a *api.Annotations) []string { return []string{a.Labels[store.StackLabel]} }

func pickedServices() []picked[*api.Service] {
	type S = *api.Service
	out := slices.Concat(
		named(func(o S) string { return o.Spec.Annotations.Name }),
		each(store.BySecretID, "secret", func(o S) []string { return secretIDs(&o.Spec.Task) }),
		each(store.ByConfigID, "config", func(o S) []string { return configIDs(&o.Spec.Task) }),
		each(store.ByRuntime, "runtime", func(o S) []string { return runtimes(&o.Spec.Task) }),
		each(store.ByStack, "stack", func(o S) []string { return stack(&o.Spec.Annotations) }),
		each(store.ByNetworkID, "network", func(o S) []string {
			if len(o.Spec.Task.Networks) > 0 {
				return targets(o.Spec.Task.Networks)
			}
			return targets(o.Spec.Networks)
		}),
		[]picked[S]{{store.ByRuntime("container"), "containers", func(o S) bool { return o.Spec.Task.GetContainer() != nil }}},
	)
	for protocol := range api.PortConfig_Protocol(3) {
		for _, port := range []uint32{0, 80, 160, 8} {
			out = append(out, picked[S]{store.ByPublishedPort(protocol, port), fmt.Sprint("port ", protocol, port), func(o S) bool {
				for _, p := range append(o.Spec.Endpoint.GetPorts(), o.Endpoint.GetPorts()...) {
					if port != 0 && p.PublishedPort == port && p.Protocol == protocol {
						return true
					}
				}
				return false
			}})
		}
	}
	return out
}

func pickedTasks() []picked[*api.Task] {
	type T = *api.Task
	out := slices.Concat(
		named(store.TaskName),
		each(store.BySecretID, "secret", func(o T) []string { return secretIDs(&o.Spec) }),
		each(store.ByConfigID, "config", func(o T) []string { return configIDs(&o.Spec) }),
		each(store.ByRuntime, "runtime", func(o T) []string { return runtimes(&o.Spec) }),
		each(store.ByServiceID, "service", func(o T) []string { return []string{o.ServiceID} }),
		each(store.ByNodeID, "node", func(o T) []string { return []string{o.NodeID} }),
		each(store.ByNetworkID, "network", func(o T) []string {
			ids := targets(o.Spec.Networks)
			for _, a := range o.Networks {
				ids = append(ids, a.GetNetwork().GetID())
			}
			return ids
		}),
	)
	for _, s := range []api.TaskState{api.TaskState_NEW, api.TaskState_RUNNING, api.TaskState_REMOVE, api.TaskState_FAILED} {
		out = append(out,
			picked[T]{store.ByTaskState(s), "state " + s.String(), func(o T) bool { return o.Status.State == s }},
			picked[T]{store.ByDesiredState(s), "desired " + s.String(), func(o T) bool { return o.DesiredState == s }})
	}
	for _, id := range values {
		for slot := range uint64(4) {
			out = append(out, picked[T]{store.BySlot(id, slot), fmt.Sprintf("slot %q %d", id, slot), func(o T) bool {
				return id != "" && o.ServiceID == id && o.Slot == slot
			}})
		}
	}
	return out
}

func pickedNodes() []picked[*api.Node] {
	type N = *api.Node
	out := named(func(o N) string {
		if o.Description.GetHostname() != "" {
			return o.Description.Hostname
		}
		return o.Spec.Annotations.Name
	})
	for v := range int32(3) {
		out = append(out,
			picked[N]{store.ByRole(api.NodeRole(v)), fmt.Sprint("role ", v), func(o N) bool { return o.Role == api.NodeRole(v) }},
			picked[N]{store.ByMembership(api.NodeSpec_Membership(v)), fmt.Sprint("membership ", v), func(o N) bool {
				return o.Spec.Membership == api.NodeSpec_Membership(v)
			}})
	}
	return out
}

func pickedSecrets() []picked[*api.Secret] {
	type S = *api.Secret
	return slices.Concat(
		named(func(o S) string { return o.Spec.Annotations.Name }),
		each(store.ByStack, "stack", func(o S) []string { return stack(&o.Spec.Annotations) }),
		each(store.ByRelease, "release", func(o S) []string { return []string{o.Spec.Annotations.Labels[store.ReleaseLabel]} }),
	)
}

// Every selector, and what And and Or make of them, selects what it says: on HEAD within a
// transaction, on the leader, on a follower, at a past revision and after a restore.
func TestSelectors(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(7, 7))}
	t.Run("services", func(t *testing.T) { selectors(t, d, store.Services, d.service, pickedServices()) })
	t.Run("tasks", func(t *testing.T) { selectors(t, d, store.Tasks, d.taskObject, pickedTasks()) })
	t.Run("nodes", func(t *testing.T) { selectors(t, d, store.Nodes, d.node, pickedNodes()) })
	t.Run("secrets", func(t *testing.T) { selectors(t, d, store.Secrets, d.secret, pickedSecrets()) })
}

func selectors[T object[T]](t *testing.T, d dice, table *store.Table[T], fresh func(int) T, picks []picked[T]) {
	for range 500 { // combinations, some of them of combinations
		var of []picked[T]
		var bys []store.By
		for range d.IntN(4) {
			of = append(of, picks[d.IntN(len(picks))])
			bys = append(bys, of[len(of)-1].by)
		}
		what := ""
		for _, p := range of {
			what += "," + p.what
		}
		if d.IntN(2) == 0 {
			picks = append(picks, picked[T]{store.And(bys...), "and(" + what + ")", func(o T) bool {
				return !slices.ContainsFunc(of, func(p picked[T]) bool { return !p.does(o) })
			}})
		} else {
			picks = append(picks, picked[T]{store.Or(bys...), "or(" + what + ")", func(o T) bool {
				return slices.ContainsFunc(of, func(p picked[T]) bool { return p.does(o) })
			}})
		}
	}
	check := func(where string, tx store.ReadTx) {
		t.Helper()
		all, err := table.FindAll(tx, store.All())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range picks {
			got, err := table.FindAll(tx, p.by)
			if err != nil {
				t.Fatalf("%s: %s: %v", where, p.what, err)
			}
			var want, have []string
			for _, o := range all {
				if p.does(o) {
					want = append(want, o.GetID())
				}
			}
			for _, o := range got {
				have = append(have, o.GetID())
			}
			slices.Sort(have)
			if !slices.Equal(have, want) {
				t.Fatalf("%s: %s: %v, want %v", where, p.what, have, want)
			}
		}
	}
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	ids := []string{}
	for round := range 3 {
		if _, err := s.Store.Update(t.Context(), func(tx *store.Tx) error {
			for n := range 25 {
				o, err := table.Create(tx, fresh(100*round+n))
				if err != nil {
					return err
				}
				ids = append(ids, o.GetID())
			}
			for i, id := range ids[:25*round] { // an index must forget what an object had before
				if err := turn(tx, table, fresh, id, i); err != nil {
					return err
				}
			}
			check("on HEAD", tx)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	check("on the leader", s.Store.Root())
	check("on a follower", follower(t, s, store.Options{}).Store.Root())
	restored := storetest.NewScript(t, "r", store.Options{})
	restored.Restore(storetest.Save(t, s.Store.Image()))
	check("restored", restored.Store.Root())
	for revision := range uint64(3) {
		past, err := restored.Store.At(revision)
		if err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprint("at ", revision), past)
	}
}

// turn removes an object, or gives it another's content.
func turn[T object[T]](tx *store.Tx, table *store.Table[T], fresh func(int) T, id string, n int) error {
	var zero T
	old := table.Get(tx, id)
	if old == zero {
		return nil // removed in an earlier round
	}
	if n%5 == 0 {
		_, err := table.Delete(tx, id)
		return err
	}
	next := fresh(10_000 + n)
	switch o := any(next).(type) {
	case *api.Service:
		o.ID, o.Meta = id, old.GetMeta()
	case *api.Task:
		o.ID, o.Meta = id, old.GetMeta()
	case *api.Node:
		o.ID, o.Meta = id, old.GetMeta()
	case *api.Secret:
		o.ID, o.Meta = id, old.GetMeta()
	}
	_, err := table.Update(tx, next)
	if errkind.Is(err, errkind.Exists) {
		return nil // turned to that name in the round before
	}
	return err
}
