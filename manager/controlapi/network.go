package controlapi

import (
	"context"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// CreateNetwork creates a network.
func (s *Server) CreateNetwork(ctx context.Context, req *api.CreateNetworkRequest) (*api.CreateNetworkResponse, error) {
	o, err := create(ctx, s, store.Networks, req.Spec, objects.CreateNetwork)
	if err != nil {
		return nil, err
	}
	return &api.CreateNetworkResponse{Network: o}, nil
}

// GetNetwork returns a network by ID, or else by name.
func (s *Server) GetNetwork(ctx context.Context, req *api.GetNetworkRequest) (*api.GetNetworkResponse, error) {
	if err := needNetwork(req); err != nil {
		return nil, err
	}
	tx, err := s.reader.Read(ctx)
	if err != nil {
		return nil, err
	}
	o, err := findNetwork(tx, req)
	if err != nil {
		return nil, err
	}
	return &api.GetNetworkResponse{Network: o}, nil
}

// RemoveNetwork removes a network by ID, or else by name.
func (s *Server) RemoveNetwork(ctx context.Context, req *api.RemoveNetworkRequest) (*api.RemoveNetworkResponse, error) {
	if err := needNetwork(req); err != nil {
		return nil, err
	}
	_, err := s.store.Update(ctx, func(tx *store.Tx) error {
		o, err := findNetwork(tx, req)
		if err != nil {
			return err
		}
		_, err = objects.RemoveNetwork(tx, o.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.RemoveNetworkResponse{}, nil
}

// ListNetworks returns networks in the order of their IDs.
func (s *Server) ListNetworks(ctx context.Context, req *api.ListNetworksRequest) (*api.ListNetworksResponse, error) {
	f := newFilter(req.Filters, func(o *api.Network) map[string]string { return o.Spec.Annotations.Labels })
	p, err := list(ctx, s, store.Networks, req, f)
	if err != nil {
		return nil, err
	}
	return &api.ListNetworksResponse{Networks: p.objects, Continue: p.next, Remaining: p.remaining}, nil
}

// networkRequest names a network by ID or by name.
type networkRequest interface {
	GetName() string
	GetNetworkID() string
}

func needNetwork(req networkRequest) error {
	if req.GetName() == "" && req.GetNetworkID() == "" {
		return errkind.Field("network_id", "is empty").WithHint("give network_id or name")
	}
	return nil
}

func findNetwork(tx store.ReadTx, req networkRequest) (*api.Network, error) {
	if id := req.GetNetworkID(); id != "" {
		return objects.Get(tx, store.Networks, id)
	}
	return objects.FindByName(tx, store.Networks, req.GetName())
}
