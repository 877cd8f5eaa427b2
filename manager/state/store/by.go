package store

import (
	"strconv"
	"strings"

	"holdfast/api"
)

// By selects objects of a table. A selector that the table has no index for makes the call
// that it is given to fail.
type By struct {
	op     byOp
	index  string
	value  string
	prefix bool
	of     []By
}

type byOp int

const (
	opAll byOp = iota
	opValue
	opOr
	opAnd
)

// All tells whether b is the selector that All returns.
func (b By) All() bool { return b.op == opAll }

// Exact returns an index and values in it, one of which an object must have to be selected. It
// finds none for what is selected by prefixes, by several indexes or not at all.
func (b By) Exact() (index string, values []string, ok bool) {
	switch b.op {
	case opValue:
		return b.index, []string{b.value}, !b.prefix
	case opAnd:
		for _, part := range b.of {
			if index, values, ok = part.Exact(); ok {
				return index, values, true
			}
		}
	case opOr:
		for i, part := range b.of {
			x, v, exact := part.Exact()
			if !exact || i > 0 && x != index {
				return "", nil, false
			}
			index, values = x, append(values, v...)
		}
		return index, values, len(b.of) > 0
	}
	return "", nil, false
}

func value(index, v string) By { return By{op: opValue, index: index, value: v} }

// All selects every object.
func All() By { return By{} }

// Or selects what any of its selectors selects, each object once. Or of nothing selects
// nothing.
func Or(of ...By) By { return By{op: opOr, of: of} }

// And selects what all of its selectors select. And of nothing selects everything. It looks
// the first one up and tests the others, so the one that selects least goes first.
func And(of ...By) By { return By{op: opAnd, of: of} }

// ByID selects the object with an ID.
func ByID(id string) By { return value(indexID, id) }

// ByIDPrefix selects objects whose ID begins with prefix.
func ByIDPrefix(prefix string) By {
	return By{op: opValue, index: indexID, value: prefix, prefix: true}
}

// ByName selects objects by name, without regard to case.
func ByName(name string) By { return value(indexName, strings.ToLower(name)) }

// ByNamePrefix selects objects whose name begins with prefix, without regard to case.
func ByNamePrefix(prefix string) By {
	return By{op: opValue, index: indexName, value: strings.ToLower(prefix), prefix: true}
}

// ByRuntime selects services and tasks by runtime: "container", "attachment", or the kind of
// a generic one.
func ByRuntime(runtime string) By { return value(indexRuntime, runtime) }

// ByNetworkID selects services and tasks that refer to a network.
func ByNetworkID(id string) By { return value(indexNetwork, id) }

// BySecretID selects services and tasks that refer to a secret.
func BySecretID(id string) By { return value(indexSecret, id) }

// ByConfigID selects services and tasks that refer to a config.
func ByConfigID(id string) By { return value(indexConfig, id) }

// ByPublishedPort selects services that publish a port, by ingress or on hosts. Port 0 is
// not published, and selects nothing.
func ByPublishedPort(protocol api.PortConfig_Protocol, port uint32) By {
	return value(indexPort, portKey(protocol, port))
}

// StackLabel is the label whose value is the name of the stack that an object belongs to.
const StackLabel = "com.docker.stack.namespace"

// ByStack selects the services, networks, secrets and configs of a stack.
func ByStack(name string) By { return value(indexStack, name) }

// ReleaseLabel is the label of secrets that are records of releases, with the release's name: see
// release/driver/object.
const ReleaseLabel = "holdfast.release.name"

// ByRelease selects the secrets that are records of a release: what tells of its revisions, and
// not what they hold.
func ByRelease(name string) By { return value(indexRelease, name) }

// ByServiceID selects the tasks of a service.
func ByServiceID(id string) By { return value(indexService, id) }

// ByNodeID selects the tasks on a node.
func ByNodeID(id string) By { return value(indexNode, id) }

// BySlot selects the tasks in one slot of a service.
func BySlot(serviceID string, slot uint64) By { return value(indexSlot, slotKey(serviceID, slot)) }

// ByDesiredState selects tasks by the state that they should reach.
func ByDesiredState(s api.TaskState) By { return value(indexDesiredState, enumKey(int32(s))) }

// ByTaskState selects tasks by the state that they are in.
func ByTaskState(s api.TaskState) By { return value(indexState, enumKey(int32(s))) }

// ByRole selects nodes by their observed role.
func ByRole(r api.NodeRole) By { return value(indexRole, enumKey(int32(r))) }

// ByMembership selects nodes by membership.
func ByMembership(m api.NodeSpec_Membership) By { return value(indexMembership, enumKey(int32(m))) }

// portKey is empty for port 0, which the cluster is to choose.
func portKey(protocol api.PortConfig_Protocol, port uint32) string {
	if port == 0 {
		return ""
	}
	return enumKey(int32(protocol)) + "." + strconv.FormatUint(uint64(port), 10)
}

func enumKey(n int32) string { return strconv.Itoa(int(n)) }

func slotKey(serviceID string, slot uint64) string {
	return serviceID + "." + strconv.FormatUint(slot, 10)
}
