package objects

import (
	"fmt"
	"slices"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// resolveNetworks checks the networks that a spec asks for and returns them by ID: a target
// is the ID of a network, or its name. What it is given is not changed.
func resolveNetworks(
	tx store.ReadTx, path string, attachments []*api.NetworkAttachmentConfig,
) ([]*api.NetworkAttachmentConfig, error) {
	resolved := attachments
	seen := map[string]bool{}
	for i, a := range attachments {
		at := fmt.Sprintf("%s[%d].target", path, i)
		n, err := targetNetwork(tx, at, a.GetTarget())
		if err != nil {
			return nil, err
		}
		switch {
		case n.Spec.Ingress:
			return nil, errkind.Field(at, "%s is the ingress network, which services cannot be attached to",
				n.Spec.Annotations.Name).WithHint("publish a port instead")
		case seen[n.ID]:
			return nil, errkind.Field(at, "network %s is there twice", n.Spec.Annotations.Name)
		}
		seen[n.ID] = true
		if n.ID == a.Target {
			continue
		}
		if &resolved[0] == &attachments[0] {
			resolved = slices.Clone(attachments)
		}
		resolved[i] = a.Copy()
		resolved[i].Target = n.ID
	}
	return resolved, nil
}

func targetNetwork(tx store.ReadTx, at, target string) (*api.Network, error) {
	if target == "" {
		return nil, errkind.Field(at, "is empty")
	}
	if n := store.Networks.Get(tx, target); n != nil {
		return n, nil
	}
	n, err := FindByName(tx, store.Networks, target)
	if errkind.Is(err, errkind.NotFound) {
		return nil, errkind.Field(at, "network %s not found", target).WithHint("create the network first")
	}
	return n, err
}
