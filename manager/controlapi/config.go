package controlapi

import (
	"context"

	"holdfast/api"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// CreateConfig creates a config.
func (s *Server) CreateConfig(ctx context.Context, req *api.CreateConfigRequest) (*api.CreateConfigResponse, error) {
	o, err := create(ctx, s, store.Configs, req.Spec, objects.CreateConfig)
	if err != nil {
		return nil, err
	}
	return &api.CreateConfigResponse{Config: o}, nil
}

// GetConfig returns a config with its data.
func (s *Server) GetConfig(ctx context.Context, req *api.GetConfigRequest) (*api.GetConfigResponse, error) {
	o, err := get(ctx, s, store.Configs, req.ConfigID)
	if err != nil {
		return nil, err
	}
	return &api.GetConfigResponse{Config: o}, nil
}

// UpdateConfig replaces the labels of a config.
func (s *Server) UpdateConfig(ctx context.Context, req *api.UpdateConfigRequest) (*api.UpdateConfigResponse, error) {
	o, err := update(ctx, s, store.Configs, req.ConfigID, req.ConfigVersion, req.Spec, objects.UpdateConfig)
	if err != nil {
		return nil, err
	}
	return &api.UpdateConfigResponse{Config: o}, nil
}

// RemoveConfig removes a config that no service uses.
func (s *Server) RemoveConfig(ctx context.Context, req *api.RemoveConfigRequest) (*api.RemoveConfigResponse, error) {
	if err := remove(ctx, s, store.Configs, req.ConfigID, objects.RemoveConfig); err != nil {
		return nil, err
	}
	return &api.RemoveConfigResponse{}, nil
}

// ListConfigs returns configs with their data, in the order of their IDs.
func (s *Server) ListConfigs(ctx context.Context, req *api.ListConfigsRequest) (*api.ListConfigsResponse, error) {
	f := newFilter(req.Filters, func(o *api.Config) map[string]string { return o.Spec.Annotations.Labels })
	p, err := list(ctx, s, store.Configs, req, f)
	if err != nil {
		return nil, err
	}
	return &api.ListConfigsResponse{Configs: p.objects, Continue: p.next, Remaining: p.remaining}, nil
}
