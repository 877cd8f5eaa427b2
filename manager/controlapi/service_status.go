package controlapi

import (
	"context"

	"holdfast/api"
	"holdfast/manager/state/store"
)

// ListServiceStatuses counts the tasks of services: those that should run, those that do, and
// those that are complete. The reply has a status for each ID of the request, in its order;
// that of a service which does not exist has no tasks.
func (s *Server) ListServiceStatuses(
	ctx context.Context, req *api.ListServiceStatusesRequest,
) (*api.ListServiceStatusesResponse, error) {
	tx, err := s.reader.Read(ctx)
	if err != nil {
		return nil, err
	}
	resp := &api.ListServiceStatusesResponse{
		Statuses: make([]*api.ListServiceStatusesResponse_ServiceStatus, len(req.Services)),
	}
	for i, id := range req.Services {
		status := &api.ListServiceStatusesResponse_ServiceStatus{ServiceID: id}
		resp.Statuses[i] = status
		if service := store.Services.Get(tx, id); service != nil {
			if err := count(tx, service, status); err != nil {
				return nil, err
			}
		}
	}
	return resp, nil
}

func count(tx store.ReadTx, s *api.Service, status *api.ListServiceStatusesResponse_ServiceStatus) error {
	tasks, err := store.Tasks.Find(tx, store.ByServiceID(s.ID))
	if err != nil {
		return err
	}
	wanted := uint64(0) // tasks that should still run
	for t := range tasks {
		if s.JobStatus != nil && !t.JobIteration.Equal(s.JobStatus.JobIteration) {
			continue // of an earlier run of the job
		}
		switch t.Status.State {
		case api.TaskState_RUNNING:
			status.RunningTasks++
		case api.TaskState_COMPLETE:
			status.CompletedTasks++
		}
		if isWanted(s, t) {
			wanted++
		}
	}
	switch m := s.Spec.Mode.(type) {
	case *api.ServiceSpec_Replicated:
		status.DesiredTasks = m.Replicated.GetReplicas()
	case *api.ServiceSpec_ReplicatedJob:
		left := m.ReplicatedJob.GetTotalCompletions() - min(status.CompletedTasks, m.ReplicatedJob.GetTotalCompletions())
		status.DesiredTasks = min(m.ReplicatedJob.GetMaxConcurrent(), left)
	case *api.ServiceSpec_Global, *api.ServiceSpec_GlobalJob:
		status.DesiredTasks = wanted
	}
	return nil
}

// isWanted tells whether a task of a global service is one of those that should run. How many
// these are is known from the tasks alone: there is one for each node that is fit.
func isWanted(s *api.Service, t *api.Task) bool {
	if s.Spec.GetGlobalJob() != nil {
		return t.DesiredState <= api.TaskState_COMPLETE && t.Status.State < api.TaskState_COMPLETE
	}
	return t.DesiredState <= api.TaskState_RUNNING
}
