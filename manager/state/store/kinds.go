package store

import (
	"strconv"
	"strings"

	"holdfast/api"
	"holdfast/api/holdfast"
)

// The tables, one for each kind of object. They are only read.
var (
	Nodes = &Table[*api.Node]{
		kind: holdfast.Kind_KIND_NODE, noun: "node",
		blank:     func() *api.Node { return &api.Node{} },
		id:        func(o *api.Node) *string { return &o.ID },
		meta:      func(o *api.Node) *api.Meta { return &o.Meta },
		name:      nodeName,
		specEqual: func(a, b *api.Node) bool { return a.Spec.Equal(&b.Spec) },
		wrap: func(o *api.Node) api.StoreAction {
			return api.StoreAction{Target: &api.StoreAction_Node{Node: o}}
		},
		unwrap: func(a *api.StoreAction) (*api.Node, bool) { o := a.GetNode(); return o, o != nil },
		indexes: append(common(nodeName),
			&index[*api.Node]{indexRole, func(o *api.Node) []string { return []string{enumKey(int32(o.Role))} }},
			&index[*api.Node]{indexMembership, func(o *api.Node) []string {
				return []string{enumKey(int32(o.Spec.Membership))}
			}},
		),
	}
	Services = &Table[*api.Service]{
		kind: holdfast.Kind_KIND_SERVICE, noun: "service", uniqueName: true,
		blank:     func() *api.Service { return &api.Service{} },
		id:        func(o *api.Service) *string { return &o.ID },
		meta:      func(o *api.Service) *api.Meta { return &o.Meta },
		name:      func(o *api.Service) string { return o.Spec.Annotations.Name },
		specEqual: func(a, b *api.Service) bool { return a.Spec.Equal(&b.Spec) },
		wrap: func(o *api.Service) api.StoreAction {
			return api.StoreAction{Target: &api.StoreAction_Service{Service: o}}
		},
		unwrap: func(a *api.StoreAction) (*api.Service, bool) { o := a.GetService(); return o, o != nil },
		indexes: append(common(func(o *api.Service) string { return o.Spec.Annotations.Name }),
			&index[*api.Service]{indexRuntime, func(o *api.Service) []string { return runtimeOf(&o.Spec.Task) }},
			&index[*api.Service]{indexNetwork, func(o *api.Service) []string { return networksOf(&o.Spec) }},
			&index[*api.Service]{indexSecret, func(o *api.Service) []string { return secretsOf(&o.Spec.Task) }},
			&index[*api.Service]{indexConfig, func(o *api.Service) []string { return configsOf(&o.Spec.Task) }},
			&index[*api.Service]{indexStack, func(o *api.Service) []string { return stackOf(&o.Spec.Annotations) }},
			&index[*api.Service]{indexPort, portsOf},
		),
	}
	Tasks = &Table[*api.Task]{
		kind: holdfast.Kind_KIND_TASK, noun: "task",
		blank:     func() *api.Task { return &api.Task{} },
		id:        func(o *api.Task) *string { return &o.ID },
		meta:      func(o *api.Task) *api.Meta { return &o.Meta },
		name:      TaskName,
		specEqual: func(a, b *api.Task) bool { return a.Spec.Equal(&b.Spec) },
		wrap: func(o *api.Task) api.StoreAction {
			return api.StoreAction{Target: &api.StoreAction_Task{Task: o}}
		},
		unwrap: func(a *api.StoreAction) (*api.Task, bool) { o := a.GetTask(); return o, o != nil },
		indexes: append(common(TaskName),
			&index[*api.Task]{indexRuntime, func(o *api.Task) []string { return runtimeOf(&o.Spec) }},
			&index[*api.Task]{indexService, func(o *api.Task) []string { return nonEmpty(o.ServiceID) }},
			&index[*api.Task]{indexNode, func(o *api.Task) []string { return nonEmpty(o.NodeID) }},
			&index[*api.Task]{indexSlot, func(o *api.Task) []string {
				if o.ServiceID == "" {
					return nil
				}
				return []string{slotKey(o.ServiceID, o.Slot)}
			}},
			&index[*api.Task]{indexDesiredState, func(o *api.Task) []string {
				return []string{enumKey(int32(o.DesiredState))}
			}},
			&index[*api.Task]{indexState, func(o *api.Task) []string {
				return []string{enumKey(int32(o.Status.State))}
			}},
			&index[*api.Task]{indexNetwork, taskNetworks},
			&index[*api.Task]{indexSecret, func(o *api.Task) []string { return secretsOf(&o.Spec) }},
			&index[*api.Task]{indexConfig, func(o *api.Task) []string { return configsOf(&o.Spec) }},
		),
	}
	Networks = &Table[*api.Network]{
		kind: holdfast.Kind_KIND_NETWORK, noun: "network", uniqueName: true,
		blank:     func() *api.Network { return &api.Network{} },
		id:        func(o *api.Network) *string { return &o.ID },
		meta:      func(o *api.Network) *api.Meta { return &o.Meta },
		name:      func(o *api.Network) string { return o.Spec.Annotations.Name },
		specEqual: func(a, b *api.Network) bool { return a.Spec.Equal(&b.Spec) },
		wrap: func(o *api.Network) api.StoreAction {
			return api.StoreAction{Target: &api.StoreAction_Network{Network: o}}
		},
		unwrap: func(a *api.StoreAction) (*api.Network, bool) { o := a.GetNetwork(); return o, o != nil },
		indexes: append(common(func(o *api.Network) string { return o.Spec.Annotations.Name }),
			&index[*api.Network]{indexStack, func(o *api.Network) []string { return stackOf(&o.Spec.Annotations) }},
		),
	}
	Clusters = &Table[*api.Cluster]{
		kind: holdfast.Kind_KIND_CLUSTER, noun: "cluster", uniqueName: true,
		blank:     func() *api.Cluster { return &api.Cluster{} },
		id:        func(o *api.Cluster) *string { return &o.ID },
		meta:      func(o *api.Cluster) *api.Meta { return &o.Meta },
		name:      func(o *api.Cluster) string { return o.Spec.Annotations.Name },
		specEqual: func(a, b *api.Cluster) bool { return a.Spec.Equal(&b.Spec) },
		wrap: func(o *api.Cluster) api.StoreAction {
			return api.StoreAction{Target: &api.StoreAction_Cluster{Cluster: o}}
		},
		unwrap:  func(a *api.StoreAction) (*api.Cluster, bool) { o := a.GetCluster(); return o, o != nil },
		indexes: common(func(o *api.Cluster) string { return o.Spec.Annotations.Name }),
	}
	Secrets = &Table[*api.Secret]{
		kind: holdfast.Kind_KIND_SECRET, noun: "secret", uniqueName: true,
		blank:     func() *api.Secret { return &api.Secret{} },
		id:        func(o *api.Secret) *string { return &o.ID },
		meta:      func(o *api.Secret) *api.Meta { return &o.Meta },
		name:      func(o *api.Secret) string { return o.Spec.Annotations.Name },
		specEqual: func(a, b *api.Secret) bool { return a.Spec.Equal(&b.Spec) },
		wrap: func(o *api.Secret) api.StoreAction {
			return api.StoreAction{Target: &api.StoreAction_Secret{Secret: o}}
		},
		unwrap: func(a *api.StoreAction) (*api.Secret, bool) { o := a.GetSecret(); return o, o != nil },
		indexes: append(common(func(o *api.Secret) string { return o.Spec.Annotations.Name }),
			&index[*api.Secret]{indexStack, func(o *api.Secret) []string { return stackOf(&o.Spec.Annotations) }},
			&index[*api.Secret]{indexRelease, func(o *api.Secret) []string { return nonEmpty(o.Spec.Annotations.Labels[ReleaseLabel]) }},
		),
	}
	Configs = &Table[*api.Config]{
		kind: holdfast.Kind_KIND_CONFIG, noun: "config", uniqueName: true,
		blank:     func() *api.Config { return &api.Config{} },
		id:        func(o *api.Config) *string { return &o.ID },
		meta:      func(o *api.Config) *api.Meta { return &o.Meta },
		name:      func(o *api.Config) string { return o.Spec.Annotations.Name },
		specEqual: func(a, b *api.Config) bool { return a.Spec.Equal(&b.Spec) },
		wrap: func(o *api.Config) api.StoreAction {
			return api.StoreAction{Target: &api.StoreAction_Config{Config: o}}
		},
		unwrap: func(a *api.StoreAction) (*api.Config, bool) { o := a.GetConfig(); return o, o != nil },
		indexes: append(common(func(o *api.Config) string { return o.Spec.Annotations.Name }),
			&index[*api.Config]{indexStack, func(o *api.Config) []string { return stackOf(&o.Spec.Annotations) }},
		),
	}
)

