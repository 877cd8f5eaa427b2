package objects

import (
	"fmt"
	"net/netip"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// predefinedLabel marks networks that every node has by itself.
const predefinedLabel = "com.docker.swarm.predefined"

// overlay is the only driver that an ingress network can have.
const overlay = "overlay"

// CreateNetwork creates a network.
func CreateNetwork(tx *store.Tx, spec *api.NetworkSpec) (*api.Network, error) {
	if spec == nil {
		return nil, errkind.Field("spec", "is empty").On(store.Networks.Noun(), "")
	}
	return createNetwork(tx, &api.Network{Spec: *spec})
}

func createNetwork(tx *store.Tx, n *api.Network) (*api.Network, error) {
	err := first(
		func() error { return checkText("", n) },
		func() error { return checkNetworkSpec(tx, &n.Spec) },
	)
	if err != nil {
		return nil, on(err, store.Networks.Noun(), n.Spec.Annotations.Name)
	}
	return store.Networks.Create(tx, n)
}

// updateNetwork replaces what is known about a network. Its spec does not change.
func updateNetwork(tx *store.Tx, n *api.Network) (*api.Network, error) {
	old, err := Get(tx, store.Networks, n.ID)
	if err != nil {
		return nil, err
	}
	if !n.Spec.Equal(&old.Spec) {
		return nil, errkind.Field("spec", "the spec of a network cannot be changed").
			On(store.Networks.Noun(), old.Spec.Annotations.Name).
			WithHint("remove the network and create it again")
	}
	if err := checkText("", n); err != nil {
		return nil, on(err, store.Networks.Noun(), n.ID)
	}
	return store.Networks.Update(tx, n)
}

// RemoveNetwork removes a network that no service and no task that may still run refers to.
func RemoveNetwork(tx *store.Tx, id string) (*api.Network, error) {
	n, err := Get(tx, store.Networks, id)
	if err != nil {
		return nil, err
	}
	name := n.Spec.Annotations.Name
	if _, ok := n.Spec.Annotations.Labels[predefinedLabel]; ok {
		return nil, errkind.New(errkind.Refused, "is predefined and cannot be removed").On(store.Networks.Noun(), name)
	}
	if err := notUsedByServices(tx, store.ByNetworkID(id)); err != nil {
		return nil, on(err, store.Networks.Noun(), name)
	}
	if err := notUsedByTasks(tx, store.ByNetworkID(id)); err != nil {
		return nil, on(err, store.Networks.Noun(), name)
	}
	if n.Spec.Ingress {
		if err := ingressNotNeeded(tx); err != nil {
			return nil, on(err, store.Networks.Noun(), name)
		}
	}
	return store.Networks.Delete(tx, id)
}

// notUsedByServices refuses if the selector selects a service, and names what it selects.
func notUsedByServices(tx store.ReadTx, users store.By) error {
	found, err := store.Services.Find(tx, users)
	if err != nil {
		return err
	}
	var names shortList
	for s := range found {
		names.add(s.Spec.Annotations.Name)
	}
	if names.empty() {
		return nil
	}
	return errkind.New(errkind.Refused, "is in use by the services %s", names.String()).
		WithHint("remove or change these services first")
}

// notUsedByTasks refuses if the selector selects a task that may still run.
func notUsedByTasks(tx store.ReadTx, users store.By) error {
	found, err := store.Tasks.Find(tx, users)
	if err != nil {
		return err
	}
	var names shortList
	for t := range found {
		if mayRun(t) {
			names.add(store.TaskName(t))
		}
	}
	if names.empty() {
		return nil
	}
	return errkind.New(errkind.Refused, "is in use by the tasks %s", names.String()).
		WithHint("wait until these tasks have ended, or remove them")
}

// ingressNotNeeded refuses if a service publishes a port by ingress.
func ingressNotNeeded(tx store.ReadTx) error {
	found, err := store.Services.Find(tx, store.All())
	if err != nil {
		return err
	}
	var names shortList
	for s := range found {
		for _, p := range s.Spec.Endpoint.GetPorts() {
			if p.PublishMode == api.PortConfig_INGRESS {
				names.add(s.Spec.Annotations.Name)
				break
			}
		}
	}
	if names.empty() {
		return nil
	}
	return errkind.New(errkind.Refused, "the services %s publish ports by ingress", names.String()).
		WithHint("remove or change these services first")
}

func checkNetworkSpec(tx store.ReadTx, s *api.NetworkSpec) error {
	if err := checkAnnotations("spec.annotations", &s.Annotations, dnsName()); err != nil {
		return err
	}
	if _, ok := s.Annotations.Labels[predefinedLabel]; ok {
		return errkind.Field("spec.annotations.labels", "the label %s is reserved", predefinedLabel)
	}
	if err := checkDriver("spec.driver_config", s.DriverConfig); err != nil {
		return err
	}
	if err := checkIngress(tx, s); err != nil {
		return err
	}
	return checkIPAM("spec.ipam", s.IPAM)
}

func checkIngress(tx store.ReadTx, s *api.NetworkSpec) error {
	if !s.Ingress {
		return nil
	}
	if s.Attachable {
		return errkind.Field("spec.attachable", "an ingress network cannot be attachable")
	}
	if s.DriverConfig != nil && s.DriverConfig.Name != overlay {
		return errkind.Field("spec.driver_config.name", "an ingress network cannot have the driver %s",
			s.DriverConfig.Name).WithHint("use %s", overlay)
	}
	networks, err := store.Networks.Find(tx, store.All())
	if err != nil {
		return err
	}
	for n := range networks {
		if n.Spec.Ingress {
			e := errkind.New(errkind.Exists, "there is an ingress network already: %s (%s)",
				n.Spec.Annotations.Name, n.ID)
			e.Field = "spec.ingress"
			return e.WithHint("remove that one first")
		}
	}
	return nil
}

// checkDriver checks a driver, which is the default one if it is nil.
func checkDriver(at string, d *api.Driver) error {
	if d != nil && d.Name == "" {
		return errkind.Field(at+".name", "is empty").WithHint("leave the whole driver out for the default one")
	}
	return nil
}

func checkIPAM(at string, o *api.IPAMOptions) error {
	if o == nil {
		return nil
	}
	if err := checkDriver(at+".driver", o.Driver); err != nil {
		return err
	}
	for i, c := range o.Configs {
		if err := checkPool(fmt.Sprintf("%s.configs[%d]", at, i), c); err != nil {
			return err
		}
	}
	return nil
}

// checkPool checks that a subnet holds its range and its gateway.
func checkPool(at string, c *api.IPAMConfig) error {
	if c.GetSubnet() == "" {
		return errkind.Field(at+".subnet", "is empty")
	}
	if err := checkEnum(at+".family", c.Family, api.IPAMConfig_AddressFamily_name); err != nil {
		return err
	}
	subnet, err := netip.ParsePrefix(c.Subnet)
	if err != nil {
		return errkind.Field(at+".subnet", "%q is not a subnet", c.Subnet).WithHint("use a form such as 10.0.9.0/24")
	}
	if c.Range != "" {
		r, err := netip.ParsePrefix(c.Range)
		if err != nil {
			return errkind.Field(at+".range", "%q is not a range", c.Range).WithHint("use a form such as 10.0.9.128/25")
		}
		if !subnet.Contains(r.Addr()) || r.Bits() < subnet.Bits() {
			return errkind.Field(at+".range", "%s is not within the subnet %s", c.Range, c.Subnet)
		}
	}
	if c.Gateway != "" {
		g, err := netip.ParseAddr(c.Gateway)
		if err != nil {
			return errkind.Field(at+".gateway", "%q is not an address", c.Gateway)
		}
		if !subnet.Contains(g) {
			return errkind.Field(at+".gateway", "%s is not within the subnet %s", c.Gateway, c.Subnet)
		}
	}
	return nil
}
