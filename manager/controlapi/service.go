package controlapi

import (
	"context"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// CreateService creates a service.
func (s *Server) CreateService(ctx context.Context, req *api.CreateServiceRequest) (*api.CreateServiceResponse, error) {
	o, err := create(ctx, s, store.Services, req.Spec, objects.CreateService)
	if err != nil {
		return nil, err
	}
	return &api.CreateServiceResponse{Service: o}, nil
}

// GetService returns a service, with the defaults of its spec if they are asked for.
func (s *Server) GetService(ctx context.Context, req *api.GetServiceRequest) (*api.GetServiceResponse, error) {
	o, err := get(ctx, s, store.Services, req.ServiceID)
	if err != nil {
		return nil, err
	}
	if req.InsertDefaults {
		o = objects.WithDefaults(o)
	}
	return &api.GetServiceResponse{Service: o}, nil
}

// UpdateService replaces the spec of a service, or rolls it back to the previous one.
func (s *Server) UpdateService(ctx context.Context, req *api.UpdateServiceRequest) (*api.UpdateServiceResponse, error) {
	rule := objects.UpdateService
	switch req.Rollback {
	case api.UpdateServiceRequest_NONE:
	case api.UpdateServiceRequest_PREVIOUS:
		rule = func(tx *store.Tx, id string, version *api.Version, _ *api.ServiceSpec) (*api.Service, error) {
			return objects.RollbackService(tx, id, version)
		}
	default:
		return nil, errkind.Field("rollback", "has the unknown value %d", req.Rollback)
	}
	o, err := update(ctx, s, store.Services, req.ServiceID, req.ServiceVersion, req.Spec, rule)
	if err != nil {
		return nil, err
	}
	return &api.UpdateServiceResponse{Service: o}, nil
}

// RemoveService removes a service and leaves its tasks to those who wrote them.
func (s *Server) RemoveService(ctx context.Context, req *api.RemoveServiceRequest) (*api.RemoveServiceResponse, error) {
	if err := remove(ctx, s, store.Services, req.ServiceID, objects.RemoveService); err != nil {
		return nil, err
	}
	return &api.RemoveServiceResponse{}, nil
}

// ListServices returns services in the order of their IDs.
func (s *Server) ListServices(ctx context.Context, req *api.ListServicesRequest) (*api.ListServicesResponse, error) {
	f := newFilter(req.Filters, func(o *api.Service) map[string]string { return o.Spec.Annotations.Labels })
	f.any(req.Filters.GetRuntimes(), store.ByRuntime)
	p, err := list(ctx, s, store.Services, req, f)
	if err != nil {
		return nil, err
	}
	return &api.ListServicesResponse{Services: p.objects, Continue: p.next, Remaining: p.remaining}, nil
}
