package controlapi_test

import (
	"testing"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

func TestUpdateAndRollback(t *testing.T) {
	r := newRig(t)
	s := r.create(serviceSpec("web"))
	spec := s.Spec.Copy()
	spec.GetReplicated().Replicas = 7
	req := &api.UpdateServiceRequest{ServiceID: s.ID, ServiceVersion: &s.Meta.Version, Spec: spec}
	up, err := r.UpdateService(r.ctx, req)
	if err != nil || up.Service.Spec.GetReplicated().Replicas != 7 {
		t.Fatalf("%v, %v", up, err)
	}
	_, err = r.UpdateService(r.ctx, req)
	want(t, err, errkind.OutOfSequence, "version")
	back, err := r.UpdateService(r.ctx, &api.UpdateServiceRequest{
		ServiceID: s.ID, ServiceVersion: &up.Service.Meta.Version, Spec: spec,
		Rollback: api.UpdateServiceRequest_PREVIOUS,
	})
	if err != nil || !back.Service.Spec.Equal(&s.Spec) {
		t.Fatalf("%v, %v", back, err)
	}
	req.Rollback = 9
	_, err = r.UpdateService(r.ctx, req)
	want(t, err, errkind.Invalid, "rollback")
}

func TestDefaultsAreFilledInWhenAsked(t *testing.T) {
	r := newRig(t)
	s := r.create(serviceSpec("web"))
	for _, insert := range []bool{true, false} {
		resp, err := r.GetService(r.ctx, &api.GetServiceRequest{ServiceID: s.ID, InsertDefaults: insert})
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Service.Spec.Update != nil; got != insert {
			t.Errorf("asked %v: update config %v", insert, resp.Service.Spec.Update)
		}
	}
}

// The same request gets the object of its first run, whatever became of it.
func TestReplay(t *testing.T) {
	r := newRig(t)
	ctx := state.WithRequest(r.ctx, state.Request{ID: "0.abcdefghijklmnop", Digest: []byte("d"), Caller: "c"})
	req := &api.CreateServiceRequest{Spec: serviceSpec("web")}
	first, err := r.CreateService(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	s := first.Service
	spec := s.Spec.Copy()
	spec.GetReplicated().Replicas = 9
	_, err = r.UpdateService(r.ctx, &api.UpdateServiceRequest{ServiceID: s.ID, ServiceVersion: &s.Meta.Version, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.RemoveService(r.ctx, &api.RemoveServiceRequest{ServiceID: s.ID}); err != nil {
		t.Fatal(err)
	}
	again, err := r.CreateService(ctx, req)
	if err != nil || !again.Service.Equal(s) {
		t.Errorf("%v, %v", again, err)
	}
}

func TestServiceStatuses(t *testing.T) {
	r := newRig(t)
	replicated := r.create(serviceSpec("replicated"))
	global := serviceSpec("global")
	global.Mode = &api.ServiceSpec_Global{Global: &api.GlobalService{}}
	onAll := r.create(global)
	job := serviceSpec("job")
	job.Mode = &api.ServiceSpec_ReplicatedJob{ReplicatedJob: &api.ReplicatedJob{MaxConcurrent: 3, TotalCompletions: 4}}
	toEnd := r.create(job)
	globalJob := serviceSpec("global-job")
	globalJob.Mode = &api.ServiceSpec_GlobalJob{GlobalJob: &api.GlobalJob{}}
	everywhere := r.create(globalJob)

	running, complete, down := api.TaskState_RUNNING, api.TaskState_COMPLETE, api.TaskState_SHUTDOWN
	r.write(func(tx *store.Tx) error {
		for _, c := range []struct {
			s              *api.Service
			desired, state api.TaskState
			earlier        bool
		}{
			{replicated, running, running, false},
			{replicated, running, api.TaskState_PENDING, false},
			{replicated, down, down, false},
			{onAll, running, running, false},
			{onAll, running, api.TaskState_PREPARING, false},
			{onAll, down, running, false},
			{toEnd, complete, complete, false},
			{toEnd, complete, complete, false},
			{toEnd, complete, running, false},
			{toEnd, complete, complete, true},
			{everywhere, complete, complete, false},
			{everywhere, complete, running, false},
		} {
			task := &api.Task{Spec: c.s.Spec.Task, ServiceID: c.s.ID, DesiredState: c.desired, Status: api.TaskStatus{State: c.state}}
			if c.s.JobStatus != nil {
				task.JobIteration = c.s.JobStatus.JobIteration.Copy()
			}
			if c.earlier {
				task.JobIteration = &api.Version{Index: 77}
			}
			if _, err := objects.CreateTask(tx, task); err != nil {
				return err
			}
		}
		return nil
	})
	type status = api.ListServiceStatusesResponse_ServiceStatus
	wanted := []*status{
		{ServiceID: toEnd.ID, DesiredTasks: 2, RunningTasks: 1, CompletedTasks: 2},
		{ServiceID: "nothing"},
		{ServiceID: replicated.ID, DesiredTasks: 2, RunningTasks: 1},
		{ServiceID: onAll.ID, DesiredTasks: 2, RunningTasks: 2},
		{ServiceID: everywhere.ID, DesiredTasks: 1, RunningTasks: 1, CompletedTasks: 1},
	}
	req := &api.ListServiceStatusesRequest{}
	for _, s := range wanted {
		req.Services = append(req.Services, s.ServiceID)
	}
	resp, err := r.ListServiceStatuses(r.ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range wanted {
		if !resp.Statuses[i].Equal(s) {
			t.Errorf("got %v, want %v", resp.Statuses[i], s)
		}
	}
}
