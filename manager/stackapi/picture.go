package stackapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// picture is what a stack is made of in one of its states, by kinds and by the stack's own
// names without case. So states can be compared that have objects of other names and IDs.
type picture map[holdfast.Kind]map[string]*entry

func (p picture) add(kind holdfast.Kind, e *entry) {
	if p[kind] == nil {
		p[kind] = map[string]*entry{}
	}
	p[kind][strings.ToLower(e.name)] = e
}

// entry is an object in a picture.
type entry struct {
	id, name string
	object   message // nothing but a spec: by the stack's names, and without data
	data     *datum  // of a secret or config
	uses     []use   // of a service
}

// use is a secret or config that a service is given.
type use struct {
	field string // "secrets" or "configs"
	index int
	name  string
	datum
}

// datum tells what is in a secret or a config apart from what is in others. The digest stays in
// the manager, but for the beginning of a config's.
type datum struct {
	object string // the name of the object, if there is one
	digest string // of the data; "" if the object is gone
	told   bool   // the digest may be told
}

// same tells whether the data is the same, as far as it is known.
func (d datum) same(o datum) bool {
	if d.object != "" && strings.EqualFold(d.object, o.object) {
		return true
	}
	return d.digest != "" && d.digest == o.digest
}

// short tells the data from other data: it is the beginning of its digest. That of a secret is made
// with a key, so that nobody can try out what the secret is; it can be compared with others that
// were made with that key. Where a config is gone, the end of its name has the digest.
func (d datum) short(key []byte) string {
	at := len(d.object) - suffixLength
	switch {
	case d.digest != "" && d.told:
		return d.digest[:suffixLength]
	case d.digest != "":
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(d.digest))
		return hex.EncodeToString(mac.Sum(nil))[:suffixLength]
	case d.told && at > 0 && strings.Trim(d.object[at:], "0123456789abcdef") == "":
		return d.object[at:]
	}
	return ""
}

func datumOf[T objects.Object[T], S any](k kind[T, S], name string, spec *S) datum {
	sum := sha256.Sum256(*k.contents.data(spec))
	return datum{object: name, digest: hex.EncodeToString(sum[:]), told: k.contents.told}
}

// contentEntry is the entry of a secret or config that has a name, labels, and the rest of a spec.
func contentEntry[T objects.Object[T], S any](
	k kind[T, S], id, name string, labels map[string]string, spec *S, d datum,
) *entry {
	c := *spec
	a := k.annotations(&c)
	a.Name, a.Labels = name, maps.Clone(labels)
	delete(a.Labels, nameLabel)
	*k.contents.data(&c) = nil
	return &entry{id: id, name: name, object: k.object(&c), data: &d}
}

// liveEntry is the entry of an object of a stack as it is.
func liveEntry[T objects.Object[T], S any](tx store.ReadTx, k kind[T, S], stack string, o T) (*entry, error) {
	name := k.table.Name(o)
	if k.contents != nil {
		own := logical(name, k.labels(o))
		return contentEntry(k, o.GetID(), own, k.labels(o), k.spec(o), datumOf(k, name, k.spec(o))), nil
	}
	if s, ok := any(o).(*api.Service); ok {
		l := looker{tx: tx, stack: stack}
		e := l.service(&s.Spec)
		e.id = s.ID
		return e, nil
	}
	return &entry{id: o.GetID(), name: name, object: k.object(k.spec(o))}, nil
}

// looker finds what a service refers to: by IDs in what is there, or in what a request wants.
type looker struct {
	tx    store.ReadTx
	stack string
	want  picture // of the request; nil for what is there
}

// service is the entry of a service.
func (l *looker) service(given *api.ServiceSpec) *entry {
	spec := given.Copy()
	e := &entry{name: spec.Annotations.Name, object: &api.Service{Spec: *spec}}
	for _, list := range [][]*api.NetworkAttachmentConfig{spec.Task.Networks, spec.Networks} {
		for _, a := range list {
			a.Target = l.network(a.Target)
		}
	}
	container := spec.Task.GetContainer()
	for i, r := range container.GetSecrets() {
		var d datum
		r.SecretName, d = lookUp(l, secrets(), r.SecretID, r.SecretName)
		r.SecretID = ""
		e.uses = append(e.uses, use{"secrets", i, r.SecretName, d})
	}
	for i, r := range container.GetConfigs() {
		var d datum
		r.ConfigName, d = lookUp(l, configs(), r.ConfigID, r.ConfigName)
		r.ConfigID = ""
		e.uses = append(e.uses, use{"configs", i, r.ConfigName, d})
	}
	from, ok := container.GetPrivileges().GetCredentialSpec().GetSource().(*api.Privileges_CredentialSpec_Config)
	if ok {
		from.Config, _ = lookUp(l, configs(), from.Config, from.Config)
	}
	return e
}

// network returns the name of a network that a service is in.
func (l *looker) network(target string) string {
	if l.want == nil {
		if n := store.Networks.Get(l.tx, target); n != nil {
			return n.Spec.Annotations.Name
		}
		return target
	}
	if e := l.want[holdfast.Kind_KIND_NETWORK][strings.ToLower(target)]; e != nil {
		return e.name
	}
	if n, err := networks().named(l.tx, target); err == nil && n != nil {
		return n.Spec.Annotations.Name
	}
	return target
}

