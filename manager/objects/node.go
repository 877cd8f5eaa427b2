package objects

import (
	"fmt"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// CreateNode creates a worker. The nodes of managers are made by the managers themselves.
func CreateNode(tx *store.Tx, n *api.Node) (*api.Node, error) {
	if n == nil {
		return nil, errkind.Field("node", "is empty")
	}
	err := first(
		func() error {
			if n.Role != api.NodeRole_WORKER || n.Spec.DesiredRole != api.NodeRole_WORKER || n.ManagerStatus != nil {
				return errkind.New(errkind.Refused, "the node of a manager cannot be created: it comes with the manager").
					WithHint("start a manager that joins the cluster")
			}
			return nil
		},
		func() error { return checkNode(n) },
	)
	if err != nil {
		return nil, on(err, store.Nodes.Noun(), nodeName(n))
	}
	return store.Nodes.Create(tx, n)
}

// UpdateNode replaces the spec of a node, which must not have changed since version.
func UpdateNode(tx *store.Tx, id string, version *api.Version, spec *api.NodeSpec) (*api.Node, error) {
	old, err := forUpdate(tx, store.Nodes, id, version)
	if err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, errkind.Field("spec", "is empty").On(store.Nodes.Noun(), id)
	}
	n := *old
	n.Spec = *spec
	return replaceNode(tx, old, &n)
}

// updateNode replaces a node, whose version must be its present one. What the managers keep
// about it must stay.
func updateNode(tx *store.Tx, n *api.Node) (*api.Node, error) {
	old, err := Get(tx, store.Nodes, n.ID)
	if err != nil {
		return nil, err
	}
	field := ""
	switch {
	case n.Role != old.Role:
		field = "role"
	case !n.ManagerStatus.Equal(old.ManagerStatus):
		field = "manager_status"
	case !n.Certificate.Equal(&old.Certificate):
		field = "certificate"
	default:
		return replaceNode(tx, old, n)
	}
	return nil, errkind.Field(field, "is kept by the managers and cannot be changed").
		On(store.Nodes.Noun(), nodeName(old))
}

func replaceNode(tx *store.Tx, old, n *api.Node) (*api.Node, error) {
	err := first(
		func() error { return checkRole(old, &n.Spec) },
		func() error { return checkNode(n) },
	)
	if err != nil {
		return nil, on(err, store.Nodes.Noun(), nodeName(old))
	}
	return store.Nodes.Update(tx, n)
}

// checkRole refuses a change of a node's role: it needs certificates, which are not there yet.
func checkRole(old *api.Node, spec *api.NodeSpec) error {
	if spec.DesiredRole == old.Spec.DesiredRole {
		return nil
	}
	e := errkind.New(errkind.Refused, "the role of a node cannot be changed yet")
	e.Field = "spec.desired_role"
	if old.Spec.DesiredRole == api.NodeRole_MANAGER {
		return e.WithHint("to take a manager out of the cluster, use ctl member rm %s", nodeName(old))
	}
	return e.WithHint("to add a manager, start one that joins the cluster")
}

func checkNode(n *api.Node) error {
	return first(
		func() error { return checkText("", n) },
		func() error { return checkLabels("spec.annotations", &n.Spec.Annotations) },
		func() error { return checkEnum("spec.desired_role", n.Spec.DesiredRole, api.NodeRole_name) },
		func() error { return checkEnum("spec.membership", n.Spec.Membership, api.NodeSpec_Membership_name) },
		func() error {
			return checkEnum("spec.availability", n.Spec.Availability, api.NodeSpec_Availability_name)
		},
		func() error { return checkEnum("status.state", n.Status.State, api.NodeStatus_State_name) },
	)
}

// RemoveNode removes a node that is no member of the managers' group and, unless force is
// set, is not ready. Its unfinished tasks become orphans in the same transaction.
func RemoveNode(tx *store.Tx, id string, force bool) (*api.Node, error) {
	n, err := Get(tx, store.Nodes, id)
	if err != nil {
		return nil, err
	}
	name := nodeName(n)
	if n.ManagerStatus != nil {
		return nil, errkind.New(errkind.Refused, "is a manager, and a member of the cluster").
			On(store.Nodes.Noun(), name).WithHint("take it out of the cluster first: ctl member rm %s", name)
	}
	if n.Status.State == api.NodeStatus_READY && !force {
		return nil, errkind.New(errkind.Refused, "is not down").
			On(store.Nodes.Noun(), name).WithHint("stop it, or remove it by force")
	}
	if err := orphanTasks(tx, id); err != nil {
		return nil, on(err, store.Nodes.Noun(), name)
	}
	return store.Nodes.Delete(tx, id)
}

// orphanTasks ends the unfinished tasks of a node that goes away.
func orphanTasks(tx *store.Tx, nodeID string) error {
	tasks, err := store.Tasks.FindAll(tx, store.ByNodeID(nodeID))
	if err != nil {
		return err
	}
	orphans := tasks[:0]
	for _, t := range tasks {
		if t.Status.State < api.TaskState_COMPLETE {
			orphans = append(orphans, t)
		}
	}
	if most := store.MaxOperations - 1; len(orphans) > most {
		return &errkind.Error{
			Kind: errkind.Limit, Max: fmt.Sprintf("%d tasks", most),
			Msg:  fmt.Sprintf("has %d unfinished tasks, more than one transaction can end", len(orphans)),
			Hint: "drain the node, or remove some of its tasks first",
		}
	}
	for _, t := range orphans {
		orphan := *t
		orphan.Status = api.TaskStatus{
			Timestamp: now(tx), State: api.TaskState_ORPHANED,
			Message: "task belonged to a node that has been removed",
		}
		if _, err := store.Tasks.Update(tx, &orphan); err != nil {
			return err
		}
	}
	return nil
}

// nodeName is what people know a node by.
func nodeName(n *api.Node) string {
	if name := store.Nodes.Name(n); name != "" {
		return name
	}
	return n.ID
}
