package objects

import (
	"fmt"
	"reflect"

	"github.com/gogo/protobuf/types"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// maxReplicas is the largest number of tasks that a service may ask for.
const maxReplicas = 1_000_000

// CreateService creates a service.
func CreateService(tx *store.Tx, spec *api.ServiceSpec) (*api.Service, error) {
	if spec == nil {
		return nil, errkind.Field("spec", "is empty").On(store.Services.Noun(), "")
	}
	return createService(tx, &api.Service{Spec: *spec})
}

func createService(tx *store.Tx, given *api.Service) (*api.Service, error) {
	s := *given
	err := first(
		func() error { return checkText("", &s) },
		func() error { return checkServiceSpec(tx, s.ID, &s.Spec) },
	)
	if err != nil {
		return nil, on(err, store.Services.Noun(), s.Spec.Annotations.Name)
	}
	version := next(tx)
	s.SpecVersion = &version
	s.PreviousSpec, s.PreviousSpecVersion = nil, nil
	if s.JobStatus == nil {
		s.JobStatus = nextRun(tx, nil, &s.Spec)
	}
	return store.Services.Create(tx, &s)
}

// UpdateService replaces the spec of a service. The spec must not have changed since version.
// A spec that is equal to the present one changes nothing.
func UpdateService(tx *store.Tx, id string, version *api.Version, spec *api.ServiceSpec) (*api.Service, error) {
	old, err := forUpdate(tx, store.Services, id, version)
	if err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, errkind.Field("spec", "is empty").On(store.Services.Noun(), id)
	}
	s := *old
	s.Spec = *spec
	changed, err := changeSpec(tx, old, &s)
	if err != nil || !changed {
		return old, err
	}
	s.UpdateStatus = nil
	return store.Services.Update(tx, &s)
}

// RollbackService puts the spec before the last change in the place of the present one, which
// becomes the previous one. The spec must not have changed since version.
func RollbackService(tx *store.Tx, id string, version *api.Version) (*api.Service, error) {
	old, err := forUpdate(tx, store.Services, id, version)
	if err != nil {
		return nil, err
	}
	if old.PreviousSpec == nil {
		return nil, errkind.New(errkind.Refused, "there is no previous spec to roll back to").
			On(store.Services.Noun(), old.Spec.Annotations.Name)
	}
	s := *old
	s.Spec = *old.PreviousSpec
	if err := checkChangedSpec(tx, old, &s.Spec); err != nil {
		return nil, on(err, store.Services.Noun(), old.Spec.Annotations.Name)
	}
	s.PreviousSpec = &old.Spec
	s.SpecVersion, s.PreviousSpecVersion = old.PreviousSpecVersion, old.SpecVersion
	s.JobStatus = nextRun(tx, old, &s.Spec)
	s.UpdateStatus = &api.UpdateStatus{
		State: api.UpdateStatus_ROLLBACK_STARTED, Message: "manually requested rollback", StartedAt: now(tx),
	}
	return store.Services.Update(tx, &s)
}

// changeSpec checks and completes a service that is to replace old, as far as their specs
// differ: the spec of old becomes the previous one. A spec that stays is not checked, since
// what it refers to may have gone.
func changeSpec(tx *store.Tx, old, s *api.Service) (changed bool, err error) {
	if s.Spec.Equal(&old.Spec) {
		return false, nil
	}
	if err := checkChangedSpec(tx, old, &s.Spec); err != nil {
		return false, on(err, store.Services.Noun(), old.Spec.Annotations.Name)
	}
	if s.Spec.Equal(&old.Spec) { // they differed in names of networks only
		return false, nil
	}
	if version := next(tx); !version.Equal(old.SpecVersion) { // else it is part of an earlier change
		s.PreviousSpec, s.PreviousSpecVersion = &old.Spec, old.SpecVersion
		s.SpecVersion = &version
	}
	if s.JobStatus.Equal(old.JobStatus) {
		s.JobStatus = nextRun(tx, old, &s.Spec)
	}
	return true, nil
}

// updateService replaces a service, whose version must be its present one. The writer of a
// new spec may leave the previous spec to this function or give one of its own, with another
// spec_version.
func updateService(tx *store.Tx, given *api.Service) (*api.Service, error) {
	old, err := Get(tx, store.Services, given.ID)
	if err != nil {
		return nil, err
	}
	s := *given
	if err := checkText("", &s); err != nil {
		return nil, on(err, store.Services.Noun(), s.ID)
	}
	if s.SpecVersion.Equal(old.SpecVersion) {
		_, err = changeSpec(tx, old, &s)
	} else if !s.Spec.Equal(&old.Spec) {
		err = on(checkChangedSpec(tx, old, &s.Spec), store.Services.Noun(), old.Spec.Annotations.Name)
	}
	if err != nil {
		return nil, err
	}
	return store.Services.Update(tx, &s)
}

// RemoveService removes a service. Its tasks are left to those who wrote them.
func RemoveService(tx *store.Tx, id string) (*api.Service, error) {
	if _, err := Get(tx, store.Services, id); err != nil {
		return nil, err
	}
	return store.Services.Delete(tx, id)
}

