package stackapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// Secrets and configs do not change. The object that a stack has for one of its names is
// called by that name and a suffix, so that other data is another object, and the old one can
// stay for the releases that name it. A config's suffix comes from what is in it. A secret's is
// random: a digest would help those who guess.

const (
	// nameLabel is the label with the stack's own name for an object. Objects of before there
	// were releases lack it, and are called by that name.
	nameLabel = "holdfast.stack.name"

	maxContentName = 253
	maxStoredName  = 64 // of secrets and configs: objects holds to it
	suffixLength   = 12
)

// logical returns the name that a stack has for a secret or a config of its own.
func logical(name string, labels map[string]string) string { return cmp.Or(labels[nameLabel], name) }

// storedName makes the name of an object. A name that is too long keeps its beginning, and a
// mark that tells it apart from others with the same one.
func storedName(logical, suffix string) string {
	if room := maxStoredName - 1 - len(suffix); len(logical) > room {
		sum := sha256.Sum256([]byte(strings.ToLower(logical)))
		mark := "-" + hex.EncodeToString(sum[:4])
		logical = logical[:room-len(mark)] + mark
	}
	return logical + "-" + suffix
}

// digest tells what is in an object from what is in others: the SHA-256 of its data, and of
// what else there is to it.
func (c *contents[S]) digest(spec *S) (string, error) {
	sum := sha256.Sum256(*c.data(spec))
	if rest, more := c.rest(spec); more {
		b, err := rest.Marshal()
		if err != nil {
			return "", fmt.Errorf("encode a spec: %w", err)
		}
		sum = sha256.Sum256(append(sum[:], b...))
	}
	return hex.EncodeToString(sum[:]), nil
}

// shelf has the objects of one kind of a stack by the stack's names for them, without case.
// Those of one name come in the order in which they were made.
type shelf[T any] map[string][]T

func shelve[T objects.Object[T], S any](tx store.ReadTx, k kind[T, S], stack string) (shelf[T], error) {
	all, err := k.table.FindAll(tx, store.ByStack(stack))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b T) int {
		ma, mb := a.GetMeta(), b.GetMeta()
		return cmp.Or(cmp.Compare(ma.CreatedVersion.Index, mb.CreatedVersion.Index), strings.Compare(a.GetID(), b.GetID()))
	})
	s := shelf[T]{}
	for _, o := range all {
		key := strings.ToLower(logical(k.table.Name(o), k.labels(o)))
		s[key] = append(s[key], o)
	}
	return s, nil
}

// find returns the first object for a name that is what a spec says, or the zero T.
func find[T objects.Object[T], S any](s shelf[T], k kind[T, S], want *S) T {
	for _, o := range s[strings.ToLower(k.annotations(want).Name)] {
		if k.contents.same(k.spec(o), want) {
			return o
		}
	}
	var zero T
	return zero
}

// placeContents finds or creates what is wanted of secrets or configs, and notes it for services
// to refer to, and for the release.
func placeContents[T objects.Object[T], S any](
	d *deployment, k kind[T, S], want wanted[S], referents map[string]referent, names map[string]string,
) error {
	have, err := shelve(d.tx, k, d.stack)
	if err != nil {
		return err
	}
	for i := range want.specs {
		spec := &want.specs[i]
		o, err := placeContent(d, k, have, fmt.Sprintf("%s[%d]", k.field, i), spec, want.staged[i], want.suffixes[i])
		if err != nil {
			return err
		}
		name := k.annotations(spec).Name
		referents[strings.ToLower(name)] = referent{id: o.GetID(), name: k.table.Name(o)}
		names[name] = k.table.Name(o)
		d.ids = append(d.ids, o.GetID())
	}
	for _, name := range want.external {
		// The stack's own, which it calls external, is the release's, too.
		o := k.table.Get(d.tx, referents[strings.ToLower(name)].id)
		if k.labels(o)[store.StackLabel] == d.stack {
			d.add(k.change(holdfast.StackChange_UNCHANGED, o), o)
			d.ids = append(d.ids, o.GetID())
		}
	}
	return nil
}

