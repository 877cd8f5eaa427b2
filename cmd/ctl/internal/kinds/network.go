package kinds

import (
	"context"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/cli"
)

// Networks returns the kind of networks.
func Networks() Kind[*api.Network] {
	name := func(n *api.Network) string { return n.Spec.Annotations.Name }
	return Kind[*api.Network]{
		Noun:   "network",
		Number: holdfast.Kind_KIND_NETWORK,
		Unwrap: (*holdfast.Object).GetNetwork,
		View: cli.View[*api.Network]{
			ID:   (*api.Network).GetID,
			Name: name,
			Columns: []cli.Column[*api.Network]{
				column("ID", (*api.Network).GetID),
				column("NAME", name),
				column("DRIVER", func(n *api.Network) string { return n.Spec.DriverConfig.GetName() }),
				column("LABELS", func(n *api.Network) string { return formatLabels(n.Spec.Annotations.Labels) }),
			},
		},
		Labels: func(n *api.Network) map[string]string { return n.Spec.Annotations.Labels },
		Get: func(ctx context.Context, c *client.Client, id string) (*api.Network, error) {
			r, err := c.Control().GetNetwork(ctx, &api.GetNetworkRequest{NetworkID: id})
			return r.GetNetwork(), err
		},
		Remove: func(ctx context.Context, c *client.Client, id string) error {
			_, err := c.Control().RemoveNetwork(ctx, &api.RemoveNetworkRequest{NetworkID: id})
			return err
		},
	}
}
