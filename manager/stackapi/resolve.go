package stackapi

import (
	"errors"
	"fmt"
	"strings"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// referent is an object that a service may refer to.
type referent struct{ id, name string }

// findExternal looks up the objects outside the stack. It fails with all that are missing.
func (d *deployment) findExternal(want *desired) error {
	var missing missing
	var errs [3]error
	d.networks, errs[0] = external(d.tx, networks(), want.networks, &missing)
	d.secrets, errs[1] = external(d.tx, secrets(), want.secrets, &missing)
	d.configs, errs[2] = external(d.tx, configs(), want.configs, &missing)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	return missing.error()
}

// external looks up the external objects of a kind.
func external[T objects.Object[T], S any](
	tx store.ReadTx, k kind[T, S], want wanted[S], missing *missing,
) (map[string]referent, error) {
	found := map[string]referent{}
	for i, name := range want.external {
		o, err := k.named(tx, name)
		if err != nil {
			return nil, err
		}
		var zero T
		if o == zero {
			other, err := elsewhere(tx, k, name)
			if err != nil {
				return nil, err
			}
			missing.add(fmt.Sprintf("%s[%d]", k.external, i), k.table.Noun(), name, other)
			continue
		}
		found[strings.ToLower(name)] = referent{id: o.GetID(), name: k.table.Name(o)}
	}
	return found, nil
}

// elsewhere returns the name of the newest object that a stack has for a name, or "".
func elsewhere[T objects.Object[T], S any](tx store.ReadTx, k kind[T, S], name string) (string, error) {
	if k.contents == nil {
		return "", nil
	}
	found, err := k.table.Find(tx, store.ByNamePrefix(name+"-"))
	if err != nil {
		return "", err
	}
	newest, at := "", uint64(0)
	for o := range found {
		if created := o.GetMeta().CreatedVersion.Index; strings.EqualFold(k.labels(o)[nameLabel], name) && created >= at {
			newest, at = k.table.Name(o), created
		}
	}
	return newest, nil
}

// missing are external objects that do not exist.
type missing struct {
	field string // of the first
	said  []string
	count int
}

// maxMissing is how many missing objects an error names.
const maxMissing = 32

// add notes one. other is the object that a stack has for the name, if any.
func (m *missing) add(field, noun, name, other string) {
	if m.count++; m.count > maxMissing {
		return
	}
	if m.field == "" {
		m.field = field
	}
	said := fmt.Sprintf("%s %q is external and does not exist", noun, name)
	if other != "" {
		said += fmt.Sprintf(" (a stack has %s for it)", other)
	}
	m.said = append(m.said, said)
}

func (m *missing) error() error {
	if m.count == 0 {
		return nil
	}
	if more := m.count - len(m.said); more > 0 {
		m.said = append(m.said, fmt.Sprintf("and %d more", more))
	}
	it := "it"
	if m.count > 1 {
		it = "them"
	}
	return errkind.Field(m.field, "%s", strings.Join(m.said, "; ")).WithHint("create %s first", it)
}

// resolve returns a copy of a service's spec that refers to networks, secrets and configs by
// ID. A service that was updated by force stays at its number of times, unless the spec has
// one of its own: a deployment restarts nothing that it does not change.
func (d *deployment) resolve(path string, given *api.ServiceSpec) (*api.ServiceSpec, error) {
	spec := given.Copy()
	for _, list := range []struct {
		path     string
		networks []*api.NetworkAttachmentConfig
	}{{path + ".task.networks", spec.Task.Networks}, {path + ".networks", spec.Networks}} {
		for i, a := range list.networks {
			r, err := refer(d.networks, networks(), fmt.Sprintf("%s[%d].target", list.path, i), a.GetTarget())
			if err != nil {
				return nil, within(err, "", store.Services.Noun(), spec.Annotations.Name)
			}
			a.Target = r.id
		}
	}
	container := spec.Task.GetContainer()
	for i, s := range container.GetSecrets() {
		at := fmt.Sprintf("%s.task.container.secrets[%d].secret_name", path, i)
		r, err := refer(d.secrets, secrets(), at, s.GetSecretName())
		if err != nil {
			return nil, within(err, "", store.Services.Noun(), spec.Annotations.Name)
		}
		s.SecretID, s.SecretName = r.id, r.name
	}
	for i, c := range container.GetConfigs() {
		at := fmt.Sprintf("%s.task.container.configs[%d].config_name", path, i)
		r, err := refer(d.configs, configs(), at, c.GetConfigName())
		if err != nil {
			return nil, within(err, "", store.Services.Noun(), spec.Annotations.Name)
		}
		c.ConfigID, c.ConfigName = r.id, r.name
	}
	if err := d.resolveCredentials(path, spec); err != nil {
		return nil, err
	}
	if spec.Task.ForceUpdate == 0 {
		have, err := services().named(d.tx, spec.Annotations.Name)
		if err != nil {
			return nil, err
		}
		if have != nil {
			spec.Task.ForceUpdate = have.Spec.Task.ForceUpdate
		}
	}
	return spec, nil
}

// resolveCredentials puts the ID of a config that gives the container's credentials in the place
// of its name.
func (d *deployment) resolveCredentials(path string, spec *api.ServiceSpec) error {
	from, ok := spec.Task.GetContainer().GetPrivileges().GetCredentialSpec().GetSource().(*api.Privileges_CredentialSpec_Config)
	if !ok {
		return nil
	}
	r, err := refer(d.configs, configs(), path+".task.container.privileges.credential_spec.config", from.Config)
	if err != nil {
		return within(err, "", store.Services.Noun(), spec.Annotations.Name)
	}
	from.Config = r.id
	return nil
}

// refer returns what a name in a service's spec stands for: an object that the request wants,
// or names as external. Others are not looked for, so that a mistaken name is never that of
// another stack's object.
func refer[T objects.Object[T], S any](
	known map[string]referent, k kind[T, S], path, name string,
) (referent, error) {
	if r, ok := known[strings.ToLower(name)]; ok {
		return r, nil
	}
	if name == "" {
		return referent{}, errkind.Field(path, "is empty")
	}
	return referent{}, errkind.Field(path, "%s %q is neither in %s nor in %s of the request",
		k.table.Noun(), name, k.field, k.external).
		WithHint("declare the %s in the stack, or as external", k.table.Noun())
}
