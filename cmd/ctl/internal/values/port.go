package values

import (
	"fmt"
	"strconv"
	"strings"

	"holdfast/api"
)

// ParsePorts reads a published port in the short form, [PUBLISHED:]TARGET[/PROTOCOL], where
// both may be ranges of the same length, or in the long form,
// published=P,target=T,protocol=tcp|udp|sctp,mode=ingress|host.
func ParsePorts(s string) ([]*api.PortConfig, error) {
	if isLong(s) {
		p, err := parseLongPort(s)
		if err != nil {
			return nil, err
		}
		return []*api.PortConfig{p}, nil
	}
	ports, protocol, hasProtocol := strings.Cut(s, "/")
	if !hasProtocol {
		protocol = "tcp"
	}
	proto, err := parseProtocol(protocol)
	if err != nil {
		return nil, err
	}
	published, target, hasPublished := strings.Cut(ports, ":")
	if !hasPublished {
		published, target = "", ports
	}
	if strings.ContainsAny(target, ":]") {
		return nil, fmt.Errorf("%q: a port of a service is published on all addresses of a node; leave the address out", s)
	}
	to, err := parseRange(target)
	if err != nil {
		return nil, fmt.Errorf("%q: target %w", s, err)
	}
	from := make([]uint32, len(to)) // 0 lets the cluster choose
	if hasPublished && published != "" {
		if from, err = parseRange(published); err != nil {
			return nil, fmt.Errorf("%q: published %w", s, err)
		}
	}
	if len(from) != len(to) {
		return nil, fmt.Errorf("%q: the two ranges differ in length", s)
	}
	var all []*api.PortConfig
	for i := range to {
		all = append(all, &api.PortConfig{Protocol: proto, TargetPort: to[i], PublishedPort: from[i]})
	}
	return all, nil
}

func parseLongPort(s string) (*api.PortConfig, error) {
	pairs, err := fields(s)
	if err != nil {
		return nil, err
	}
	p := &api.PortConfig{}
	for _, f := range pairs {
		switch f.Key {
		case "target":
			p.TargetPort, err = parsePort(f.Value)
		case "published":
			p.PublishedPort, err = parsePort(f.Value)
		case "protocol":
			p.Protocol, err = parseProtocol(f.Value)
		case "mode":
			var n int
			n, err = ParseChoice(f.Value, "ingress", "host")
			p.PublishMode = api.PortConfig_PublishMode(n)
		case "name":
			p.Name = f.Value
		default:
			err = fmt.Errorf("%q is none of published, target, protocol, mode, name", f.Key)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
	}
	if p.TargetPort == 0 {
		return nil, fmt.Errorf("%q has no target", s)
	}
	return p, nil
}

// ParsePortMatcher reads what says which ports to remove: a target port, or a published port
// in any of its forms. An empty part matches all.
func ParsePortMatcher(s string) (func(*api.PortConfig) bool, error) {
	wanted, err := ParsePorts(s)
	if err != nil {
		return nil, err
	}
	return func(p *api.PortConfig) bool {
		for _, w := range wanted {
			if w.TargetPort == p.TargetPort && w.Protocol == p.Protocol &&
				(w.PublishedPort == 0 || w.PublishedPort == p.PublishedPort) {
				return true
			}
		}
		return false
	}, nil
}

func parseProtocol(s string) (api.PortConfig_Protocol, error) {
	n, err := ParseChoice(strings.ToLower(s), "tcp", "udp", "sctp")
	return api.PortConfig_Protocol(n), err
}

func parsePort(s string) (uint32, error) {
	const decimal, bits = 10, 16
	n, err := strconv.ParseUint(s, decimal, bits)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a port", s)
	}
	return uint32(n), nil
}

// parseRange reads PORT or FIRST-LAST.
func parseRange(s string) ([]uint32, error) {
	a, b, isRange := strings.Cut(s, "-")
	first, err := parsePort(a)
	if err != nil {
		return nil, err
	}
	last := first
	if isRange {
		if last, err = parsePort(b); err != nil {
			return nil, err
		}
	}
	if last < first {
		return nil, fmt.Errorf("%q ends before it begins", s)
	}
	var all []uint32
	for p := first; p <= last; p++ {
		all = append(all, p)
	}
	return all, nil
}
