package objects

import (
	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// CreateTask creates a task. The service and the node that it names must exist.
func CreateTask(tx *store.Tx, t *api.Task) (*api.Task, error) {
	if t == nil {
		return nil, errkind.Field("task", "is empty")
	}
	err := first(
		func() error { return checkTask(t) },
		func() error { return checkTaskSpec(tx, "spec", &t.Spec, false) },
		func() error { return checkTaskPlace(tx, t, &api.Task{}) },
	)
	if err != nil {
		return nil, on(err, store.Tasks.Noun(), store.TaskName(t))
	}
	return store.Tasks.Create(tx, t)
}

// UpdateTask replaces a task, whose version must be its present one. A task stays with its
// service.
func UpdateTask(tx *store.Tx, t *api.Task) (*api.Task, error) {
	if t == nil {
		return nil, errkind.Field("task", "is empty")
	}
	old, err := Get(tx, store.Tasks, t.ID)
	if err != nil {
		return nil, err
	}
	err = first(
		func() error { return checkTask(t) },
		func() error {
			if t.Spec.Equal(&old.Spec) { // what it refers to may have gone since
				return nil
			}
			return checkTaskSpec(tx, "spec", &t.Spec, false)
		},
		func() error {
			if t.ServiceID != old.ServiceID {
				return errkind.Field("service_id", "cannot be changed")
			}
			return checkTaskPlace(tx, t, old)
		},
	)
	if err != nil {
		return nil, on(err, store.Tasks.Noun(), t.ID)
	}
	return store.Tasks.Update(tx, t)
}

// RemoveTask removes a task.
func RemoveTask(tx *store.Tx, id string) (*api.Task, error) {
	if _, err := Get(tx, store.Tasks, id); err != nil {
		return nil, err
	}
	return store.Tasks.Delete(tx, id)
}

// checkTask checks what a task says by itself, its spec aside.
func checkTask(t *api.Task) error {
	return first(
		func() error { return checkText("", t) },
		func() error { return checkLabels("annotations", &t.Annotations) },
		func() error { return checkLabels("service_annotations", &t.ServiceAnnotations) },
		func() error { return checkEnum("desired_state", t.DesiredState, api.TaskState_name) },
		func() error { return checkEnum("status.state", t.Status.State, api.TaskState_name) },
	)
}

// checkTaskPlace checks that the service and the node of a task exist, as far as they are not
// those of old.
func checkTaskPlace(tx store.ReadTx, t, old *api.Task) error {
	if t.ServiceID != old.ServiceID && store.Services.Get(tx, t.ServiceID) == nil {
		return errkind.Field("service_id", "service %s not found", t.ServiceID)
	}
	if t.NodeID != "" && t.NodeID != old.NodeID && store.Nodes.Get(tx, t.NodeID) == nil {
		return errkind.Field("node_id", "node %s not found", t.NodeID)
	}
	return nil
}

// mayRun tells whether a task runs or may come to.
func mayRun(t *api.Task) bool {
	return t.DesiredState <= api.TaskState_RUNNING && t.Status.State <= api.TaskState_RUNNING
}
