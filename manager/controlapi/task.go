package controlapi

import (
	"context"

	"holdfast/api"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// GetTask returns a task.
func (s *Server) GetTask(ctx context.Context, req *api.GetTaskRequest) (*api.GetTaskResponse, error) {
	o, err := get(ctx, s, store.Tasks, req.TaskID)
	if err != nil {
		return nil, err
	}
	return &api.GetTaskResponse{Task: o}, nil
}

// RemoveTask removes a task.
func (s *Server) RemoveTask(ctx context.Context, req *api.RemoveTaskRequest) (*api.RemoveTaskResponse, error) {
	if err := remove(ctx, s, store.Tasks, req.TaskID, objects.RemoveTask); err != nil {
		return nil, err
	}
	return &api.RemoveTaskResponse{}, nil
}

// ListTasks returns tasks in the order of their IDs. Labels are those of the task or of its
// service.
func (s *Server) ListTasks(ctx context.Context, req *api.ListTasksRequest) (*api.ListTasksResponse, error) {
	f := newFilter(req.Filters,
		func(o *api.Task) map[string]string { return o.ServiceAnnotations.Labels },
		func(o *api.Task) map[string]string { return o.Annotations.Labels },
	)
	f.any(req.Filters.GetServiceIDs(), store.ByServiceID)
	f.any(req.Filters.GetNodeIDs(), store.ByNodeID)
	f.any(req.Filters.GetRuntimes(), store.ByRuntime)
	anyEnum(f, "desired_states", req.Filters.GetDesiredStates(), api.TaskState_name, store.ByDesiredState)
	if req.Filters.GetUpToDate() {
		f.test(isUpToDate)
	}
	p, err := list(ctx, s, store.Tasks, req, f)
	if err != nil {
		return nil, err
	}
	return &api.ListTasksResponse{Tasks: p.objects, Continue: p.next, Remaining: p.remaining}, nil
}

// isUpToDate tells whether a task is made from its service's present spec, or from one that
// makes the same task.
func isUpToDate(tx store.ReadTx, t *api.Task) bool {
	s := store.Services.Get(tx, t.ServiceID)
	if s == nil {
		return false
	}
	if t.SpecVersion != nil && t.SpecVersion.Equal(s.SpecVersion) {
		return true
	}
	return t.Spec.Equal(&s.Spec.Task) && (t.Endpoint == nil || t.Endpoint.Spec.Equal(s.Spec.Endpoint))
}
