package kinds

import (
	"context"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/cli"
)

// Nodes returns the kind of nodes. A node is named by its hostname.
func Nodes() Kind[*api.Node] {
	return Kind[*api.Node]{
		Noun:   "node",
		Number: holdfast.Kind_KIND_NODE,
		Unwrap: (*holdfast.Object).GetNode,
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
		State:  func(n *api.Node) string { return lower(n.Status.State.String()) },
		Labels: func(n *api.Node) map[string]string { return n.Spec.Annotations.Labels },
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
