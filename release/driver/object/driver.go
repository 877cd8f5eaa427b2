package object

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

// attempts is how often a change is planned anew because another one came between. Each time
// the other has come on.
const attempts = 10

// cleanupTime bounds the removal of what was staged in vain.
const cleanupTime = 10 * time.Second

// Options say what a Driver works on. All must be given.
type Options struct {
	// Name names the backend, for people: "object/config".
	Name  string
	Store Store
	// Planner has the clock and the randomness.
	Planner Planner
}

// Driver keeps records in a Store. Make it with New.
type Driver struct{ o Options }

// New makes a driver. It does not ask the store.
func New(o Options) *Driver { return &Driver{o} }

// Name returns the name that was given.
func (d *Driver) Name() string { return d.o.Name }

// Create implements driver.Driver. A body of more than 3.75 MiB takes several transactions; it
// is there once the last one is done.
func (d *Driver) Create(ctx context.Context, r driver.Record) (driver.Head, error) {
	var err error
	for range attempts {
		if err := driver.Ended(ctx); err != nil {
			return driver.Head{}, driver.On(err, r.Key)
		}
		plan, planErr := d.o.Planner.Create(r)
		if planErr != nil {
			return driver.Head{}, planErr
		}
		if len(plan.Stages) > 0 { // do not stage in vain
			if err := d.free(ctx, plan.Head); err != nil {
				return driver.Head{}, err
			}
		}
		var h driver.Head
		if h, err = d.do(ctx, plan); err == nil {
			return h, nil
		}
		if !errkind.Is(err, errkind.Exists) && !errkind.Is(err, errkind.NotFound) {
			return driver.Head{}, d.wrap(err, r.Key)
		}
		if err := d.free(ctx, plan.Head); err != nil {
			return driver.Head{}, err
		}
	}
	return driver.Head{}, d.gaveUp(err, r.Key)
}

// gaveUp is the error of a change that others came before too often.
func (d *Driver) gaveUp(err error, key driver.Key) error {
	return (&errkind.Error{
		Kind: errkind.OutOfSequence, Hint: "try again", Err: err,
		Msg: fmt.Sprintf("%s: gave up after %d attempts; the last one: %v", d.o.Name, attempts, err),
	}).On(noun, key.String())
}

// free tells why a record cannot be created, or nil.
func (d *Driver) free(ctx context.Context, h driver.Head) error {
	_, err := d.o.Store.Get(ctx, headName(h.Key))
	if err == nil {
		return driver.Exists(h.Key)
	}
	if !errkind.Is(err, errkind.NotFound) {
		return d.wrap(err, h.Key)
	}
	if !h.Exclusive() {
		return nil
	}
	return d.noMark(ctx, h.Key)
}

// noMark makes sure that no revision has the mark of a name.
func (d *Driver) noMark(ctx context.Context, key driver.Key) error {
	_, err := d.o.Store.Get(ctx, markName(key))
	switch {
	case err == nil:
		return driver.Deployed(key)
	case errkind.Is(err, errkind.NotFound):
		return nil
	}
	return d.wrap(err, key)
}

// Update implements driver.Driver. A body of more than 3.75 MiB takes several transactions; it
// is there once the last one is done.
func (d *Driver) Update(ctx context.Context, version uint64, r driver.Record) (driver.Head, error) {
	if err := driver.CheckUpdate(version, r); err != nil {
		return driver.Head{}, err
	}
	var h driver.Head
	err := d.change(ctx, r.Key, func(object Object, missing []string) error {
		plan, err := d.o.Planner.update(object, version, r, missing)
		if err != nil {
			return err
		}
		old, err := decodeHead(object)
		if err != nil {
			return err
		}
		if plan.Head.Exclusive() && old.mark == "" {
			if err := d.noMark(ctx, r.Key); err != nil {
				return err
			}
		}
		h, err = d.do(ctx, plan)
		return err
	})
	return h, err
}

