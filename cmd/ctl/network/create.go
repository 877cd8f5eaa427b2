package network

import (
	"context"
	"net/netip"

	"github.com/spf13/cobra"

	"holdfast/api"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/cmd/ctl/internal/values"
	"holdfast/internal/cli"
)

type createOptions struct {
	driver, ipamDriver                   string
	labels, opts                         []string
	subnets, gateways, ranges            []string
	attachable, internal, ingress, useV6 bool
}

func newCreate(env *command.Env) *cobra.Command {
	o := &createOptions{}
	cmd := &cobra.Command{
		Use:   "create [flags] NAME",
		Short: "Create a network",
		Args:  command.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, c *client.Client, args []string) error {
			return runCreate(ctx, env, c, o, args[0])
		}),
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.driver, "driver", "d", "overlay", "driver of the network")
	fs.StringArrayVar(&o.opts, "opt", nil, "option of the driver, `KEY=VALUE`")
	fs.StringArrayVarP(&o.labels, "label", "l", nil, "label, `KEY[=VALUE]`")
	fs.StringArrayVar(&o.subnets, "subnet", nil, "subnet, such as 10.1.0.0/16")
	fs.StringArrayVar(&o.gateways, "gateway", nil, "gateway, within a subnet")
	fs.StringArrayVar(&o.ranges, "ip-range", nil, "part of a subnet that addresses are taken from")
	fs.StringVar(&o.ipamDriver, "ipam-driver", "", "driver that manages addresses")
	fs.BoolVar(&o.attachable, "attachable", false, "containers that no service runs may be attached")
	fs.BoolVar(&o.internal, "internal", false, "no way out of the network")
	fs.BoolVar(&o.ingress, "ingress", false, "the network of published ports")
	fs.BoolVar(&o.useV6, "ipv6", false, "addresses of version 6 as well")
	return cmd
}

func runCreate(ctx context.Context, env *command.Env, c *client.Client, o *createOptions, name string) error {
	spec, err := o.spec(name)
	if err != nil {
		return err
	}
	r, err := c.Control().CreateNetwork(ctx, &api.CreateNetworkRequest{Spec: spec})
	if err != nil {
		return err
	}
	return cli.PrintCreated(env.Printer(), kinds.Networks().View, r.Network)
}

func (o *createOptions) spec(name string) (*api.NetworkSpec, error) {
	labels, err := values.ParseLabels(o.labels)
	if err != nil {
		return nil, cli.Usagef("--label: %v", err)
	}
	opts, err := values.ParseLabels(o.opts)
	if err != nil {
		return nil, cli.Usagef("--opt: %v", err)
	}
	spec := &api.NetworkSpec{
		Annotations:  api.Annotations{Name: name, Labels: labels},
		DriverConfig: &api.Driver{Name: o.driver, Options: opts},
		Attachable:   o.attachable, Internal: o.internal, Ingress: o.ingress, Ipv6Enabled: o.useV6,
	}
	pools, err := o.pools()
	if err != nil {
		return nil, err
	}
	if o.ipamDriver != "" || len(pools) > 0 {
		spec.IPAM = &api.IPAMOptions{Configs: pools}
		if o.ipamDriver != "" {
			spec.IPAM.Driver = &api.Driver{Name: o.ipamDriver}
		}
	}
	return spec, nil
}

// pools puts each gateway and range into the subnet that holds it.
func (o *createOptions) pools() ([]*api.IPAMConfig, error) {
	var pools []*api.IPAMConfig
	var subnets []netip.Prefix
	for _, s := range o.subnets {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, cli.Usagef("--subnet: %q is not a subnet such as 10.1.0.0/16", s)
		}
		family := api.IPAMConfig_IPV4
		if p.Addr().Is6() {
			family = api.IPAMConfig_IPV6
		}
		subnets = append(subnets, p)
		pools = append(pools, &api.IPAMConfig{Family: family, Subnet: s})
	}
	within := func(a netip.Addr) *api.IPAMConfig {
		for i, p := range subnets {
			if p.Contains(a) {
				return pools[i]
			}
		}
		return nil
	}
	for _, s := range o.gateways {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return nil, cli.Usagef("--gateway: %q is not an address", s)
		}
		pool := within(a)
		if pool == nil || pool.Gateway != "" {
			return nil, cli.Usagef("--gateway: %s is not within a --subnet that has none", s)
		}
		pool.Gateway = s
	}
	for _, s := range o.ranges {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, cli.Usagef("--ip-range: %q is not a subnet such as 10.1.0.0/24", s)
		}
		pool := within(p.Addr())
		if pool == nil || pool.Range != "" {
			return nil, cli.Usagef("--ip-range: %s is not within a --subnet that has none", s)
		}
		pool.Range = s
	}
	return pools, nil
}
