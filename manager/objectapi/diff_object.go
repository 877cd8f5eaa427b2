package objectapi

import (
	"cmp"
	"context"
	"errors"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/kinds"
)

// object compares one object.
func (d *diff) object(ctx context.Context, r *holdfast.DiffRequest) error {
	k := d.kinds[0]
	id, err := d.resolve(k, r)
	if err != nil {
		return err
	}
	if r.From == 0 {
		if err := d.beforeLast(k, id, r); err != nil {
			return err
		}
	}
	n := net{kind: k, id: id}
	known := false
	for revision, c := range d.log.Of(k.Kind(), id) {
		if revision.Revision <= min(d.from, d.to) || revision.Revision > max(d.from, d.to) {
			continue
		}
		if !known {
			n.before, known = c.Old, true
		}
		n.after = c.New
	}
	if known {
		return d.add(ctx, n)
	}
	// It did not change between the two: it is in both, or in none.
	tx, err := d.log.At(d.to)
	if err != nil {
		return err
	}
	if k.Find(tx, id) == nil {
		return notFound(k, r)
	}
	return nil
}

func notFound(k kinds.Kind, r *holdfast.DiffRequest) error {
	return errkind.New(errkind.NotFound, "not found in either revision, nor between them").
		On(k.Noun(), cmp.Or(r.ID, r.Name))
}

// beforeLast sets from to the revision before the object's last change up to to.
func (d *diff) beforeLast(k kinds.Kind, id string, r *holdfast.DiffRequest) error {
	last := uint64(0)
	for revision := range d.log.Of(k.Kind(), id) {
		if revision.Revision <= d.to {
			last = revision.Revision
		}
	}
	if last > 0 {
		d.from = last - 1
		return nil
	}
	tx, err := d.log.At(d.to)
	if err != nil {
		return err
	}
	o := k.Find(tx, id)
	if o == nil {
		return notFound(k, r)
	}
	meta := o.GetMeta()
	if err := d.log.Check(meta.Version.Index - 1); err != nil {
		return on(err, k.Noun(), cmp.Or(r.ID, r.Name))
	}
	return errkind.New(errkind.Internal, "the log lacks revision %d, which changed it", meta.Version.Index).On(k.Noun(), id)
}

// resolve returns the ID of the object that is compared: a name is that of the object that has
// it in the one revision, or else in the other, or else of the last one that had it before.
func (d *diff) resolve(k kinds.Kind, r *holdfast.DiffRequest) (string, error) {
	if r.ID != "" {
		return r.ID, nil
	}
	revisions := []uint64{d.to}
	if r.From != 0 {
		revisions = append(revisions, d.from)
	}
	for _, revision := range revisions {
		tx, err := d.log.At(revision)
		if err != nil {
			return "", err
		}
		o, err := k.Get(tx, "", r.Name)
		if err == nil {
			return o.GetID(), nil
		}
		if !errkind.Is(err, errkind.NotFound) {
			return "", err
		}
	}
	has := nameIs(k, r.Name)
	for revision := range d.log.Back() {
		if revision.Revision > max(d.from, d.to) {
			continue
		}
		for _, c := range revision.Changes {
			if c.Kind == k.Kind() && (has(c.Old) || has(c.New)) {
				return c.Object().GetID(), nil
			}
		}
	}
	return "", notFound(k, r)
}

// on names the object in an error.
func on(err error, noun, id string) error {
	if e, ok := errors.AsType[*errkind.Error](err); ok {
		return e.On(noun, id)
	}
	return err
}
