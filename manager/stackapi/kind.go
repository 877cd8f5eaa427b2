package stackapi

import (
	"bytes"
	"reflect"
	"strings"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// kind is one kind of object that stacks are made of: T is its type and S its spec's.
type kind[T objects.Object[T], S any] struct {
	table       *store.Table[T]
	field       string // of the request, with the specs
	external    string // of the request, with the names of those outside the stack
	spec        func(T) *S
	annotations func(*S) *api.Annotations

	create func(*store.Tx, *S) (T, error)
	update func(tx *store.Tx, id string, version *api.Version, spec *S) (T, error)
	remove func(tx *store.Tx, id string) (T, error)
	// differs tells whether an object must be updated to the wanted spec. It fails if the
	// difference is in what does not change; path is where the request has the spec.
	differs func(path string, have, want *S) (bool, error)
}

func services() kind[*api.Service, api.ServiceSpec] {
	return kind[*api.Service, api.ServiceSpec]{
		table: store.Services, field: "services",
		spec:        func(o *api.Service) *api.ServiceSpec { return &o.Spec },
		annotations: func(s *api.ServiceSpec) *api.Annotations { return &s.Annotations },
		create:      objects.CreateService, update: objects.UpdateService, remove: objects.RemoveService,
		differs: differentService,
	}
}

func networks() kind[*api.Network, api.NetworkSpec] {
	return kind[*api.Network, api.NetworkSpec]{
		table: store.Networks, field: "networks", external: "external_networks",
		spec:        func(o *api.Network) *api.NetworkSpec { return &o.Spec },
		annotations: func(s *api.NetworkSpec) *api.Annotations { return &s.Annotations },
		create:      objects.CreateNetwork, remove: objects.RemoveNetwork,
		differs: differentNetwork,
	}
}

func secrets() kind[*api.Secret, api.SecretSpec] {
	return kind[*api.Secret, api.SecretSpec]{
		table: store.Secrets, field: "secrets", external: "external_secrets",
		spec:        func(o *api.Secret) *api.SecretSpec { return &o.Spec },
		annotations: func(s *api.SecretSpec) *api.Annotations { return &s.Annotations },
		create:      objects.CreateSecret, update: objects.UpdateSecret, remove: objects.RemoveSecret,
		differs: func(path string, have, want *api.SecretSpec) (bool, error) {
			plain := *want
			plain.Annotations.Labels = have.Annotations.Labels
			return differentData(path, "secret", have, &plain, have.Data, want.Data, !have.Equal(want))
		},
	}
}

func configs() kind[*api.Config, api.ConfigSpec] {
	return kind[*api.Config, api.ConfigSpec]{
		table: store.Configs, field: "configs", external: "external_configs",
		spec:        func(o *api.Config) *api.ConfigSpec { return &o.Spec },
		annotations: func(s *api.ConfigSpec) *api.Annotations { return &s.Annotations },
		create:      objects.CreateConfig, update: objects.UpdateConfig, remove: objects.RemoveConfig,
		differs: func(path string, have, want *api.ConfigSpec) (bool, error) {
			plain := *want
			plain.Annotations.Labels = have.Annotations.Labels
			return differentData(path, "config", have, &plain, have.Data, want.Data, !have.Equal(want))
		},
	}
}

func differentService(path string, have, want *api.ServiceSpec) (bool, error) {
	if from, to := mode(have), mode(want); from != to && to != "" {
		return false, errkind.Field(path+".mode", "the mode of a service does not change: it is %s, not %s", from, to).
			WithHint("deploy the stack without this service first, or give the service another name")
	}
	return !have.Equal(want), nil
}

// mode gives the name of a service's mode.
func mode(s *api.ServiceSpec) string {
	switch s.Mode.(type) {
	case *api.ServiceSpec_Replicated:
		return "replicated"
	case *api.ServiceSpec_Global:
		return "global"
	case *api.ServiceSpec_ReplicatedJob:
		return "replicated-job"
	case *api.ServiceSpec_GlobalJob:
		return "global-job"
	}
	return ""
}

func differentNetwork(path string, have, want *api.NetworkSpec) (bool, error) {
	if have.Equal(want) {
		return false, nil
	}
	found := differences(reflect.ValueOf(have), reflect.ValueOf(want))
	said := make([]string, len(found))
	field := path
	for i, d := range found {
		said[i] = d.String()
		if i == 0 {
			field = path + d.path
		}
	}
	return false, errkind.Field(field, "a network does not change; what differs: %s", strings.Join(said, "; ")).
		WithHint("give the network another name, or remove the stack and deploy it again")
}

// differentData is differs for secrets and configs, of which only labels change. plain is the
// wanted spec with the labels of the object; no value of either is told.
func differentData[S any](path, noun string, have, plain *S, old, data []byte, differs bool) (bool, error) {
	hint := "give the " + noun + " another name, such as one that ends in the number of its version"
	if !bytes.Equal(old, data) {
		return false, errkind.Field(path+".data", "data differs, and a %s does not change", noun).WithHint("%s", hint)
	}
	found := differences(reflect.ValueOf(have), reflect.ValueOf(plain))
	if len(found) == 0 {
		return differs, nil
	}
	return false, errkind.Field(path+found[0].path, "differs, and only labels of a %s change", noun).WithHint("%s", hint)
}

// change says what was done to an object.
func (k kind[T, S]) change(action holdfast.StackChange_Action, o T) *holdfast.StackChange {
	return &holdfast.StackChange{Action: action, Kind: k.table.Kind(), ID: o.GetID(), Name: k.table.Name(o)}
}

// named returns the object with a name, without regard to case, or the zero T.
func (k kind[T, S]) named(tx store.ReadTx, name string) (T, error) {
	o, err := objects.FindByName(tx, k.table, name)
	if errkind.Is(err, errkind.NotFound) {
		var zero T
		return zero, nil
	}
	return o, err
}