// checkChangedSpec checks a spec that is to replace that of old, and resolves it.
func checkChangedSpec(tx *store.Tx, old *api.Service, spec *api.ServiceSpec) error {
	if spec.Annotations.Name != old.Spec.Annotations.Name {
		return errkind.Field("spec.annotations.name", "cannot be changed from %s to %s",
			old.Spec.Annotations.Name, spec.Annotations.Name).
			WithHint("create a service of the new name and remove this one")
	}
	if reflect.TypeOf(spec.Mode) != reflect.TypeOf(old.Spec.Mode) {
		return errkind.Field("spec.mode", "cannot be changed").
			WithHint("remove the service and create it in the other mode")
	}
	if err := checkText("spec", spec); err != nil {
		return err
	}
	return checkServiceSpec(tx, old.ID, spec)
}

// checkServiceSpec checks the spec of the service with an ID, which is empty for one that is
// new, and puts the IDs of networks in the place of their names. spec is a copy of the
// caller's, of one level.
func checkServiceSpec(tx *store.Tx, id string, spec *api.ServiceSpec) error {
	return first(
		func() error { return checkAnnotations("spec.annotations", &spec.Annotations, dnsName()) },
		func() error { return checkTaskSpec(tx, "spec.task", &spec.Task, true) },
		func() error { return checkMode(spec) },
		func() error { return checkRollout("spec.update", spec.Update, false) },
		func() error { return checkRollout("spec.rollback", spec.Rollback, true) },
		func() error { return checkEndpoint("spec.endpoint", spec.Endpoint) },
		func() (err error) {
			spec.Task.Networks, err = resolveNetworks(tx, "spec.task.networks", spec.Task.Networks)
			return err
		},
		func() (err error) {
			spec.Networks, err = resolveNetworks(tx, "spec.networks", spec.Networks)
			return err
		},
		func() error { return checkPortsFree(tx, "spec.endpoint", id, spec.Endpoint.GetPorts()) },
	)
}

func checkMode(spec *api.ServiceSpec) error {
	switch m := spec.Mode.(type) {
	case *api.ServiceSpec_Replicated:
		return checkCount("spec.replicated.replicas", m.Replicated.GetReplicas())
	case *api.ServiceSpec_Global:
		return nil
	case *api.ServiceSpec_ReplicatedJob:
		if err := checkCount("spec.replicated_job.max_concurrent", m.ReplicatedJob.GetMaxConcurrent()); err != nil {
			return err
		}
		if err := checkCount("spec.replicated_job.total_completions", m.ReplicatedJob.GetTotalCompletions()); err != nil {
			return err
		}
		return checkJob(spec)
	case *api.ServiceSpec_GlobalJob:
		return checkJob(spec)
	}
	return errkind.Field("spec.mode", "is empty").
		WithHint("give one of replicated, global, replicated_job and global_job")
}

func checkCount(at string, n uint64) error {
	if n <= maxReplicas {
		return nil
	}
	e := errkind.Field(at, "is %d, must be from 0 to %d", n, maxReplicas)
	if int64(n) < 0 { //nolint:gosec // a negative number of a client that counts with a sign
		e = errkind.Field(at, "is %d, must not be negative", int64(n)) //nolint:gosec // see above
	}
	e.Max = fmt.Sprint(maxReplicas)
	return e
}

func checkJob(spec *api.ServiceSpec) error {
	if spec.Update != nil {
		return errkind.Field("spec.update", "a job cannot have an update config")
	}
	if spec.Rollback != nil {
		return errkind.Field("spec.rollback", "a job cannot have a rollback config")
	}
	return nil
}

// checkRollout checks an update or rollback config.
func checkRollout(at string, u *api.UpdateConfig, rollback bool) error {
	if u == nil {
		return nil
	}
	if !(u.MaxFailureRatio >= 0 && u.MaxFailureRatio <= 1) { // not a number is refused too
		return errkind.Field(at+".max_failure_ratio", "is %g, must be from 0 to 1", u.MaxFailureRatio)
	}
	if rollback && u.FailureAction == api.UpdateConfig_ROLLBACK {
		return errkind.Field(at+".failure_action", "a rollback cannot be rolled back").
			WithHint("use pause or continue")
	}
	return first(
		func() error { return checkDuration(at+".delay", u.Delay) },
		func() error { return checkDuration(at+".monitor", u.Monitor) },
		func() error {
			return checkEnum(at+".failure_action", u.FailureAction, api.UpdateConfig_FailureAction_name)
		},
		func() error { return checkEnum(at+".order", u.Order, api.UpdateConfig_UpdateOrder_name) },
	)
}

// isJob tells whether a service runs to completion.
func isJob(spec *api.ServiceSpec) bool {
	return spec.GetReplicatedJob() != nil || spec.GetGlobalJob() != nil
}

// nextRun gives the job status for a spec that takes the place of old's: a job runs again
// when what its tasks are made from changes. For a service that is new old is nil.
func nextRun(tx *store.Tx, old *api.Service, spec *api.ServiceSpec) *api.JobStatus {
	switch {
	case old == nil && !isJob(spec):
		return nil
	case old == nil:
		return &api.JobStatus{JobIteration: &api.Version{}, LastExecution: now(tx)}
	case !isJob(spec) || old.Spec.Task.Equal(&spec.Task):
		return old.JobStatus
	}
	return &api.JobStatus{
		JobIteration:  &api.Version{Index: old.JobStatus.GetJobIteration().GetIndex() + 1},
		LastExecution: now(tx),
	}
}

// now gives the transaction's time as objects have it.
func now(tx *store.Tx) *types.Timestamp {
	t := tx.Now()
	return &types.Timestamp{Seconds: t.Unix(), Nanos: int32(t.Nanosecond())} //nolint:gosec // below 1e9
}