// Delete implements driver.Driver.
func (d *Driver) Delete(ctx context.Context, key driver.Key, version uint64) error {
	if err := key.Check(); err != nil {
		return err
	}
	return d.change(ctx, key, func(object Object, missing []string) error {
		if version != 0 && version != object.Version {
			return driver.Changed(key, version, object.Version)
		}
		plan, err := d.o.Planner.delete(object, missing)
		if err != nil {
			return err
		}
		_, err = d.do(ctx, plan)
		return err
	})
}

// change makes a change of a record on its head's object, again if another change came between.
// It passes the IDs of the record's objects that are missing, if it was found that some are.
func (d *Driver) change(ctx context.Context, key driver.Key, try func(object Object, missing []string) error) error {
	var err error
	var missing []string
	for range attempts {
		object, headErr := d.head(ctx, key)
		if headErr != nil {
			return headErr
		}
		if errkind.Is(err, errkind.NotFound) {
			var findErr error
			if missing, findErr = d.missing(ctx, object); findErr != nil {
				return d.wrap(findErr, key)
			}
		}
		if err = try(object, missing); err == nil {
			return nil
		}
		if e, ok := errors.AsType[*errkind.Error](err); ok && e.Object == noun {
			return err // of the record itself: it is final
		}
		if k := errkind.Of(err); k != errkind.OutOfSequence && k != errkind.NotFound && k != errkind.Exists {
			return d.wrap(err, key)
		}
	}
	return d.gaveUp(err, key)
}

// head returns the object of a head.
func (d *Driver) head(ctx context.Context, key driver.Key) (Object, error) {
	if err := driver.Ended(ctx); err != nil {
		return Object{}, driver.On(err, key)
	}
	o, err := d.o.Store.Get(ctx, headName(key))
	if errkind.Is(err, errkind.NotFound) {
		return Object{}, driver.NotFound(key)
	}
	return o, d.wrap(err, key)
}

// missing finds the IDs of objects that belong to a record and are not there.
func (d *Driver) missing(ctx context.Context, object Object) ([]string, error) {
	h, err := decodeHead(object)
	if err != nil {
		return nil, err
	}
	parts := h.chunkRemovals()
	if h.mark != "" {
		parts = append(parts, Op{Remove, Object{ID: h.mark, Name: markName(h.Key)}})
	}
	var ids []string
	for _, op := range parts {
		o, err := d.o.Store.Get(ctx, op.Name)
		switch {
		case errkind.Is(err, errkind.NotFound), err == nil && o.ID != op.ID:
			ids = append(ids, op.ID)
		case err != nil:
			return nil, err
		}
	}
	return ids, nil
}

// do carries out a plan, and returns its head. If it is certain that the plan failed, what was
// staged for it is removed.
func (d *Driver) do(ctx context.Context, p Plan) (driver.Head, error) {
	for i, ops := range p.Stages {
		if _, err := d.o.Store.Write(ctx, ops); err != nil {
			return driver.Head{}, d.unstage(ctx, p.Stages[:i], notBegun(err))
		}
	}
	left, err := d.o.Store.Write(ctx, p.Last)
	if err != nil {
		return driver.Head{}, d.unstage(ctx, p.Stages, err)
	}
	h := p.Head
	h.Version = left[0].Version
	return h, nil
}

// notBegun is the error of a stage: whatever became of that, the record was not changed.
func notBegun(err error) error {
	if !errkind.Is(err, errkind.UnknownOutcome) {
		return err
	}
	return &errkind.Error{
		Kind: errkind.NoLeader, Hint: "try again", Err: err,
		Msg: "a part of the body may have been stored, but nothing was done to the release: " + err.Error(),
	}
}

