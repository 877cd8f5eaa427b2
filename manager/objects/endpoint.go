package objects

import (
	"fmt"
	"strings"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

const maxPort = 65535

// port is what a published port takes. The number 0 lets the cluster choose, and takes
// nothing.
type port struct {
	protocol api.PortConfig_Protocol
	number   uint32
}

func publishedPort(p *api.PortConfig) port { return port{p.Protocol, p.PublishedPort} }

// String gives "80/tcp".
func (p port) String() string {
	return fmt.Sprintf("%d/%s", p.number, strings.ToLower(p.protocol.String()))
}

// checkEndpoint checks an endpoint by itself.
func checkEndpoint(at string, e *api.EndpointSpec) error {
	if e == nil {
		return nil
	}
	if err := checkEnum(at+".mode", e.Mode, api.EndpointSpec_ResolutionMode_name); err != nil {
		return err
	}
	seen := map[port]bool{}
	for i, p := range e.Ports {
		at := fmt.Sprintf("%s.ports[%d]", at, i)
		if err := checkPort(at, p); err != nil {
			return err
		}
		if e.Mode == api.EndpointSpec_DNSRR && p.PublishMode == api.PortConfig_INGRESS {
			return errkind.Field(at+".publish_mode", "a port cannot be published by ingress in dnsrr mode").
				WithHint("publish it on the host, or use the vip mode")
		}
		taken := publishedPort(p)
		if taken.number == 0 {
			continue
		}
		if seen[taken] {
			return errkind.Field(at+".published_port", "%s is published twice", taken)
		}
		seen[taken] = true
	}
	return nil
}

func checkPort(at string, p *api.PortConfig) error {
	switch {
	case p.GetTargetPort() == 0:
		return errkind.Field(at+".target_port", "is empty")
	case p.TargetPort > maxPort:
		return errkind.Field(at+".target_port", "is %d, must be at most 65535", p.TargetPort)
	case p.PublishedPort > maxPort:
		return errkind.Field(at+".published_port", "is %d, must be at most 65535", p.PublishedPort)
	}
	if err := checkEnum(at+".protocol", p.Protocol, api.PortConfig_Protocol_name); err != nil {
		return err
	}
	return checkEnum(at+".publish_mode", p.PublishMode, api.PortConfig_PublishMode_name)
}

// checkPortsFree checks that no other service publishes a port of the service with the ID: a
// port that one of two publishes by ingress is taken on every node.
func checkPortsFree(tx store.ReadTx, at, id string, ports []*api.PortConfig) error {
	for i, p := range ports {
		taken := publishedPort(p)
		if taken.number == 0 {
			continue
		}
		services, err := store.Services.Find(tx, store.ByPublishedPort(taken.protocol, taken.number))
		if err != nil {
			return err
		}
		for s := range services {
			if s.ID == id || !conflicts(p, s) {
				continue
			}
			e := errkind.New(errkind.Refused, "port %s is already in use by service %s (%s)",
				taken, s.Spec.Annotations.Name, s.ID)
			e.Field = fmt.Sprintf("%s.ports[%d].published_port", at, i)
			return e.WithHint("publish another port, or take it from that service first")
		}
	}
	return nil
}

func conflicts(p *api.PortConfig, s *api.Service) bool {
	for _, ports := range [][]*api.PortConfig{s.Spec.Endpoint.GetPorts(), s.Endpoint.GetPorts()} {
		for _, other := range ports {
			byIngress := p.PublishMode == api.PortConfig_INGRESS || other.PublishMode == api.PortConfig_INGRESS
			if byIngress && publishedPort(other) == publishedPort(p) {
				return true
			}
		}
	}
	return false
}
