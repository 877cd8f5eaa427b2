package main

import (
	"slices"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/cmd/ctl/internal/kinds"
)

// stackLabel says which stack an object belongs to.
const stackLabel = "com.docker.stack.namespace"

// idOf is the ID of the object with a name, or "".
func (f *fake) idOf(kind holdfast.Kind, name string) string {
	switch kind {
	case holdfast.Kind_KIND_SERVICE:
		return idNamed(f.services, func(o *api.Service) string { return o.Spec.Annotations.Name }, name)
	case holdfast.Kind_KIND_NETWORK:
		return idNamed(f.networks, func(o *api.Network) string { return o.Spec.Annotations.Name }, name)
	case holdfast.Kind_KIND_SECRET:
		return idNamed(f.secrets, func(o *api.Secret) string { return o.Spec.Annotations.Name }, name)
	}
	return idNamed(f.configs, func(o *api.Config) string { return o.Spec.Annotations.Name }, name)
}

func idNamed[T interface{ GetID() string }](all []T, nameOf func(T) string, name string) string {
	for _, o := range all {
		if nameOf(o) == name {
			return o.GetID()
		}
	}
	return ""
}

// apply makes an object what a difference says.
func (f *fake) apply(d *holdfast.ObjectDiff, want *holdfast.Object) {
	id := f.idOf(d.Kind, d.Name)
	f.services = slices.DeleteFunc(f.services, func(o *api.Service) bool { return o.ID == id })
	f.networks = slices.DeleteFunc(f.networks, func(o *api.Network) bool { return o.ID == id })
	f.secrets = slices.DeleteFunc(f.secrets, func(o *api.Secret) bool { return o.ID == id })
	f.configs = slices.DeleteFunc(f.configs, func(o *api.Config) bool { return o.ID == id })
	if want == nil {
		return
	}
	if id == "" {
		id = f.newID(kinds.Of(d.Kind).Noun)
	}
	want = want.Copy()
	switch d.Kind {
	case holdfast.Kind_KIND_SERVICE:
		f.services = append(f.services, &api.Service{ID: id, Meta: f.meta(), Spec: want.GetService().Spec})
	case holdfast.Kind_KIND_NETWORK:
		f.networks = append(f.networks, &api.Network{ID: id, Meta: f.meta(), Spec: want.GetNetwork().Spec})
	case holdfast.Kind_KIND_SECRET:
		f.secrets = append(f.secrets, &api.Secret{ID: id, Meta: f.meta(), Spec: want.GetSecret().Spec})
	case holdfast.Kind_KIND_CONFIG:
		f.configs = append(f.configs, &api.Config{ID: id, Meta: f.meta(), Spec: want.GetConfig().Spec})
	}
}

// wanted are the objects of a request, with their specs only, by their names in place of IDs.
func wanted(r *holdfast.DeployRequest) map[key]*holdfast.Object {
	all := map[key]*holdfast.Object{}
	for i := range r.Services {
		o := &holdfast.Object{Target: &holdfast.Object_Service{Service: &api.Service{Spec: r.Services[i]}}}
		all[key{holdfast.Kind_KIND_SERVICE, r.Services[i].Annotations.Name}] = o
	}
	for i := range r.Networks {
		o := &holdfast.Object{Target: &holdfast.Object_Network{Network: &api.Network{Spec: r.Networks[i]}}}
		all[key{holdfast.Kind_KIND_NETWORK, r.Networks[i].Annotations.Name}] = o
	}
	for i := range r.Secrets {
		o := &holdfast.Object{Target: &holdfast.Object_Secret{Secret: &api.Secret{Spec: r.Secrets[i]}}}
		all[key{holdfast.Kind_KIND_SECRET, r.Secrets[i].Annotations.Name}] = o
	}
	for i := range r.Configs {
		o := &holdfast.Object{Target: &holdfast.Object_Config{Config: &api.Config{Spec: r.Configs[i]}}}
		all[key{holdfast.Kind_KIND_CONFIG, r.Configs[i].Annotations.Name}] = o
	}
	return all
}

// live are the objects of a stack that are there, as wanted gives them.
func (f *fake) live(name string) map[key]*holdfast.Object {
	r := &holdfast.DeployRequest{}
	is := func(a api.Annotations) bool { return a.Labels[stackLabel] == name }
	for _, o := range f.services {
		if is(o.Spec.Annotations) {
			r.Services = append(r.Services, o.Spec)
		}
	}
	for _, o := range f.networks {
		if is(o.Spec.Annotations) {
			r.Networks = append(r.Networks, o.Spec)
		}
	}
	for _, o := range f.secrets {
		if is(o.Spec.Annotations) {
			r.Secrets = append(r.Secrets, o.Spec)
		}
	}
	for _, o := range f.configs {
		if is(o.Spec.Annotations) {
			r.Configs = append(r.Configs, o.Spec)
		}
	}
	return wanted(r.Copy())
}
