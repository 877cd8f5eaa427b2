package main

import (
	"context"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
)

// present is the cluster's revision, whatever was done.
const present = 7

func (f *fake) cluster() *api.Cluster {
	return &api.Cluster{
		ID: "cluster000000000000000001", Meta: api.Meta{Version: api.Version{Index: f.version}}, Spec: *f.settings.Copy(),
		RootCA: api.RootCA{JoinTokens: api.JoinTokens{Manager: "SWMTKN-1-m", Worker: "SWMTKN-1-w"}},
	}
}

func (f *fake) GetCluster(context.Context, *api.GetClusterRequest) (*api.GetClusterResponse, error) {
	return &api.GetClusterResponse{Cluster: f.cluster()}, nil
}

func (f *fake) UpdateCluster(_ context.Context, r *api.UpdateClusterRequest) (*api.UpdateClusterResponse, error) {
	if f.conflict > 0 {
		f.conflict--
		f.version++
	}
	if f.version != r.ClusterVersion.GetIndex() {
		return nil, errkind.New(errkind.OutOfSequence, "changed meanwhile").On("cluster", r.ClusterID)
	}
	f.settings = *r.Spec.Copy()
	f.version++
	return &api.UpdateClusterResponse{Cluster: f.cluster()}, nil
}

func (f *fake) Compact(_ context.Context, r *holdfast.CompactRequest) (*holdfast.CompactResponse, error) {
	revision := r.Revision
	if revision == 0 {
		revision = present
	}
	if revision > present {
		return nil, &errkind.Error{
			Kind: errkind.OutOfRange, Seen: revision, Now: present, Msg: "future revision: the present one is lower",
		}
	}
	f.floor = max(f.floor, revision)
	return &holdfast.CompactResponse{Floor: f.floor}, nil
}

func (f *fake) Members(context.Context, *holdfast.MembersRequest) (*holdfast.MembersResponse, error) {
	return &holdfast.MembersResponse{Members: f.members}, nil
}

func (f *fake) Status(context.Context, *holdfast.StatusRequest) (*holdfast.StatusResponse, error) {
	return &holdfast.StatusResponse{
		ClusterID: f.cluster().ID, Leader: 1, Term: 2, Revision: present, Floor: f.floor, Members: f.members,
	}, nil
}
