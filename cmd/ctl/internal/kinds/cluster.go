package kinds

import (
	"context"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/cli"
)

// Clusters returns the kind of clusters, of which there is one.
func Clusters() Kind[*api.Cluster] {
	name := func(x *api.Cluster) string { return x.Spec.Annotations.Name }
	return Kind[*api.Cluster]{
		Noun:   "cluster",
		Sole:   true,
		Number: holdfast.Kind_KIND_CLUSTER,
		Unwrap: (*holdfast.Object).GetCluster,
		View: cli.View[*api.Cluster]{
			ID:   (*api.Cluster).GetID,
			Name: name,
			Columns: []cli.Column[*api.Cluster]{
				column("ID", (*api.Cluster).GetID),
				column("NAME", name),
				column("CREATED", func(x *api.Cluster) string { return FormatTime(x.Meta.CreatedAt) }),
			},
		},
		Labels: func(x *api.Cluster) map[string]string { return x.Spec.Annotations.Labels },
		Get: func(ctx context.Context, c *client.Client, id string) (*api.Cluster, error) {
			r, err := c.Control().GetCluster(ctx, &api.GetClusterRequest{ClusterID: id})
			return r.GetCluster(), err
		},
	}
}
