package stackapi

import (
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
	// object is an object that has nothing but a spec.
	object func(*S) message

	create func(*store.Tx, *S) (T, error)
	update func(tx *store.Tx, id string, version *api.Version, spec *S) (T, error)
	remove func(tx *store.Tx, id string) (T, error)
	// differs tells whether an object must be updated to the wanted spec. It fails if the
	// difference is in what does not change; path is where the request has the spec. Contents
	// have none: what differs is another object.
	differs func(path string, have, want *S) (bool, error)

	contents *contents[S]
}

// contents is what a kind has whose objects are named data: secrets and configs.
type contents[S any] struct {
	staged string // field of the request, with the names of staged objects
	users  func(id string) store.By
	data   func(*S) *[]byte
	// rest is the spec without name, labels and data, and whether anything is left.
	rest func(*S) (rest message, more bool)
	// same tells whether two specs have all but name and labels in common.
	same func(a, b *S) bool
	// given tells whether a spec says where the data comes from.
	given func(*S) bool
	// told tells whether what the data is may be told, by its digest.
	told bool
}

// message is one of our messages.
type message interface {
	Marshal() ([]byte, error)
	Equal(other any) bool
}

func services() kind[*api.Service, api.ServiceSpec] {
	return kind[*api.Service, api.ServiceSpec]{
		table: store.Services, field: "services",
		spec:        func(o *api.Service) *api.ServiceSpec { return &o.Spec },
		annotations: func(s *api.ServiceSpec) *api.Annotations { return &s.Annotations },
		object:      func(s *api.ServiceSpec) message { return &api.Service{Spec: *s} },
		create:      objects.CreateService, update: objects.UpdateService, remove: objects.RemoveService,
		differs: differentService,
	}
}

func networks() kind[*api.Network, api.NetworkSpec] {
	return kind[*api.Network, api.NetworkSpec]{
		table: store.Networks, field: "networks", external: "external_networks",
		spec:        func(o *api.Network) *api.NetworkSpec { return &o.Spec },
		annotations: func(s *api.NetworkSpec) *api.Annotations { return &s.Annotations },
		object:      func(s *api.NetworkSpec) message { return &api.Network{Spec: *s} },
		create:      objects.CreateNetwork, remove: objects.RemoveNetwork,
		differs: differentNetwork,
	}
}

func secrets() kind[*api.Secret, api.SecretSpec] {
	bare := func(s *api.SecretSpec) *api.SecretSpec {
		c := *s
		c.Annotations.Name, c.Annotations.Labels = "", nil
		return &c
	}
	return kind[*api.Secret, api.SecretSpec]{
		table: store.Secrets, field: "secrets", external: "external_secrets",
		spec:        func(o *api.Secret) *api.SecretSpec { return &o.Spec },
		annotations: func(s *api.SecretSpec) *api.Annotations { return &s.Annotations },
		object:      func(s *api.SecretSpec) message { return &api.Secret{Spec: *s} },
		create:      objects.CreateSecret, update: objects.UpdateSecret, remove: objects.RemoveSecret,
		contents: &contents[api.SecretSpec]{
			staged: "staged_secrets", users: store.BySecretID,
			data: func(s *api.SecretSpec) *[]byte { return &s.Data },
			rest: func(s *api.SecretSpec) (message, bool) {
				rest := bare(s)
				rest.Data = nil
				return rest, !rest.Equal(&api.SecretSpec{})
			},
			same:  func(a, b *api.SecretSpec) bool { return bare(a).Equal(bare(b)) },
			given: func(s *api.SecretSpec) bool { return len(s.Data) > 0 || s.Driver != nil },
		},
	}
}

func configs() kind[*api.Config, api.ConfigSpec] {
	bare := func(s *api.ConfigSpec) *api.ConfigSpec {
		c := *s
		c.Annotations.Name, c.Annotations.Labels = "", nil
		return &c
	}
	return kind[*api.Config, api.ConfigSpec]{
		table: store.Configs, field: "configs", external: "external_configs",
		spec:        func(o *api.Config) *api.ConfigSpec { return &o.Spec },
		annotations: func(s *api.ConfigSpec) *api.Annotations { return &s.Annotations },
		object:      func(s *api.ConfigSpec) message { return &api.Config{Spec: *s} },
		create:      objects.CreateConfig, update: objects.UpdateConfig, remove: objects.RemoveConfig,
		contents: &contents[api.ConfigSpec]{
			staged: "staged_configs", users: store.ByConfigID, told: true,
			data: func(s *api.ConfigSpec) *[]byte { return &s.Data },
			rest: func(s *api.ConfigSpec) (message, bool) {
				rest := bare(s)
				rest.Data = nil
				return rest, !rest.Equal(&api.ConfigSpec{})
			},
			same:  func(a, b *api.ConfigSpec) bool { return bare(a).Equal(bare(b)) },
			given: func(s *api.ConfigSpec) bool { return len(s.Data) > 0 },
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

// labels returns the labels of an object.
func (k kind[T, S]) labels(o T) map[string]string { return k.annotations(k.spec(o)).Labels }