// placeContent finds or creates one secret or config, and gives it the labels that it should have.
func placeContent[T objects.Object[T], S any](
	d *deployment, k kind[T, S], have shelf[T], path string, want *S, staged, suffix string,
) (T, error) {
	var zero T
	noun, name := k.table.Noun(), k.annotations(want).Name
	o := zero
	if staged != "" {
		var err error
		if o, err = findStaged(d, k, path, want, staged); err != nil {
			return zero, err
		}
	} else {
		o = find(have, k, want)
	}
	if o == zero {
		if err := d.room(); err != nil {
			return zero, err
		}
		o, err := createContent(d.tx, k, path, want, suffix)
		if err != nil {
			return zero, err
		}
		d.add(k.change(holdfast.StackChange_CREATED, o), o)
		return o, nil
	}
	labels := maps.Clone(k.annotations(want).Labels)
	delete(labels, nameLabel)
	if _, ok := k.labels(o)[nameLabel]; ok {
		labels[nameLabel], d.found[o.GetID()] = name, true
	}
	if maps.Equal(labels, k.labels(o)) {
		d.add(k.change(holdfast.StackChange_UNCHANGED, o), o)
		return o, nil
	}
	if err := d.room(); err != nil {
		return zero, err
	}
	spec, meta := *k.spec(o), o.GetMeta()
	k.annotations(&spec).Labels = labels
	after, err := k.update(d.tx, o.GetID(), &meta.Version, &spec)
	if err != nil {
		return zero, within(err, path, noun, name)
	}
	change := k.change(holdfast.StackChange_UPDATED, after)
	d.add(change, after)
	return after, updated(d, k, change, o, after)
}

// createContent creates an object for a secret or a config. Without a suffix it makes one.
func createContent[T objects.Object[T], S any](
	tx *store.Tx, k kind[T, S], path string, want *S, suffix string,
) (T, error) {
	var zero T
	spec := *want
	a := k.annotations(&spec)
	name := a.Name
	if suffix == "" {
		id := tx.NewID()
		suffix = id[len(id)-suffixLength:]
	}
	a.Name = storedName(name, suffix)
	a.Labels = maps.Clone(a.Labels)
	a.Labels[nameLabel] = name
	other, err := k.named(tx, a.Name)
	if err != nil {
		return zero, err
	}
	if other != zero {
		return zero, taken(path, k.table.Noun(), k.table.Name(other), other.GetID(), k.labels(other)[store.StackLabel])
	}
	o, err := k.create(tx, &spec)
	return o, within(err, path, k.table.Noun(), name)
}

// findStaged returns the object that the request names for a secret or a config.
func findStaged[T objects.Object[T], S any](d *deployment, k kind[T, S], path string, want *S, staged string) (T, error) {
	var zero T
	noun, name := k.table.Noun(), k.annotations(want).Name
	refuse := func(format string, args ...any) (T, error) {
		if d.source != 0 {
			return zero, errkind.New(errkind.Refused, "%s, and release %d has it for %s",
				fmt.Sprintf(format, args...), d.source, name).On(noun, staged).
				WithHint("deploy what that release was made of anew")
		}
		return zero, errkind.Field(stagedPath(k, name), "%s %q %s", noun, staged, fmt.Sprintf(format, args...)).
			On(noun, name).WithHint("stage it, and name what that returned")
	}
	o, err := k.named(d.tx, staged)
	if err != nil {
		return zero, err
	}
	if o == zero {
		return refuse("does not exist")
	}
	stack, own := k.labels(o)[store.StackLabel], logical(k.table.Name(o), k.labels(o))
	switch {
	case stack == "":
		return refuse("belongs to no stack")
	case stack != d.stack:
		return refuse("belongs to the stack %s", stack)
	case !strings.EqualFold(own, name):
		return refuse("is there for %s", own)
	case d.source != 0 && !d.sourceIDs[o.GetID()]:
		return refuse("has been replaced by another one of the name")
	}
	filled := *want
	*k.contents.data(&filled) = *k.contents.data(k.spec(o))
	if _, more := k.contents.rest(want); more && !k.contents.same(k.spec(o), &filled) {
		return zero, errkind.Field(path, "differs in more than its labels from the object %s", staged).On(noun, name).
			WithHint("leave out what the object says itself")
	}
	return o, nil
}
