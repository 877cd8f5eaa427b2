package kinds

import (
	"context"
	"iter"

	"holdfast/api"
	"holdfast/client"
	"holdfast/internal/cli"
)

// Clusters returns the kind of clusters, of which there is one.
func Clusters() Kind[*api.Cluster] {
	name := func(x *api.Cluster) string { return x.Spec.Annotations.Name }
	return Kind[*api.Cluster]{
		Noun: "cluster",
		View: cli.View[*api.Cluster]{
			ID:   (*api.Cluster).GetID,
			Name: name,
			Columns: []cli.Column[*api.Cluster]{
				column("ID", (*api.Cluster).GetID),
				column("NAME", name),
				column("CREATED", func(x *api.Cluster) string { return formatTime(x.Meta.CreatedAt) }),
			},
		},
		Labels: func(x *api.Cluster) map[string]string { return x.Spec.Annotations.Labels },
		List: func(ctx context.Context, c *client.Client, q Query) iter.Seq2[*api.Cluster, error] {
			return c.Clusters(ctx, &api.ListClustersRequest_Filters{
				Names: q.Names, NamePrefixes: q.NamePrefixes, IDPrefixes: q.IDPrefixes, Labels: q.Labels,
			})
		},
		Get: func(ctx context.Context, c *client.Client, id string) (*api.Cluster, error) {
			r, err := c.Control().GetCluster(ctx, &api.GetClusterRequest{ClusterID: id})
			return r.GetCluster(), err
		},
	}
}