// tables are all tables of the store, in the order in which a snapshot holds them.
var tables = []ObjectStoreConfig{
	Clusters.config(), Nodes.config(), Networks.config(), Secrets.config(),
	Configs.config(), Services.config(), Tasks.config(),
}

// common gives the indexes that every kind has.
func common[T interface{ GetID() string }](name func(T) string) []*index[T] {
	return []*index[T]{
		{indexID, func(o T) []string { return []string{o.GetID()} }},
		{indexName, func(o T) []string { return nonEmpty(strings.ToLower(name(o))) }},
	}
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func stackOf(a *api.Annotations) []string { return nonEmpty(a.Labels[StackLabel]) }

// nodeName is the name that a node is found by: its hostname, or its spec's name before it
// has told its hostname.
func nodeName(n *api.Node) string {
	if n.Description != nil && n.Description.Hostname != "" {
		return n.Description.Hostname
	}
	return n.Spec.Annotations.Name
}

// TaskName is the name that a task is found by: its own, or SERVICE.SLOT.ID, where a task
// without a slot has its node's ID.
func TaskName(t *api.Task) string {
	if t.Annotations.Name != "" {
		return t.Annotations.Name
	}
	if t.ServiceAnnotations.Name == "" {
		return t.ID
	}
	place := t.NodeID
	if t.Slot != 0 {
		place = strconv.FormatUint(t.Slot, 10)
	}
	return t.ServiceAnnotations.Name + "." + place + "." + t.ID
}

func runtimeOf(s *api.TaskSpec) []string {
	switch r := s.Runtime.(type) {
	case *api.TaskSpec_Container:
		return []string{"container"}
	case *api.TaskSpec_Attachment:
		return []string{"attachment"}
	case *api.TaskSpec_Generic:
		return nonEmpty(r.Generic.GetKind())
	}
	return nil
}

// networksOf gives the networks that a service refers to: its tasks' ones, or where these
// name none the spec's own, an older form.
func networksOf(s *api.ServiceSpec) []string {
	networks := s.Task.Networks
	if len(networks) == 0 {
		networks = s.Networks
	}
	return unique(len(networks), func(i int) string { return networks[i].GetTarget() })
}

func taskNetworks(t *api.Task) []string {
	spec := t.Spec.Networks
	ids := make([]string, 0, len(t.Networks)+len(spec))
	for _, a := range t.Networks {
		ids = append(ids, a.GetNetwork().GetID())
	}
	for _, a := range spec {
		ids = append(ids, a.GetTarget())
	}
	return unique(len(ids), func(i int) string { return ids[i] })
}

// portsOf gives the ports that a service publishes, those that it asks for and those that it
// was given.
func portsOf(s *api.Service) []string {
	asked, given := s.Spec.Endpoint.GetPorts(), s.Endpoint.GetPorts()
	return unique(len(asked)+len(given), func(i int) string {
		if i < len(asked) {
			return portKey(asked[i].GetProtocol(), asked[i].GetPublishedPort())
		}
		p := given[i-len(asked)]
		return portKey(p.GetProtocol(), p.GetPublishedPort())
	})
}

func secretsOf(s *api.TaskSpec) []string {
	refs := s.GetContainer().GetSecrets()
	return unique(len(refs), func(i int) string { return refs[i].GetSecretID() })
}

func configsOf(s *api.TaskSpec) []string {
	refs := s.GetContainer().GetConfigs()
	return unique(len(refs), func(i int) string { return refs[i].GetConfigID() })
}

// unique gives n values in order, without empty ones and each once: memdb must not see a key
// of an object twice.
func unique(n int, at func(int) string) []string {
	if n == 0 {
		return nil
	}
	out := make([]string, 0, n)
next:
	for i := range n {
		v := at(i)
		if v == "" {
			continue
		}
		for _, have := range out {
			if have == v {
				continue next
			}
		}
		out = append(out, v)
	}
	return out
}
