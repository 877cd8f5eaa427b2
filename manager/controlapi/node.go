package controlapi

import (
	"context"

	"holdfast/api"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// GetNode returns a node.
func (s *Server) GetNode(ctx context.Context, req *api.GetNodeRequest) (*api.GetNodeResponse, error) {
	o, err := get(ctx, s, store.Nodes, req.NodeID)
	if err != nil {
		return nil, err
	}
	return &api.GetNodeResponse{Node: o}, nil
}

// UpdateNode replaces the spec of a node.
func (s *Server) UpdateNode(ctx context.Context, req *api.UpdateNodeRequest) (*api.UpdateNodeResponse, error) {
	o, err := update(ctx, s, store.Nodes, req.NodeID, req.NodeVersion, req.Spec, objects.UpdateNode)
	if err != nil {
		return nil, err
	}
	return &api.UpdateNodeResponse{Node: o}, nil
}

// RemoveNode removes a node and makes its unfinished tasks orphans.
func (s *Server) RemoveNode(ctx context.Context, req *api.RemoveNodeRequest) (*api.RemoveNodeResponse, error) {
	err := remove(ctx, s, store.Nodes, req.NodeID, func(tx *store.Tx, id string) (*api.Node, error) {
		return objects.RemoveNode(tx, id, req.Force)
	})
	if err != nil {
		return nil, err
	}
	return &api.RemoveNodeResponse{}, nil
}

// ListNodes returns nodes in the order of their IDs. Labels are those of a node's engine,
// node labels those of its spec, and roles the observed ones.
func (s *Server) ListNodes(ctx context.Context, req *api.ListNodesRequest) (*api.ListNodesResponse, error) {
	f := newFilter(req.Filters, func(o *api.Node) map[string]string { return o.Description.GetEngine().GetLabels() })
	f.labels(req.Filters.GetNodeLabels(), func(o *api.Node) map[string]string { return o.Spec.Annotations.Labels })
	anyEnum(f, "roles", req.Filters.GetRoles(), api.NodeRole_name, store.ByRole)
	anyEnum(f, "memberships", req.Filters.GetMemberships(), api.NodeSpec_Membership_name, store.ByMembership)
	p, err := list(ctx, s, store.Nodes, req, f)
	if err != nil {
		return nil, err
	}
	return &api.ListNodesResponse{Nodes: p.objects, Continue: p.next, Remaining: p.remaining}, nil
}
