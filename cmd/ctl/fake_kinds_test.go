package main

import (
	"context"
	"slices"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
)

// newFake returns a manager of a cluster of three, with two nodes of one name and a task.
func newFake() *fake {
	f := &fake{}
	f.settings.Annotations.Name = "default"
	for _, hostname := range []string{"one", "twin", "twin"} {
		n := &api.Node{
			ID: f.newID("node"), Meta: f.meta(), Status: api.NodeStatus{State: api.NodeStatus_READY},
			Description: &api.NodeDescription{Hostname: hostname},
		}
		f.nodes = append(f.nodes, n)
		f.members = append(f.members, &holdfast.Member{
			RaftID: uint64(len(f.nodes)), NodeID: n.ID, Hostname: hostname, Addr: "127.0.0.1:1",
			Role: "voter", Leader: hostname == "one", Reachable: true, AppliedRevision: 7,
			MatchIndex: 9, State: "replicate", StateHash: "equal",
		})
	}
	f.nodes[0].ManagerStatus = &api.ManagerStatus{Leader: true}
	f.nodes[1].ManagerStatus = &api.ManagerStatus{Reachability: api.RaftMemberStatus_REACHABLE}
	f.begin()
	return f
}

func (f *fake) GetNetwork(_ context.Context, r *api.GetNetworkRequest) (*api.GetNetworkResponse, error) {
	n, err := find(f.networks, "network", r.NetworkID)
	return &api.GetNetworkResponse{Network: n}, err
}

func (f *fake) CreateNetwork(_ context.Context, r *api.CreateNetworkRequest) (*api.CreateNetworkResponse, error) {
	n := &api.Network{ID: f.newID("network"), Meta: f.meta(), Spec: *r.Spec}
	f.networks = append(f.networks, n)
	return &api.CreateNetworkResponse{Network: n}, nil
}

func (f *fake) RemoveNetwork(_ context.Context, r *api.RemoveNetworkRequest) (*api.RemoveNetworkResponse, error) {
	for _, s := range f.services {
		if slices.ContainsFunc(s.Spec.Task.Networks, func(n *api.NetworkAttachmentConfig) bool { return n.Target == r.NetworkID }) {
			return nil, errkind.New(errkind.Refused, "is in use by service %s", s.Spec.Annotations.Name).On("network", r.NetworkID)
		}
	}
	return &api.RemoveNetworkResponse{}, remove(&f.networks, "network", r.NetworkID)
}

// GetSecret sends the data, which a manager does not: ctl must not show it even so.
func (f *fake) GetSecret(_ context.Context, r *api.GetSecretRequest) (*api.GetSecretResponse, error) {
	s, err := find(f.secrets, "secret", r.SecretID)
	return &api.GetSecretResponse{Secret: s}, err
}

func (f *fake) CreateSecret(_ context.Context, r *api.CreateSecretRequest) (*api.CreateSecretResponse, error) {
	s := &api.Secret{ID: f.newID("secret"), Meta: f.meta(), Spec: *r.Spec}
	f.secrets = append(f.secrets, s)
	return &api.CreateSecretResponse{Secret: s}, nil
}

func (f *fake) RemoveSecret(_ context.Context, r *api.RemoveSecretRequest) (*api.RemoveSecretResponse, error) {
	return &api.RemoveSecretResponse{}, remove(&f.secrets, "secret", r.SecretID)
}

func (f *fake) GetConfig(_ context.Context, r *api.GetConfigRequest) (*api.GetConfigResponse, error) {
	c, err := find(f.configs, "config", r.ConfigID)
	return &api.GetConfigResponse{Config: c}, err
}

func (f *fake) CreateConfig(_ context.Context, r *api.CreateConfigRequest) (*api.CreateConfigResponse, error) {
	c := &api.Config{ID: f.newID("config"), Meta: f.meta(), Spec: *r.Spec}
	f.configs = append(f.configs, c)
	return &api.CreateConfigResponse{Config: c}, nil
}

func (f *fake) RemoveConfig(_ context.Context, r *api.RemoveConfigRequest) (*api.RemoveConfigResponse, error) {
	return &api.RemoveConfigResponse{}, remove(&f.configs, "config", r.ConfigID)
}

func (f *fake) GetNode(_ context.Context, r *api.GetNodeRequest) (*api.GetNodeResponse, error) {
	n, err := find(f.nodes, "node", r.NodeID)
	return &api.GetNodeResponse{Node: n}, err
}

func (f *fake) UpdateNode(_ context.Context, r *api.UpdateNodeRequest) (*api.UpdateNodeResponse, error) {
	n, err := find(f.nodes, "node", r.NodeID)
	if err == nil {
		n.Spec = *r.Spec
	}
	return &api.UpdateNodeResponse{Node: n}, err
}

func (f *fake) GetTask(_ context.Context, r *api.GetTaskRequest) (*api.GetTaskResponse, error) {
	t, err := find(f.tasks, "task", r.TaskID)
	return &api.GetTaskResponse{Task: t}, err
}

func (f *fake) RemoveTask(_ context.Context, r *api.RemoveTaskRequest) (*api.RemoveTaskResponse, error) {
	return &api.RemoveTaskResponse{}, remove(&f.tasks, "task", r.TaskID)
}

func (f *fake) RemoveMember(_ context.Context, r *holdfast.RemoveMemberRequest) (*holdfast.RemoveMemberResponse, error) {
	f.members = slices.DeleteFunc(f.members, func(m *holdfast.Member) bool { return m.RaftID == r.RaftID })
	return &holdfast.RemoveMemberResponse{}, nil
}
