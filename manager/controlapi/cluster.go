package controlapi

import (
	"context"

	"holdfast/api"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// GetCluster returns the cluster without its private keys.
func (s *Server) GetCluster(ctx context.Context, req *api.GetClusterRequest) (*api.GetClusterResponse, error) {
	o, err := get(ctx, s, store.Clusters, req.ClusterID)
	if err != nil {
		return nil, err
	}
	return &api.GetClusterResponse{Cluster: objects.RedactCluster(o)}, nil
}

// UpdateCluster replaces the spec of the cluster and makes the tokens anew that are asked for.
func (s *Server) UpdateCluster(ctx context.Context, req *api.UpdateClusterRequest) (*api.UpdateClusterResponse, error) {
	o, err := update(ctx, s, store.Clusters, req.ClusterID, req.ClusterVersion, req.Spec,
		func(tx *store.Tx, id string, version *api.Version, spec *api.ClusterSpec) (*api.Cluster, error) {
			return objects.UpdateCluster(tx, id, version, spec, req.Rotation)
		})
	if err != nil {
		return nil, err
	}
	return &api.UpdateClusterResponse{Cluster: objects.RedactCluster(o)}, nil
}

// ListClusters returns the cluster, if the filters keep it.
func (s *Server) ListClusters(ctx context.Context, req *api.ListClustersRequest) (*api.ListClustersResponse, error) {
	f := newFilter(req.Filters, func(o *api.Cluster) map[string]string { return o.Spec.Annotations.Labels })
	f.view = objects.RedactCluster
	p, err := list(ctx, s, store.Clusters, req, f)
	if err != nil {
		return nil, err
	}
	return &api.ListClustersResponse{Clusters: p.objects, Continue: p.next, Remaining: p.remaining}, nil
}
