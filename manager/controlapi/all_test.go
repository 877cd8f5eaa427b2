package controlapi_test

import (
	"bytes"
	"reflect"
	"testing"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

const canary = "canary-0b5e"

// message is a reply.
type message interface{ Marshal() ([]byte, error) }

// call is a call that succeeds, once those before it were made.
type call struct {
	rpc string
	do  func() (message, error)
}

// world has an object of each kind, and what must not be seen in each place that can hold it.
type world struct {
	*rig
	cluster *api.Cluster
	node    *api.Node
	network *api.Network
	service *api.Service
	task    *api.Task
	secret  *api.Secret
	config  *api.Config
}

func newWorld(t testing.TB) *world {
	w := &world{rig: newRig(t)}
	w.write(func(tx *store.Tx) (err error) {
		w.cluster, err = store.Clusters.Create(tx, &api.Cluster{
			Spec: api.ClusterSpec{
				Annotations: named("default"),
				CAConfig:    api.CAConfig{SigningCAKey: []byte(canary), SigningCACert: []byte(canary)},
			},
			RootCA: api.RootCA{
				CAKey: []byte(canary), RootRotation: &api.RootRotation{CAKey: []byte(canary)},
				JoinTokens: api.JoinTokens{Worker: "SWMTKN-1-d-w", Manager: "SWMTKN-1-d-m"},
			},
			UnlockKeys:           []*api.EncryptionKey{{Key: []byte(canary)}},
			NetworkBootstrapKeys: []*api.EncryptionKey{{Key: []byte(canary)}},
		})
		if err != nil {
			return err
		}
		w.node, err = store.Nodes.Create(tx, &api.Node{Spec: api.NodeSpec{Annotations: named("n1")}})
		if err != nil {
			return err
		}
		w.task, err = store.Tasks.Create(tx, &api.Task{
			Spec: serviceSpec("x").Task, NodeID: w.node.ID, ServiceAnnotations: named("x"),
		})
		return err
	})
	return w
}

func (w *world) clusterCalls() []call {
	return []call{
		{"GetCluster", func() (message, error) {
			return w.GetCluster(w.ctx, &api.GetClusterRequest{ClusterID: w.cluster.ID})
		}},
		{"ListClusters", func() (message, error) { return w.ListClusters(w.ctx, &api.ListClustersRequest{}) }},
		{"UpdateCluster", func() (message, error) {
			spec := w.cluster.Spec.Copy()
			spec.CAConfig = api.CAConfig{}
			return w.UpdateCluster(w.ctx, &api.UpdateClusterRequest{
				ClusterID: w.cluster.ID, ClusterVersion: &w.cluster.Meta.Version, Spec: spec,
				Rotation: &api.KeyRotation{WorkerJoinToken: true},
			})
		}},
		{"CreateNetwork", func() (message, error) {
			r, err := w.CreateNetwork(w.ctx, &api.CreateNetworkRequest{Spec: &api.NetworkSpec{Annotations: named("net")}})
			w.network = r.GetNetwork()
			return r, err
		}},
		{"GetNetwork", func() (message, error) {
			return w.GetNetwork(w.ctx, &api.GetNetworkRequest{NetworkID: w.network.ID})
		}},
		{"ListNetworks", func() (message, error) { return w.ListNetworks(w.ctx, &api.ListNetworksRequest{}) }},
	}
}

func (w *world) dataCalls() []call {
	return []call{
		{"CreateSecret", func() (message, error) {
			r, err := w.CreateSecret(w.ctx, &api.CreateSecretRequest{
				Spec: &api.SecretSpec{Annotations: named("secret"), Data: []byte(canary)},
			})
			w.secret = r.GetSecret()
			return r, err
		}},
		{"GetSecret", func() (message, error) { return w.GetSecret(w.ctx, &api.GetSecretRequest{SecretID: w.secret.ID}) }},
		{"ListSecrets", func() (message, error) { return w.ListSecrets(w.ctx, &api.ListSecretsRequest{}) }},
		{"UpdateSecret", func() (message, error) {
			return w.UpdateSecret(w.ctx, &api.UpdateSecretRequest{
				SecretID: w.secret.ID, SecretVersion: &w.secret.Meta.Version,
				Spec: &api.SecretSpec{Annotations: named("secret", "a", "b")},
			})
		}},
		{"CreateConfig", func() (message, error) {
			r, err := w.CreateConfig(w.ctx, &api.CreateConfigRequest{
				Spec: &api.ConfigSpec{Annotations: named("config"), Data: []byte("seen")},
			})
			w.config = r.GetConfig()
			return r, err
		}},
		{"GetConfig", func() (message, error) { return w.GetConfig(w.ctx, &api.GetConfigRequest{ConfigID: w.config.ID}) }},
		{"ListConfigs", func() (message, error) { return w.ListConfigs(w.ctx, &api.ListConfigsRequest{}) }},
		{"UpdateConfig", func() (message, error) {
			return w.UpdateConfig(w.ctx, &api.UpdateConfigRequest{
				ConfigID: w.config.ID, ConfigVersion: &w.config.Meta.Version,
				Spec: &api.ConfigSpec{Annotations: named("config", "a", "b")},
			})
		}},
	}
}

func (w *world) serviceCalls() []call {
	return []call{
		{"CreateService", func() (message, error) {
			spec := serviceSpec("web")
			spec.Task.GetContainer().Secrets = []*api.SecretReference{{
				SecretID: w.secret.ID, SecretName: "secret",
				Target: &api.SecretReference_File{File: &api.FileTarget{Name: "f"}},
			}}
			r, err := w.CreateService(w.ctx, &api.CreateServiceRequest{Spec: spec})
			w.service = r.GetService()
			return r, err
		}},
		{"GetService", func() (message, error) {
			return w.GetService(w.ctx, &api.GetServiceRequest{ServiceID: w.service.ID, InsertDefaults: true})
		}},
		{"ListServices", func() (message, error) { return w.ListServices(w.ctx, &api.ListServicesRequest{}) }},
		{"ListServiceStatuses", func() (message, error) {
			return w.ListServiceStatuses(w.ctx, &api.ListServiceStatusesRequest{Services: []string{w.service.ID}})
		}},
		{"UpdateService", func() (message, error) {
			spec := w.service.Spec.Copy()
			spec.GetReplicated().Replicas = 3
			return w.UpdateService(w.ctx, &api.UpdateServiceRequest{
				ServiceID: w.service.ID, ServiceVersion: &w.service.Meta.Version, Spec: spec,
			})
		}},
		{"GetTask", func() (message, error) { return w.GetTask(w.ctx, &api.GetTaskRequest{TaskID: w.task.ID}) }},
		{"ListTasks", func() (message, error) { return w.ListTasks(w.ctx, &api.ListTasksRequest{}) }},
		{"GetNode", func() (message, error) { return w.GetNode(w.ctx, &api.GetNodeRequest{NodeID: w.node.ID}) }},
		{"ListNodes", func() (message, error) { return w.ListNodes(w.ctx, &api.ListNodesRequest{}) }},
		{"UpdateNode", func() (message, error) {
			return w.UpdateNode(w.ctx, &api.UpdateNodeRequest{
				NodeID: w.node.ID, NodeVersion: &w.node.Meta.Version,
				Spec: &api.NodeSpec{Annotations: named("n1"), Availability: api.NodeSpec_DRAIN},
			})
		}},
	}
}

func (w *world) removeCalls() []call {
	return []call{
		{"RemoveService", func() (message, error) {
			return w.RemoveService(w.ctx, &api.RemoveServiceRequest{ServiceID: w.service.ID})
		}},
		{"RemoveTask", func() (message, error) { return w.RemoveTask(w.ctx, &api.RemoveTaskRequest{TaskID: w.task.ID}) }},
		{"RemoveNode", func() (message, error) { return w.RemoveNode(w.ctx, &api.RemoveNodeRequest{NodeID: w.node.ID}) }},
		{"RemoveNetwork", func() (message, error) {
			return w.RemoveNetwork(w.ctx, &api.RemoveNetworkRequest{Name: "NET"})
		}},
		{"RemoveSecret", func() (message, error) {
			return w.RemoveSecret(w.ctx, &api.RemoveSecretRequest{SecretID: w.secret.ID})
		}},
		{"RemoveConfig", func() (message, error) {
			return w.RemoveConfig(w.ctx, &api.RemoveConfigRequest{ConfigID: w.config.ID})
		}},
	}
}

// Every RPC of the service does its work, and no reply holds what must not be seen.
func TestNoReplyHoldsASecret(t *testing.T) {
	w := newWorld(t)
	called := map[string]bool{}
	for _, calls := range [][]call{w.clusterCalls(), w.dataCalls(), w.serviceCalls(), w.removeCalls()} {
		for _, c := range calls {
			called[c.rpc] = true
			reply, err := c.do()
			if err != nil {
				t.Fatalf("%s: %v", c.rpc, err)
			}
			b, err := reply.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(b, []byte(canary)) {
				t.Errorf("%s: the reply holds a secret", c.rpc)
			}
		}
	}
	for m := range reflect.TypeFor[api.ControlServer]().Methods() {
		if m.IsExported() && !called[m.Name] {
			t.Errorf("%s was not called", m.Name)
		}
	}
}

// A request without an ID is refused before anything else is looked at, and one with an ID
// that nothing has is not found.
func TestWithoutAnObject(t *testing.T) {
	w := newWorld(t)
	for field, do := range map[string][]func(id string) error{
		"node_id": {
			func(id string) error { _, err := w.GetNode(w.ctx, &api.GetNodeRequest{NodeID: id}); return err },
			func(id string) error { _, err := w.UpdateNode(w.ctx, &api.UpdateNodeRequest{NodeID: id}); return err },
			func(id string) error { _, err := w.RemoveNode(w.ctx, &api.RemoveNodeRequest{NodeID: id}); return err },
		},
		"task_id": {
			func(id string) error { _, err := w.GetTask(w.ctx, &api.GetTaskRequest{TaskID: id}); return err },
			func(id string) error { _, err := w.RemoveTask(w.ctx, &api.RemoveTaskRequest{TaskID: id}); return err },
		},
		"service_id": {
			func(id string) error {
				_, err := w.GetService(w.ctx, &api.GetServiceRequest{ServiceID: id})
				return err
			},
			func(id string) error {
				_, err := w.UpdateService(w.ctx, &api.UpdateServiceRequest{ServiceID: id})
				return err
			},
			func(id string) error {
				_, err := w.RemoveService(w.ctx, &api.RemoveServiceRequest{ServiceID: id})
				return err
			},
		},
		"network_id": {
			func(id string) error {
				_, err := w.GetNetwork(w.ctx, &api.GetNetworkRequest{NetworkID: id})
				return err
			},
			func(id string) error {
				_, err := w.RemoveNetwork(w.ctx, &api.RemoveNetworkRequest{NetworkID: id})
				return err
			},
		},
		"cluster_id": {
			func(id string) error {
				_, err := w.GetCluster(w.ctx, &api.GetClusterRequest{ClusterID: id})
				return err
			},
			func(id string) error {
				_, err := w.UpdateCluster(w.ctx, &api.UpdateClusterRequest{ClusterID: id})
				return err
			},
		},
		"secret_id": {
			func(id string) error { _, err := w.GetSecret(w.ctx, &api.GetSecretRequest{SecretID: id}); return err },
			func(id string) error {
				_, err := w.UpdateSecret(w.ctx, &api.UpdateSecretRequest{SecretID: id, Spec: &api.SecretSpec{}})
				return err
			},
			func(id string) error {
				_, err := w.RemoveSecret(w.ctx, &api.RemoveSecretRequest{SecretID: id})
				return err
			},
		},
		"config_id": {
			func(id string) error { _, err := w.GetConfig(w.ctx, &api.GetConfigRequest{ConfigID: id}); return err },
			func(id string) error {
				_, err := w.UpdateConfig(w.ctx, &api.UpdateConfigRequest{ConfigID: id, Spec: &api.ConfigSpec{}})
				return err
			},
			func(id string) error {
				_, err := w.RemoveConfig(w.ctx, &api.RemoveConfigRequest{ConfigID: id})
				return err
			},
		},
	} {
		for _, call := range do {
			want(t, call(""), errkind.Invalid, field)
			want(t, call("nothing"), errkind.NotFound, "")
		}
	}
	for _, do := range []func() error{
		func() error { _, err := w.CreateService(w.ctx, &api.CreateServiceRequest{}); return err },
		func() error { _, err := w.CreateNetwork(w.ctx, &api.CreateNetworkRequest{}); return err },
		func() error { _, err := w.CreateSecret(w.ctx, &api.CreateSecretRequest{}); return err },
		func() error { _, err := w.CreateConfig(w.ctx, &api.CreateConfigRequest{}); return err },
	} {
		want(t, do(), errkind.Invalid, "spec")
	}
}
