package controlapi

import (
	"context"

	"holdfast/api"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// CreateSecret creates a secret. The reply does not hold its data.
func (s *Server) CreateSecret(ctx context.Context, req *api.CreateSecretRequest) (*api.CreateSecretResponse, error) {
	o, err := create(ctx, s, store.Secrets, req.Spec, objects.CreateSecret)
	if err != nil {
		return nil, err
	}
	return &api.CreateSecretResponse{Secret: objects.RedactSecret(o)}, nil
}

// GetSecret returns a secret without its data.
func (s *Server) GetSecret(ctx context.Context, req *api.GetSecretRequest) (*api.GetSecretResponse, error) {
	o, err := get(ctx, s, store.Secrets, req.SecretID)
	if err != nil {
		return nil, err
	}
	return &api.GetSecretResponse{Secret: objects.RedactSecret(o)}, nil
}

// UpdateSecret replaces the labels of a secret. The reply does not hold its data.
func (s *Server) UpdateSecret(ctx context.Context, req *api.UpdateSecretRequest) (*api.UpdateSecretResponse, error) {
	o, err := update(ctx, s, store.Secrets, req.SecretID, req.SecretVersion, req.Spec, objects.UpdateSecret)
	if err != nil {
		return nil, err
	}
	return &api.UpdateSecretResponse{Secret: objects.RedactSecret(o)}, nil
}

// RemoveSecret removes a secret that no service uses.
func (s *Server) RemoveSecret(ctx context.Context, req *api.RemoveSecretRequest) (*api.RemoveSecretResponse, error) {
	if err := remove(ctx, s, store.Secrets, req.SecretID, objects.RemoveSecret); err != nil {
		return nil, err
	}
	return &api.RemoveSecretResponse{}, nil
}

// ListSecrets returns secrets without their data, in the order of their IDs.
func (s *Server) ListSecrets(ctx context.Context, req *api.ListSecretsRequest) (*api.ListSecretsResponse, error) {
	f := newFilter(req.Filters, func(o *api.Secret) map[string]string { return o.Spec.Annotations.Labels })
	f.view = objects.RedactSecret
	p, err := list(ctx, s, store.Secrets, req, f)
	if err != nil {
		return nil, err
	}
	return &api.ListSecretsResponse{Secrets: p.objects, Continue: p.next, Remaining: p.remaining}, nil
}
