package stackapi

import (
	"fmt"
	"strings"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// maxPasses is how often services are tried that wait for the ports of others.
const maxPasses = 8

// deployment is one run of a deployment or a removal, in a transaction.
type deployment struct {
	tx      *store.Tx
	stack   string
	request state.Request // who asked, and why
	dry     bool          // all will be given up
	changes []*holdfast.StackChange
	updates []update // of a dry run
	written int      // changes that are not UNCHANGED
	bytes   int      // of what was created and updated

	// The releases that there are, and the number of the one that is deployed in the end.
	records records
	number  uint64
	// What the archive is told before the transaction, and what it is to remove after it.
	claim *step
	gone  []*record
	// The release that is deployed again, and the IDs of the secrets and configs that it had.
	source    uint64
	sourceIDs map[string]bool

	// What services may refer to, by name without case.
	networks, secrets, configs map[string]referent
	// The names of the secrets and configs that were placed, by the stack's names, and the IDs
	// of these and of the stack's own that it calls external.
	secretNames, configNames map[string]string
	ids                      []string
	// IDs of those that were found, and that this stack or a staging of it has made.
	found map[string]bool
	// IDs of the services that were the stack's when the transaction began.
	ownServices map[string]bool
}

// update is an object before and after its update.
type update struct {
	change        *holdfast.StackChange
	before, after *entry
}

// run makes the stack's objects what is wanted. Services go before others come, so that their
// ports are free; what services can refer to comes before them and goes after them.
func (d *deployment) run(want *desired) (err error) {
	if err := d.expected(want.expect); err != nil {
		return err
	}
	if err := d.findExternal(want); err != nil {
		return err
	}
	if d.ownServices, err = idsOf(d.tx, services(), d.stack); err != nil {
		return err
	}
	d.secretNames, d.configNames, d.found = map[string]string{}, map[string]string{}, map[string]bool{}
	for _, step := range []func() error{
		func() error { return removeOthers(d, services(), want.services, want.keepOthers) },
		func() error { return placeAll(d, networks(), want.networks, d.networks) },
		func() error { return placeContents(d, secrets(), want.secrets, d.secrets, d.secretNames) },
		func() error { return placeContents(d, configs(), want.configs, d.configs, d.configNames) },
		func() error { return d.placeServices(want.services.specs) },
		func() error { return removeOthers(d, d.networkKind(), want.networks, want.keepOthers) },
		func() error { return d.release(want) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// placeAll creates or updates what is wanted of a kind, and notes it for services to refer to.
func placeAll[T objects.Object[T], S any](
	d *deployment, k kind[T, S], want wanted[S], referents map[string]referent,
) error {
	for i := range want.specs {
		o, err := place(d, k, fmt.Sprintf("%s[%d]", k.field, i), &want.specs[i])
		if err != nil {
			return err
		}
		name := k.table.Name(o)
		referents[strings.ToLower(name)] = referent{id: o.GetID(), name: name}
	}
	return nil
}

// placeServices creates or updates services. One that is refused waits for those after it:
// they may give up the port that it wants. (Two that exchange their ports cannot be placed.)
func (d *deployment) placeServices(specs []api.ServiceSpec) error {
	waiting := make([]int, len(specs))
	resolved := make([]*api.ServiceSpec, len(specs))
	for i := range specs {
		waiting[i] = i
		var err error
		if resolved[i], err = d.resolve(fmt.Sprintf("services[%d]", i), &specs[i]); err != nil {
			return err
		}
	}
	for pass := 1; len(waiting) > 0; pass++ {
		var later []int
		var refused error
		for _, i := range waiting {
			_, err := place(d, services(), fmt.Sprintf("services[%d]", i), resolved[i])
			switch {
			case errkind.Is(err, errkind.Refused):
				later = append(later, i)
				if refused == nil {
					refused = err
				}
			case err != nil:
				return err
			}
		}
		if len(later) == len(waiting) || len(later) > 0 && pass == maxPasses {
			return refused
		}
		waiting = later
	}
	return nil
}

// place creates an object or updates it, if it differs from what is wanted.
func place[T objects.Object[T], S any](d *deployment, k kind[T, S], path string, want *S) (T, error) {
	var zero T
	noun, name := k.table.Noun(), k.annotations(want).Name
	have, err := k.named(d.tx, name)
	if err != nil {
		return zero, err
	}
	if have == zero {
		if err := d.room(); err != nil {
			return zero, err
		}
		o, err := k.create(d.tx, want)
		if err != nil {
			return zero, within(err, path, noun, name)
		}
		d.add(k.change(holdfast.StackChange_CREATED, o), o)
		return o, nil
	}
	if stack := k.labels(have)[store.StackLabel]; stack != d.stack {
		return zero, taken(path, noun, k.table.Name(have), have.GetID(), stack)
	}
	differs, err := k.differs(path, k.spec(have), want)
	if err != nil {
		return zero, within(err, "", noun, name)
	}
	if !differs {
		d.add(k.change(holdfast.StackChange_UNCHANGED, have), have)
		return have, nil
	}
	if err := d.room(); err != nil {
		return zero, err
	}
	before := have.GetMeta()
	o, err := k.update(d.tx, have.GetID(), &before.Version, want)
	if err != nil {
		return zero, within(err, path, noun, name)
	}
	if after := o.GetMeta(); after.Version.Index == before.Version.Index { // it was wanted in another form
		d.add(k.change(holdfast.StackChange_UNCHANGED, o), o)
		return o, nil
	}
	change := k.change(holdfast.StackChange_UPDATED, o)
	d.add(change, o)
	return o, updated(d, k, change, have, o)
}

// taken says that a name belongs to an object outside the stack.
func taken(path, noun, name, id, stack string) error {
	e := errkind.New(errkind.Exists, "the name is taken by a %s (%s) that belongs to no stack", noun, id)
	if stack != "" {
		e = errkind.New(errkind.Exists, "the name is taken by a %s (%s) of the stack %s", noun, id, stack)
	}
	e.Field = path + ".annotations.name"
	return e.On(noun, name).WithHint("choose another name, or remove that %s first", noun)
}

// removeOthers removes the stack's objects of a kind that are not wanted, unless others are
// kept. One that is named as external is wanted, but not by its spec: it stays as it is.
func removeOthers[T objects.Object[T], S any](d *deployment, k kind[T, S], want wanted[S], keep bool) error {
	have, err := k.table.FindAll(d.tx, store.ByStack(d.stack))
	if err != nil {
		return err
	}
	placed, external := map[string]bool{}, map[string]bool{}
	for i := range want.specs {
		placed[strings.ToLower(k.annotations(&want.specs[i]).Name)] = true
	}
	for _, name := range want.external {
		external[strings.ToLower(name)] = true
	}
	for _, o := range have {
		switch name := strings.ToLower(k.table.Name(o)); {
		case placed[name]:
		case external[name], keep:
			d.add(k.change(holdfast.StackChange_UNCHANGED, o), o)
		default:
			if err := removeOne(d, k, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeOne removes an object of the stack.
func removeOne[T objects.Object[T], S any](d *deployment, k kind[T, S], o T) error {
	if err := d.room(); err != nil {
		return err
	}
	if _, err := k.remove(d.tx, o.GetID()); err != nil {
		return within(err, "", k.table.Noun(), k.table.Name(o))
	}
	d.add(k.change(holdfast.StackChange_REMOVED, o), o)
	return nil
}

// add notes what was done to an object.
func (d *deployment) add(c *holdfast.StackChange, o state.Object) {
	d.changes = append(d.changes, c)
	switch c.Action {
	case holdfast.StackChange_UNCHANGED:
		return
	case holdfast.StackChange_CREATED, holdfast.StackChange_UPDATED:
		d.bytes += o.Size()
	case holdfast.StackChange_REMOVED:
	}
	d.written++
}

// updated notes what an update did, for a dry run to tell.
func updated[T objects.Object[T], S any](d *deployment, k kind[T, S], c *holdfast.StackChange, before, after T) error {
	if !d.dry {
		return nil
	}
	u := update{change: c}
	var err error
	if u.before, err = liveEntry(d.tx, k, d.stack, before); err != nil {
		return err
	}
	if u.after, err = liveEntry(d.tx, k, d.stack, after); err != nil {
		return err
	}
	d.updates = append(d.updates, u)
	return nil
}

// room refuses a change that the transaction has no room for.
func (d *deployment) room() error {
	if d.written < store.MaxOperations {
		return nil
	}
	return (&errkind.Error{
		Kind: errkind.Limit, Max: fmt.Sprintf("%d objects", store.MaxOperations),
		Msg:  fmt.Sprintf("the deployment changes more than %d objects", store.MaxOperations),
		Hint: hintParts,
	}).On("stack", d.stack)
}
