package compose

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"holdfast/api"
	"holdfast/api/holdfast"
)

const (
	defaultNetwork       = "default" // key of the network of services that name none
	defaultNetworkDriver = "overlay"
	defaultIPAMDriver    = "default"
)

// predefined tells the networks that every Docker node has. They know no aliases.
func predefined(name string) bool {
	return slices.Contains([]string{"bridge", "default", "host", "none"}, name)
}

// attachments puts a service in its networks, or in the stack's default network.
// With network_mode it is in none: the cluster has no network to stand for the mode.
func (c *converter) attachments(path, key string, s types.ServiceConfig) ([]*api.NetworkAttachmentConfig, error) {
	networks := s.Networks
	switch {
	case s.NetworkMode != "" && len(networks) > 0:
		return nil, fmt.Errorf("%s: network_mode and networks exclude each other", path)
	case s.NetworkMode == "none":
		return nil, nil
	case s.NetworkMode != "":
		c.said.droppedBecause(path+".network_mode", "the service is in no network")
		return nil, nil
	case len(networks) == 0:
		networks = map[string]*types.ServiceNetworkConfig{defaultNetwork: nil}
	}
	var list []*api.NetworkAttachmentConfig
	for _, network := range sortedKeys(networks) {
		declared, ok := c.project.Networks[network]
		if !ok && network != defaultNetwork {
			return nil, fmt.Errorf("%s.networks.%s: there is no such network in the files", path, network)
		}
		c.usedNetworks[network] = true
		attachment := &api.NetworkAttachmentConfig{Target: c.networkName(network, declared)}
		own := networks[network]
		if own != nil {
			attachment.Aliases = own.Aliases
			attachment.DriverAttachmentOpts = own.DriverOpts
		}
		if own.ServiceNameAliasEnabled() && !predefined(attachment.Target) {
			attachment.Aliases = append(slices.Clip(attachment.Aliases), key)
		}
		list = append(list, attachment)
	}
	slices.SortStableFunc(list, func(a, b *api.NetworkAttachmentConfig) int {
		return strings.Compare(a.Target, b.Target)
	})
	return list, nil
}

func (c *converter) networkName(key string, n types.NetworkConfig) string {
	if n.External && n.Name == "" {
		return key
	}
	return c.scoped(key, n.Name)
}

// networks makes those that services are in; external ones count even if nobody is in them.
func (c *converter) networks(r *holdfast.DeployRequest) error {
	all := map[string]types.NetworkConfig{}
	if c.usedNetworks[defaultNetwork] {
		all[defaultNetwork] = types.NetworkConfig{}
	}
	for key, n := range c.project.Networks {
		if !bool(n.External) && !c.usedNetworks[key] {
			c.said.droppedBecause("networks."+key, "no service is in it")
			continue
		}
		all[key] = n
	}
	for _, key := range sortedKeys(all) {
		n := all[key]
		if n.External {
			r.ExternalNetworks = append(r.ExternalNetworks, c.networkName(key, n))
			continue
		}
		spec, err := c.network(key, n)
		if err != nil {
			return err
		}
		r.Networks = append(r.Networks, spec)
	}
	sortBy(r.Networks, func(n *api.NetworkSpec) string { return n.Annotations.Name })
	r.ExternalNetworks = distinct(r.ExternalNetworks)
	return nil
}

func (c *converter) network(key string, n types.NetworkConfig) (api.NetworkSpec, error) {
	name, err := c.claim("networks", key, n.Name, dnsNaming())
	if err != nil {
		return api.NetworkSpec{}, err
	}
	spec := api.NetworkSpec{
		Annotations:  api.Annotations{Name: name, Labels: c.labels(n.Labels)},
		DriverConfig: &api.Driver{Name: n.Driver, Options: n.DriverOpts},
		Internal:     n.Internal,
		Attachable:   n.Attachable,
		Ipv6Enabled:  n.EnableIPv6 != nil && *n.EnableIPv6,
	}
	if n.Driver == "" {
		spec.DriverConfig.Name = defaultNetworkDriver
	}
	spec.IPAM, err = ipam("networks."+key+".ipam", n.Ipam)
	return spec, err
}

func ipam(path string, i types.IPAMConfig) (*api.IPAMOptions, error) {
	if i.Driver == "" && len(i.Config)+len(i.Options) == 0 {
		return nil, nil
	}
	var f fallible
	spec := &api.IPAMOptions{Driver: &api.Driver{Name: i.Driver, Options: i.Options}}
	if i.Driver == "" {
		spec.Driver.Name = defaultIPAMDriver
	}
	for n, pool := range i.Config {
		if pool == nil {
			continue
		}
		at := fmt.Sprintf("%s.config[%d]", path, n)
		f.prefix(at+".subnet", pool.Subnet)
		f.prefix(at+".ip_range", pool.IPRange)
		if _, err := netip.ParseAddr(pool.Gateway); pool.Gateway != "" && err != nil {
			f.fail("%s.gateway: %q is not an IP address", at, pool.Gateway)
		}
		spec.Configs = append(spec.Configs, &api.IPAMConfig{
			Subnet: pool.Subnet, Range: pool.IPRange, Gateway: pool.Gateway,
			Reserved: pool.AuxiliaryAddresses,
		})
	}
	return spec, f.err
}

// prefix checks a range of addresses that may be left out.
func (f *fallible) prefix(path, s string) {
	if _, err := netip.ParsePrefix(s); s != "" && err != nil {
		f.fail("%s: %q is not a range of addresses, as in 10.0.9.0/24", path, s)
	}
}