// lookUp returns the name of a secret or config that a service refers to, and what is in it.
func lookUp[T objects.Object[T], S any](l *looker, k kind[T, S], id, name string) (string, datum) {
	var zero T
	if l.want == nil {
		o := k.table.Get(l.tx, id)
		if o == zero {
			return name, datum{object: name}
		}
		stored := k.table.Name(o)
		d := datumOf(k, stored, k.spec(o))
		if k.labels(o)[store.StackLabel] == l.stack {
			stored = logical(stored, k.labels(o))
		}
		return stored, d
	}
	if e := l.want[k.table.Kind()][strings.ToLower(name)]; e != nil {
		return e.name, *e.data
	}
	if o, err := k.named(l.tx, name); err == nil && o != zero {
		return k.table.Name(o), datumOf(k, k.table.Name(o), k.spec(o))
	}
	return name, datum{object: name}
}

// wantedPicture is the picture of what a request wants.
func wantedPicture(tx store.ReadTx, want *desired) (picture, error) {
	p := picture{}
	for i := range want.networks.specs {
		spec := &want.networks.specs[i]
		p.add(holdfast.Kind_KIND_NETWORK, &entry{name: spec.Annotations.Name, object: &api.Network{Spec: *spec}})
	}
	if err := wantedContents(tx, p, secrets(), want.secrets); err != nil {
		return nil, err
	}
	if err := wantedContents(tx, p, configs(), want.configs); err != nil {
		return nil, err
	}
	l := looker{tx: tx, stack: want.name, want: p}
	for i := range want.services.specs {
		p.add(holdfast.Kind_KIND_SERVICE, l.service(&want.services.specs[i]))
	}
	return p, nil
}

func wantedContents[T objects.Object[T], S any](tx store.ReadTx, p picture, k kind[T, S], want wanted[S]) error {
	var zero T
	for i := range want.specs {
		spec := &want.specs[i]
		a := k.annotations(spec)
		if want.staged[i] == "" {
			p.add(k.table.Kind(), contentEntry(k, "", a.Name, a.Labels, spec, datumOf(k, "", spec)))
			continue
		}
		o, err := k.named(tx, want.staged[i])
		if err != nil {
			return err
		}
		if o == zero {
			d := datum{object: want.staged[i], told: k.contents.told}
			p.add(k.table.Kind(), contentEntry(k, "", a.Name, a.Labels, spec, d))
			continue
		}
		d := datumOf(k, k.table.Name(o), k.spec(o))
		p.add(k.table.Kind(), contentEntry(k, o.GetID(), a.Name, a.Labels, k.spec(o), d))
	}
	return nil
}

// livePicture is the picture of what is there: services and networks, and those secrets and
// configs that the services use or the release that is deployed names. Others are there for the
// releases of before, or staged.
func livePicture(tx store.ReadTx, stack string) (picture, error) {
	p := picture{}
	all, err := readRecords(tx, stack)
	if err != nil {
		return nil, err
	}
	deployed := deployedOf(all)
	named := map[string]bool{}
	if deployed != nil {
		deployed.addObjects(named)
	}
	found, err := store.Services.FindAll(tx, store.ByStack(stack))
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, o := range found {
		for _, r := range o.Spec.Task.GetContainer().GetSecrets() {
			used[r.SecretID] = true
		}
		for _, r := range o.Spec.Task.GetContainer().GetConfigs() {
			used[r.ConfigID] = true
		}
		if err := addLive(tx, p, services(), stack, o); err != nil {
			return nil, err
		}
	}
	nets, err := store.Networks.FindAll(tx, store.ByStack(stack))
	if err != nil {
		return nil, err
	}
	for _, o := range nets {
		if err := addLive(tx, p, networks(), stack, o); err != nil {
			return nil, err
		}
	}
	if err := liveContents(tx, p, secrets(), stack, named, used, deployed == nil); err != nil {
		return nil, err
	}
	return p, liveContents(tx, p, configs(), stack, named, used, deployed == nil)
}

func addLive[T objects.Object[T], S any](tx store.ReadTx, p picture, k kind[T, S], stack string, o T) error {
	e, err := liveEntry(tx, k, stack, o)
	if err == nil {
		p.add(k.table.Kind(), e)
	}
	return err
}

// liveContents adds the secrets or configs that are live. What a release names goes before what
// a service uses besides; old tells that those without a name of the stack's own are live, too.
func liveContents[T objects.Object[T], S any](
	tx store.ReadTx, p picture, k kind[T, S], stack string, named, used map[string]bool, old bool,
) error {
	found, err := k.table.FindAll(tx, store.ByStack(stack))
	if err != nil {
		return err
	}
	for _, pick := range []func(T) bool{
		func(o T) bool { _, current := k.labels(o)[nameLabel]; return old && !current },
		func(o T) bool { return used[o.GetID()] },
		func(o T) bool { return named[o.GetID()] },
	} {
		for _, o := range found { // later ones take the place of others with their names
			if pick(o) {
				if err := addLive(tx, p, k, stack, o); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// path is the path of what a service is given.
func (u use) path() string { return fmt.Sprintf("spec.task.container.%s[%d].data", u.field, u.index) }

// match finds what is used under a name.
func (e *entry) match(u use) (use, bool) {
	for _, o := range e.uses {
		if o.field == u.field && strings.EqualFold(o.name, u.name) {
			return o, true
		}
	}
	return use{}, false
}
