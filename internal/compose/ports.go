package compose

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"holdfast/api"
)

func endpointModes() map[string]api.EndpointSpec_ResolutionMode {
	return map[string]api.EndpointSpec_ResolutionMode{
		"":      api.EndpointSpec_VIP,
		"vip":   api.EndpointSpec_VIP,
		"dnsrr": api.EndpointSpec_DNSRR,
	}
}

func protocols() map[string]api.PortConfig_Protocol {
	return map[string]api.PortConfig_Protocol{
		"":     api.PortConfig_TCP,
		"tcp":  api.PortConfig_TCP,
		"udp":  api.PortConfig_UDP,
		"sctp": api.PortConfig_SCTP,
	}
}

func publishModes() map[string]api.PortConfig_PublishMode {
	return map[string]api.PortConfig_PublishMode{
		"":        api.PortConfig_INGRESS,
		"ingress": api.PortConfig_INGRESS,
		"host":    api.PortConfig_HOST,
	}
}

// endpoint is nil where the file says nothing. Ports are sorted, so that their order in the file
// makes no difference.
func endpoint(path, mode string, ports []types.ServicePortConfig) (*api.EndpointSpec, error) {
	if mode == "" && len(ports) == 0 {
		return nil, nil
	}
	var f fallible
	spec := &api.EndpointSpec{
		Mode: choose(&f, path+".deploy.endpoint_mode", strings.ToLower(mode), endpointModes()),
	}
	for i, p := range ports {
		spec.Ports = append(spec.Ports, port(&f, fmt.Sprintf("%s.ports[%d]", path, i), p))
	}
	slices.SortStableFunc(spec.Ports, func(a, b *api.PortConfig) int {
		return cmp.Or(
			cmp.Compare(a.PublishedPort, b.PublishedPort),
			cmp.Compare(a.TargetPort, b.TargetPort),
			cmp.Compare(a.Protocol, b.Protocol),
		)
	})
	return spec, f.err
}

func port(f *fallible, path string, p types.ServicePortConfig) *api.PortConfig {
	spec := &api.PortConfig{
		Name:        p.Name,
		Protocol:    choose(f, path+".protocol", strings.ToLower(p.Protocol), protocols()),
		TargetPort:  p.Target,
		PublishMode: choose(f, path+".mode", p.Mode, publishModes()),
	}
	if p.Target < 1 || p.Target > 65535 {
		f.fail("%s.target: %d is not a port", path, p.Target)
	}
	if p.Published != "" {
		n, err := strconv.ParseUint(p.Published, 10, 16)
		if err != nil {
			// A range means "any of these" to Compose; a service has one port or the cluster's choice.
			f.fail("%s.published: %q is not one port", path, p.Published)
		}
		spec.PublishedPort = uint32(n)
	}
	return spec
}
