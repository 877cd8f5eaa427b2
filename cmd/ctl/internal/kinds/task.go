package kinds

import (
	"context"
	"fmt"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/cli"
)

// Tasks returns the kind of tasks.
func Tasks() Kind[*api.Task] {
	return Kind[*api.Task]{
		Noun:   "task",
		Number: holdfast.Kind_KIND_TASK,
		Unwrap: (*holdfast.Object).GetTask,
		View: cli.View[*api.Task]{
			ID:   (*api.Task).GetID,
			Name: taskName,
			Columns: []cli.Column[*api.Task]{
				column("ID", (*api.Task).GetID),
				column("NAME", taskName),
				column("IMAGE", func(t *api.Task) string { return t.Spec.GetContainer().GetImage() }),
				column("NODE", (*api.Task).GetNodeID),
				column("DESIRED STATE", func(t *api.Task) string { return lower(t.DesiredState.String()) }),
				column("CURRENT STATE", func(t *api.Task) string { return lower(t.Status.State.String()) }),
				column("ERROR", func(t *api.Task) string { return t.Status.Err }),
			},
		},
		State:  func(t *api.Task) string { return lower(t.Status.State.String()) },
		Labels: func(t *api.Task) map[string]string { return t.ServiceAnnotations.Labels },
		Get: func(ctx context.Context, c *client.Client, id string) (*api.Task, error) {
			r, err := c.Control().GetTask(ctx, &api.GetTaskRequest{TaskID: id})
			return r.GetTask(), err
		},
		Remove: func(ctx context.Context, c *client.Client, id string) error {
			_, err := c.Control().RemoveTask(ctx, &api.RemoveTaskRequest{TaskID: id})
			return err
		},
	}
}

// taskName gives a task's name: its own, or one made of its service's and its place in it.
func taskName(t *api.Task) string {
	switch service := t.ServiceAnnotations.Name; {
	case t.Annotations.Name != "" || service == "":
		return t.Annotations.Name
	case t.Slot != 0:
		return fmt.Sprintf("%s.%d.%s", service, t.Slot, t.ID)
	default:
		return fmt.Sprintf("%s.%s.%s", service, t.NodeID, t.ID)
	}
}
