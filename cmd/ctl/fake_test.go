package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/gogo/protobuf/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/codec"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
	"holdfast/internal/wire"
)

// fake is a manager in memory: enough of one to see what ctl asks of it and prints. It does
// not validate; IDs and times are the same in each run.
type fake struct {
	api.UnimplementedControlServer
	api.UnimplementedHealthServer
	holdfast.UnimplementedStacksServer
	holdfast.UnimplementedClusterServer

	// fail, if set, answers all calls but those to Health.
	fail error

	mu       sync.Mutex
	revision uint64
	services []*api.Service
	networks []*api.Network
	secrets  []*api.Secret
	configs  []*api.Config
	nodes    []*api.Node
	tasks    []*api.Task
	members  []*holdfast.Member
	settings api.ClusterSpec
	version  uint64 // of the settings
	floor    uint64
	conflict int // so many updates meet a change by someone else
	stacks   stacks
	past     past
	watches  watches
}

// start serves the fake on a unix socket until stop is called.
func (f *fake) start(socket string) (stop func(), err error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(codec.New()), grpc.UnaryInterceptor(f.intercept))
	api.RegisterControlServer(s, f)
	api.RegisterHealthServer(s, f)
	holdfast.RegisterStacksServer(s, f)
	holdfast.RegisterClusterServer(s, f)
	holdfast.RegisterObjectsServer(s, objectsServer{f: f})
	holdfast.RegisterWatchServer(s, watchServer{f: f})
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(l) }) //nolint:errcheck // it ends with Stop
	return func() { s.Stop(); wg.Wait() }, nil
}

func (f *fake) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	trailer := metadata.Pairs(wire.Revision, wire.FormatRevision(1, max(f.revision, 1)))
	if err := grpc.SetTrailer(ctx, trailer); err != nil {
		return nil, err
	}
	if strings.HasSuffix(info.FullMethod, "/Check") {
		return &api.HealthCheckResponse{}, nil
	}
	reply, err := any(nil), f.fail
	if err == nil {
		before := f.revision
		reply, err = h(ctx, req)
		f.record(before, wire.UnescapeText(wire.Incoming(ctx, wire.Message)))
	}
	if err != nil {
		return nil, errkind.Status(err).Err()
	}
	return reply, nil
}

// meta gives the meta of a new object, and newID its ID.
func (f *fake) meta() api.Meta {
	f.revision++
	at := &types.Timestamp{Seconds: 1_700_000_000 + int64(f.revision)}
	return api.Meta{Version: api.Version{Index: f.revision}, CreatedAt: at, UpdatedAt: at}
}

func (f *fake) newID(kind string) string {
	return fmt.Sprintf("%s%0*d", kind, id.Length-len(kind), f.revision+1)
}

// filters are those of all kinds.
type filters interface {
	GetNames() []string
	GetNamePrefixes() []string
	GetIDPrefixes() []string
	GetLabels() map[string]string
}

func pass(f filters, id, name string, labels map[string]string) bool {
	any := func(list []string, match func(string) bool) bool {
		return len(list) == 0 || slices.ContainsFunc(list, match)
	}
	for k, v := range f.GetLabels() {
		if got, ok := labels[k]; !ok || v != "" && got != v {
			return false
		}
	}
	return any(f.GetNames(), func(s string) bool { return strings.EqualFold(s, name) }) &&
		any(f.GetNamePrefixes(), func(s string) bool { return strings.HasPrefix(name, s) }) &&
		any(f.GetIDPrefixes(), func(s string) bool { return strings.HasPrefix(id, s) })
}

func find[T interface{ GetID() string }](all []T, kind, id string) (T, error) {
	for _, o := range all {
		if o.GetID() == id {
			return o, nil
		}
	}
	return *new(T), errkind.New(errkind.NotFound, "not found").On(kind, id)
}

func remove[T interface{ GetID() string }](all *[]T, kind, id string) error {
	n := len(*all)
	*all = slices.DeleteFunc(*all, func(o T) bool { return o.GetID() == id })
	if len(*all) == n {
		return errkind.New(errkind.NotFound, "not found").On(kind, id)
	}
	return nil
}

func (f *fake) GetService(_ context.Context, r *api.GetServiceRequest) (*api.GetServiceResponse, error) {
	s, err := find(f.services, "service", r.ServiceID)
	return &api.GetServiceResponse{Service: s}, err
}

func (f *fake) CreateService(_ context.Context, r *api.CreateServiceRequest) (*api.CreateServiceResponse, error) {
	for _, s := range f.services {
		if strings.EqualFold(s.Spec.Annotations.Name, r.Spec.Annotations.Name) {
			return nil, errkind.New(errkind.Exists, "the name is taken by %s", s.ID).
				On("service", r.Spec.Annotations.Name).WithHint("remove it, or take another name")
		}
	}
	s := &api.Service{ID: f.newID("service"), Spec: *r.Spec}
	s.Meta = f.meta()
	f.services = append(f.services, s)
	return &api.CreateServiceResponse{Service: s}, nil
}

func (f *fake) UpdateService(_ context.Context, r *api.UpdateServiceRequest) (*api.UpdateServiceResponse, error) {
	s, err := find(f.services, "service", r.ServiceID)
	if err != nil {
		return nil, err
	}
	if f.conflict > 0 {
		f.conflict--
		s.Meta = f.meta()
	}
	if s.Meta.Version.Index != r.ServiceVersion.GetIndex() {
		return nil, errkind.New(errkind.OutOfSequence, "changed meanwhile").On("service", s.ID)
	}
	old := s.Spec.Copy()
	if r.Rollback == api.UpdateServiceRequest_PREVIOUS {
		if s.PreviousSpec == nil {
			return nil, errkind.New(errkind.Refused, "has no spec before this one").On("service", s.ID)
		}
		r.Spec = s.PreviousSpec
	}
	s.Spec, s.PreviousSpec, s.Meta = *r.Spec.Copy(), old, f.meta()
	s.Meta.SpecVersion = s.Meta.Version
	return &api.UpdateServiceResponse{Service: s}, nil
}

func (f *fake) RemoveService(_ context.Context, r *api.RemoveServiceRequest) (*api.RemoveServiceResponse, error) {
	return &api.RemoveServiceResponse{}, remove(&f.services, "service", r.ServiceID)
}

func (f *fake) ListServiceStatuses(_ context.Context, r *api.ListServiceStatusesRequest) (*api.ListServiceStatusesResponse, error) {
	reply := &api.ListServiceStatusesResponse{}
	for _, id := range r.Services {
		st := &api.ListServiceStatusesResponse_ServiceStatus{ServiceID: id}
		if s, err := find(f.services, "service", id); err == nil {
			st.DesiredTasks = s.Spec.GetReplicated().GetReplicas() + s.Spec.GetReplicatedJob().GetMaxConcurrent()
		}
		for _, t := range f.tasks {
			if t.ServiceID == id && t.Status.State == api.TaskState_RUNNING {
				st.RunningTasks++
			}
		}
		reply.Statuses = append(reply.Statuses, st)
	}
	return reply, nil
}
