package objects

import (
	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// maxConfig is the size that the data of a config is smaller than.
const maxConfig = 1_024_000

func configs() dataKind[*api.Config] {
	return dataKind[*api.Config]{
		table: store.Configs, limit: maxConfig, users: store.ByConfigID,
		parts: func(o *api.Config) dataParts { return configParts(&o.Spec) },
	}
}

func configParts(s *api.ConfigSpec) dataParts {
	return dataParts{&s.Annotations, s.Data, s.Templating, nil}
}

// CreateConfig creates a config.
func CreateConfig(tx *store.Tx, spec *api.ConfigSpec) (*api.Config, error) {
	if spec == nil {
		return nil, errkind.Field("spec", "is empty").On(store.Configs.Noun(), "")
	}
	return configs().create(tx, &api.Config{Spec: *spec})
}

// UpdateConfig replaces the labels of a config, which must not have changed since version.
// The data in spec may be left out.
func UpdateConfig(tx *store.Tx, id string, version *api.Version, spec *api.ConfigSpec) (*api.Config, error) {
	if spec == nil {
		return nil, errkind.Field("spec", "is empty").On(store.Configs.Noun(), id)
	}
	return configs().update(tx, id, version, configParts(spec))
}

// RemoveConfig removes a config that no service uses.
func RemoveConfig(tx *store.Tx, id string) (*api.Config, error) { return configs().remove(tx, id) }
