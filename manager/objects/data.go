package objects

import (
	"bytes"
	"fmt"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// dataKind is a kind whose objects are named data: secrets or configs. Only the labels of
// such an object can be changed.
type dataKind[T Object[T]] struct {
	table *store.Table[T]
	limit int // the data is smaller than this
	parts func(T) dataParts
	users func(id string) store.By // the services that use an object
}

// dataParts are the parts of a spec. They point into the object.
type dataParts struct {
	annotations *api.Annotations
	data        []byte
	templating  *api.Driver
	driver      *api.Driver // gives the data instead; secrets only
}

func (k dataKind[T]) create(tx *store.Tx, o T) (T, error) {
	if err := k.check(k.parts(o)); err != nil {
		var zero T
		return zero, on(err, k.table.Noun(), k.table.Name(o))
	}
	return k.table.Create(tx, o)
}

func (k dataKind[T]) check(p dataParts) error {
	if err := checkAnnotations("spec.annotations", p.annotations, dataName()); err != nil {
		return err
	}
	if err := checkText("spec.annotations", p.annotations); err != nil {
		return err
	}
	if err := checkDriver("spec.templating", p.templating); err != nil {
		return err
	}
	if p.driver != nil { // it gives the data when a task needs it
		return checkDriver("spec.driver", p.driver)
	}
	switch n := len(p.data); {
	case n == 0:
		return errkind.Field("spec.data", "is empty")
	case n >= k.limit:
		return &errkind.Error{
			Kind: errkind.Limit, Field: "spec.data", Max: fmt.Sprintf("%d bytes", k.limit-1),
			Msg: fmt.Sprintf("has %d bytes, must be smaller than %d", n, k.limit),
		}
	}
	return nil
}

// update gives the object with an ID the labels of spec. What else spec says must agree with
// what there is, or not be said: a client does not know the data of a secret.
func (k dataKind[T]) update(tx *store.Tx, id string, version *api.Version, spec dataParts) (T, error) {
	var zero T
	old, err := forUpdate(tx, k.table, id, version)
	if err != nil {
		return zero, err
	}
	if err := k.checkSame(k.parts(old), spec); err != nil {
		return zero, on(err, k.table.Noun(), k.table.Name(old))
	}
	if err := checkText("spec.annotations", spec.annotations); err != nil {
		return zero, on(err, k.table.Noun(), k.table.Name(old))
	}
	if err := checkLabels("spec.annotations", spec.annotations); err != nil {
		return zero, on(err, k.table.Noun(), k.table.Name(old))
	}
	o := old.Copy()
	k.parts(o).annotations.Labels = spec.annotations.Labels
	return k.table.Update(tx, o)
}

func (k dataKind[T]) checkSame(old, spec dataParts) error {
	field := ""
	switch {
	case spec.annotations.Name != old.annotations.Name:
		field = "spec.annotations.name"
	case len(spec.data) > 0 && !bytes.Equal(spec.data, old.data):
		field = "spec.data"
	case spec.templating != nil && !spec.templating.Equal(old.templating):
		field = "spec.templating"
	case spec.driver != nil && !spec.driver.Equal(old.driver):
		field = "spec.driver"
	default:
		return nil
	}
	return errkind.Field(field, "cannot be changed: only labels can").
		WithHint("create another %s and let the services use that one", k.table.Noun())
}

func (k dataKind[T]) remove(tx *store.Tx, id string) (T, error) {
	o, err := Get(tx, k.table, id)
	if err != nil {
		return o, err
	}
	if err := notUsedByServices(tx, k.users(id)); err != nil {
		var zero T
		return zero, on(err, k.table.Noun(), k.table.Name(o))
	}
	return k.table.Delete(tx, id)
}
