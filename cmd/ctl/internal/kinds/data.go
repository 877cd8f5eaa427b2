package kinds

import (
	"context"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/cli"
)

// Secrets returns the kind of secrets. Their data is never shown, whatever a manager sends.
func Secrets() Kind[*api.Secret] {
	name := func(s *api.Secret) string { return s.Spec.Annotations.Name }
	return Kind[*api.Secret]{
		Noun:   "secret",
		Number: holdfast.Kind_KIND_SECRET,
		Unwrap: func(o *holdfast.Object) *api.Secret { return WithoutData(o.GetSecret().Copy()) },
		View: cli.View[*api.Secret]{
			ID:   (*api.Secret).GetID,
			Name: name,
			Columns: []cli.Column[*api.Secret]{
				column("ID", (*api.Secret).GetID),
				column("NAME", name),
				column("CREATED", func(s *api.Secret) string { return FormatTime(s.Meta.CreatedAt) }),
				column("UPDATED", func(s *api.Secret) string { return FormatTime(s.Meta.UpdatedAt) }),
			},
		},
		Labels: func(s *api.Secret) map[string]string { return s.Spec.Annotations.Labels },
		Get: func(ctx context.Context, c *client.Client, id string) (*api.Secret, error) {
			r, err := c.Control().GetSecret(ctx, &api.GetSecretRequest{SecretID: id})
			return WithoutData(r.GetSecret()), err
		},
		Remove: func(ctx context.Context, c *client.Client, id string) error {
			_, err := c.Control().RemoveSecret(ctx, &api.RemoveSecretRequest{SecretID: id})
			return err
		},
	}
}

// WithoutData takes the data out of a secret that may be printed.
func WithoutData(s *api.Secret) *api.Secret {
	if s != nil {
		s.Spec.Data = nil
	}
	return s
}

// Configs returns the kind of configs.
func Configs() Kind[*api.Config] {
	name := func(s *api.Config) string { return s.Spec.Annotations.Name }
	return Kind[*api.Config]{
		Noun:   "config",
		Number: holdfast.Kind_KIND_CONFIG,
		Unwrap: (*holdfast.Object).GetConfig,
		View: cli.View[*api.Config]{
			ID:   (*api.Config).GetID,
			Name: name,
			Columns: []cli.Column[*api.Config]{
				column("ID", (*api.Config).GetID),
				column("NAME", name),
				column("CREATED", func(s *api.Config) string { return FormatTime(s.Meta.CreatedAt) }),
				column("UPDATED", func(s *api.Config) string { return FormatTime(s.Meta.UpdatedAt) }),
			},
		},
		Labels: func(s *api.Config) map[string]string { return s.Spec.Annotations.Labels },
		Get: func(ctx context.Context, c *client.Client, id string) (*api.Config, error) {
			r, err := c.Control().GetConfig(ctx, &api.GetConfigRequest{ConfigID: id})
			return r.GetConfig(), err
		},
		Remove: func(ctx context.Context, c *client.Client, id string) error {
			_, err := c.Control().RemoveConfig(ctx, &api.RemoveConfigRequest{ConfigID: id})
			return err
		},
	}
}
