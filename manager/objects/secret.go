package objects

import (
	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// maxSecret is the size that the data of a secret is smaller than.
const maxSecret = 512_000

func secrets() dataKind[*api.Secret] {
	return dataKind[*api.Secret]{
		table: store.Secrets, limit: maxSecret, users: store.BySecretID,
		parts: func(o *api.Secret) dataParts { return secretParts(&o.Spec) },
	}
}

func secretParts(s *api.SecretSpec) dataParts {
	return dataParts{&s.Annotations, s.Data, s.Templating, s.Driver}
}

// CreateSecret creates a secret. The result holds its data: reply with RedactSecret's.
func CreateSecret(tx *store.Tx, spec *api.SecretSpec) (*api.Secret, error) {
	if spec == nil {
		return nil, errkind.Field("spec", "is empty").On(store.Secrets.Noun(), "")
	}
	return secrets().create(tx, &api.Secret{Spec: *spec})
}

// UpdateSecret replaces the labels of a secret, which must not have changed since version.
// The data in spec may be left out. The result holds the data: reply with RedactSecret's.
func UpdateSecret(tx *store.Tx, id string, version *api.Version, spec *api.SecretSpec) (*api.Secret, error) {
	if spec == nil {
		return nil, errkind.Field("spec", "is empty").On(store.Secrets.Noun(), id)
	}
	return secrets().update(tx, id, version, secretParts(spec))
}

// RemoveSecret removes a secret that no service uses. The result holds its data: reply with
// RedactSecret's.
func RemoveSecret(tx *store.Tx, id string) (*api.Secret, error) { return secrets().remove(tx, id) }
