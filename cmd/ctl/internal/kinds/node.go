package kinds

import (
	"context"
	"iter"

	"holdfast/api"
	"holdfast/client"
	"holdfast/internal/cli"
)

// Nodes returns the kind of nodes. A node is named by its hostname.
func Nodes() Kind[*api.Node] {
	return Kind[*api.Node]{
		Noun: "node",
		View: cli.View[*api.Node]{
			ID:   (*api.Node).GetID,
			Name: nodeName,
			Columns: []cli.Column[*api.Node]{
				column("ID", (*api.Node).GetID),
				column("HOSTNAME", nodeName),
				column("STATUS", func(n *api.Node) string { return lower(n.Status.State.String()) }),
				column("AVAILABILITY", func(n *api.Node) string { return lower(n.Spec.Availability.String()) }),
				column("MANAGER STATUS", managerStatus),
			},
		},
		Labels: func(n *api.Node) map[string]string { return n.Spec.Annotations.Labels },
		List: func(ctx context.Context, c *client.Client, q Query) iter.Seq2[*api.Node, error] {
			return c.Nodes(ctx, &api.ListNodesRequest_Filters{
				Names: q.Names, NamePrefixes: q.NamePrefixes, IDPrefixes: q.IDPrefixes, NodeLabels: q.Labels,
			})
		},
		Get: func(ctx context.Context, c *client.Client, id string) (*api.Node, error) {
			r, err := c.Control().GetNode(ctx, &api.GetNodeRequest{NodeID: id})
			return r.GetNode(), err
		},
	}
}

func nodeName(n *api.Node) string {
	if h := n.Description.GetHostname(); h != "" {
		return h
	}
	return n.Spec.Annotations.Name
}

func managerStatus(n *api.Node) string {
	switch {
	case n.ManagerStatus == nil:
		return ""
	case n.ManagerStatus.Leader:
		return "leader"
	}
	return lower(n.ManagerStatus.Reachability.String())
}
