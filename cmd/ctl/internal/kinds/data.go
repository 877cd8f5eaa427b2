package kinds

import (
	"context"
	"iter"

	"holdfast/api"
	"holdfast/client"
	"holdfast/internal/cli"
)

// Secrets returns the kind of secrets. Their data is never shown, whatever a manager sends.
func Secrets() Kind[*api.Secret] {
	name := func(s *api.Secret) string { return s.Spec.Annotations.Name }
	return Kind[*api.Secret]{
		Noun: "secret",
		View: cli.View[*api.Secret]{
			ID:   (*api.Secret).GetID,
			Name: name,
			Columns: []cli.Column[*api.Secret]{
				column("ID", (*api.Secret).GetID),
				column("NAME", name),
				column("CREATED", func(s *api.Secret) string { return formatTime(s.Meta.CreatedAt) }),
				column("UPDATED", func(s *api.Secret) string { return formatTime(s.Meta.UpdatedAt) }),
			},
		},
		Labels: func(s *api.Secret) map[string]string { return s.Spec.Annotations.Labels },
		List: func(ctx context.Context, c *client.Client, q Query) iter.Seq2[*api.Secret, error] {
			return withoutData(c.Secrets(ctx, &api.ListSecretsRequest_Filters{
				Names: q.Names, NamePrefixes: q.NamePrefixes, IDPrefixes: q.IDPrefixes, Labels: q.Labels,
			}))
		},
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

func withoutData(seq iter.Seq2[*api.Secret, error]) iter.Seq2[*api.Secret, error] {
	return func(yield func(*api.Secret, error) bool) {
		for s, err := range seq {
			if !yield(WithoutData(s), err) {
				return
			}
		}
	}
}

// Configs returns the kind of configs.
func Configs() Kind[*api.Config] {
	name := func(s *api.Config) string { return s.Spec.Annotations.Name }
	return Kind[*api.Config]{
		Noun: "config",
		View: cli.View[*api.Config]{
			ID:   (*api.Config).GetID,
			Name: name,
			Columns: []cli.Column[*api.Config]{
				column("ID", (*api.Config).GetID),
				column("NAME", name),
				column("CREATED", func(s *api.Config) string { return formatTime(s.Meta.CreatedAt) }),
				column("UPDATED", func(s *api.Config) string { return formatTime(s.Meta.UpdatedAt) }),
			},
		},
		Labels: func(s *api.Config) map[string]string { return s.Spec.Annotations.Labels },
		List: func(ctx context.Context, c *client.Client, q Query) iter.Seq2[*api.Config, error] {
			return c.Configs(ctx, &api.ListConfigsRequest_Filters{
				Names: q.Names, NamePrefixes: q.NamePrefixes, IDPrefixes: q.IDPrefixes, Labels: q.Labels,
			})
		},
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