// unstage removes what was staged for a plan that failed, and returns why it failed. If the
// outcome is not known, it leaves all to Sweep.
func (d *Driver) unstage(ctx context.Context, staged [][]Op, cause error) error {
	if len(staged) == 0 || errkind.Is(cause, errkind.UnknownOutcome) {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	for _, ops := range staged { // the first one has the stage: without it, nothing can use the rest
		var removals []Op
		for _, op := range ops {
			removals = append(removals, Op{Remove, Object{ID: op.ID, Name: op.Name}})
		}
		if _, err := d.o.Store.Write(ctx, removals); err != nil {
			if errkind.Is(err, errkind.NotFound) { // a sweep was there first
				return cause
			}
			return errors.Join(cause, fmt.Errorf("a sweep is to remove what was staged: %w", err))
		}
	}
	return cause
}

// Get implements driver.Driver.
func (d *Driver) Get(ctx context.Context, key driver.Key) (driver.Record, error) {
	if err := key.Check(); err != nil {
		return driver.Record{}, err
	}
	var seen uint64
	for range attempts {
		object, err := d.head(ctx, key)
		if err != nil {
			return driver.Record{}, err
		}
		h, err := decodeHead(object)
		if err != nil {
			return driver.Record{}, d.wrap(err, key)
		}
		body, err := d.body(ctx, h)
		if errkind.Is(err, errkind.NotFound) {
			if h.Version == seen { // it is not that the body was replaced meanwhile
				return driver.Record{}, driver.Corrupt(key, "body", "a chunk of it is missing: %v", err)
			}
			seen = h.Version
			continue
		}
		if err != nil {
			return driver.Record{}, d.wrap(err, key)
		}
		if err := h.CheckBody(body); err != nil {
			return driver.Record{}, err
		}
		return driver.Record{Head: h.Head, Body: body}, nil
	}
	return driver.Record{}, driver.Changed(key, seen, 0)
}

// body reads the chunks of a body.
func (d *Driver) body(ctx context.Context, h head) ([]byte, error) {
	body := make([]byte, 0, h.Size)
	for i := range h.chunks {
		o, err := d.o.Store.Get(ctx, chunkName(h.upload, i))
		if err != nil {
			return nil, err
		}
		body = append(body, o.Data...)
	}
	return body, nil
}

// Query implements driver.Driver. A head that cannot be read is an error after all others.
func (d *Driver) Query(ctx context.Context, q driver.Query) iter.Seq2[driver.Head, error] {
	return func(yield func(driver.Head, error) bool) {
		heads, err := d.pick(ctx, q)
		for _, h := range heads {
			if !yield(h, nil) {
				return
			}
		}
		if err != nil {
			yield(driver.Head{}, err)
		}
	}
}

func (d *Driver) pick(ctx context.Context, q driver.Query) ([]driver.Head, error) {
	if err := driver.Ended(ctx); err != nil {
		return nil, err
	}
	labels := map[string]string{LabelPart: string(partHead)}
	if q.Namespace != "" {
		labels[labelNamespace] = q.Namespace
	}
	if q.Name != "" {
		labels[labelName] = q.Name
	}
	var heads []driver.Head
	var bad error
	for o, err := range d.o.Store.List(ctx, labels) {
		if err != nil {
			return nil, err
		}
		h, err := decodeHead(o)
		switch {
		case err != nil && bad == nil:
			bad = err
		case err == nil && q.Match(h.Head):
			heads = append(heads, h.Head)
		}
	}
	slices.SortFunc(heads, func(a, b driver.Head) int { return a.Key.Compare(b.Key) })
	return heads, bad
}

// noun is what errors of package driver call a record.
const noun = "release"

// wrap makes an error of the store one of a record.
func (d *Driver) wrap(err error, key driver.Key) error {
	e, ok := errors.AsType[*errkind.Error](err)
	if err == nil || ok && e.Object == noun {
		return err
	}
	of := &errkind.Error{Kind: errkind.Of(err), Msg: d.o.Name + ": " + err.Error(), Hint: errkind.Hint(err), Err: err}
	if ok {
		of.Field, of.Seen, of.Now = e.Field, e.Seen, e.Now
	}
	return of.On(noun, key.String())
}
