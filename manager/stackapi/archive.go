package stackapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/release/driver"
)

const (
	// settleAttempts is how often the archive is read anew because others changed it meanwhile.
	settleAttempts = 10
	// finishTimeout bounds what is done in the archive after an outcome is known.
	finishTimeout = 10 * time.Second
)

// errMoved ends a transaction whose releases are not those any more that were read before it.
var errMoved = errors.New("the releases were changed meanwhile")

// archive keeps the records of all stacks' releases outside of the store.
//
// Two places cannot be changed at once. So the store, in the transaction of a deployment, gets
// the whole record of the release that is deployed, in the place of the one before: what it says
// is true. Before that the archive gets a record that is pending, so that a deployment does not
// begin where it could not be kept; and after it the archive is made to say what the store says,
// which is called settling. When a manager dies in between, the next call for the stack settles,
// or the leader does. So do two leaders, of which one does not know that it leads no more: each
// changes only what is as it has read it.
type archive struct {
	driver    driver.Driver
	namespace string // of its records
	reader    Reader
	logger    *slog.Logger
	locks     locks
}

// heads returns the heads of a stack's records, with the keys that the store gives them. It
// reads those of all stacks if stack is empty.
func (a *archive) heads(ctx context.Context, stack string) ([]driver.Head, error) {
	var all []driver.Head
	for h, err := range a.driver.Query(ctx, driver.Query{Namespace: a.namespace, Name: stack, Kind: recordKind}) {
		if err != nil {
			return nil, a.failed(err, stack)
		}
		h.Key.Namespace = recordNamespace
		all = append(all, h)
	}
	return all, nil
}

// failed says where an error comes from that names no record.
func (a *archive) failed(err error, stack string) error {
	e, ok := errors.AsType[*errkind.Error](err)
	if !ok {
		return fmt.Errorf("releases in %s: %w", a.driver.Name(), err)
	}
	if e.Object != "" {
		return err
	}
	at := *e
	at.Msg = fmt.Sprintf("releases in %s: %s", a.driver.Name(), strings.TrimPrefix(e.Msg, a.driver.Name()+": "))
	if stack == "" {
		return &at
	}
	return at.On("stack", stack)
}

// key is the key that a record has in the archive.
func (a *archive) key(k driver.Key) driver.Key {
	k.Namespace = a.namespace
	return k
}

// look reads a stack's releases: first what the archive has, so that the store is no older, unless
// the caller asked for that.
func (a *archive) look(ctx context.Context, stack string) (*holdings, error) {
	return a.lookIn(ctx, stack, a.reader.Read)
}

// newest is look for what is done because of it: it does not matter what the caller asked for.
func (a *archive) newest(ctx context.Context, stack string) (*holdings, error) {
	return a.lookIn(ctx, stack, a.reader.Newest)
}

func (a *archive) lookIn(
	ctx context.Context, stack string, read func(context.Context) (store.ReadTx, error),
) (*holdings, error) {
	heads, err := a.heads(ctx, stack)
	if err != nil {
		return nil, err
	}
	tx, err := read(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := readRecords(tx, stack)
	return &holdings{tx: tx, heads: heads, kept: kept}, err
}

// settle makes the archive say of a stack's releases what the store says, and returns both.
func (a *archive) settle(ctx context.Context, stack string) (*holdings, error) {
	for range settleAttempts {
		h, err := a.newest(ctx, stack)
		if err != nil {
			return nil, err
		}
		steps := h.steps()
		if len(steps) == 0 {
			return h, nil
		}
		for _, s := range steps {
			if err = a.take(ctx, h.tx, s); err != nil {
				break
			}
		}
		if err != nil && !outrun(err) {
			return nil, a.failed(err, stack)
		}
	}
	return nil, busy(stack)
}

// outrun tells whether an error says that others changed a record first.
func outrun(err error) bool {
	return errkind.Is(err, errkind.Exists) || errkind.Is(err, errkind.NotFound) || errkind.Is(err, errkind.OutOfSequence)
}

func busy(stack string) error {
	return errkind.New(errkind.OutOfSequence, "its releases are being changed by others, time and again").
		On("stack", stack).WithHint("try again")
}

// step is one change of the archive.
type step struct {
	remove  bool
	version uint64 // of what is changed or removed; 0: it is created
	head    driver.Head
	body    []byte  // nil leaves it as it is
	from    *record // whose body is read and written, if it is not nil
}

// take does a step. tx is where the body comes from.
func (a *archive) take(ctx context.Context, tx store.ReadTx, s step) error {
	r := driver.Record{Head: s.head, Body: s.body}
	r.Key = a.key(s.head.Key)
	if s.from != nil {
		var err error
		if r.Body, err = readBody(tx, s.from); err != nil {
			return err
		}
	}
	var err error
	switch {
	case s.remove:
		err = a.driver.Delete(ctx, r.Key, s.version)
	case s.version == 0:
		_, err = a.driver.Create(ctx, r)
	default:
		_, err = a.driver.Update(ctx, s.version, r)
	}
	return err
}

// fetch reads the body of a record that only the archive has.
func (a *archive) fetch(ctx context.Context, r *record) error {
	if r == nil || r.stored() || r.body != nil {
		return nil
	}
	got, err := a.driver.Get(ctx, a.key(r.Key))
	if err != nil {
		return a.failed(err, r.Key.Name)
	}
	r.body = got.Body
	return nil
}

// change runs a deployment or a removal, and lets the archive follow. One that would fail, or
// would do nothing, leaves no trace there.
func (s *Server) change(ctx context.Context, c change) (*deployment, store.Result, error) {
	if s.archive == nil {
		return s.update(ctx, c, nil)
	}
	if !c.dry {
		unlock, err := s.archive.locks.lock(ctx, c.stack)
		if err != nil {
			return nil, store.Result{}, err
		}
		defer unlock()
	}
	for range settleAttempts {
		d, result, err := s.changeArchived(ctx, c)
		if !errors.Is(err, errMoved) {
			return d, result, err
		}
	}
	return nil, store.Result{}, busy(c.stack)
}

func (s *Server) changeArchived(ctx context.Context, c change) (*deployment, store.Result, error) {
	read := s.archive.settle
	if c.dry {
		read = s.archive.newest
	}
	h, err := read(ctx, c.stack)
	if err != nil {
		return nil, store.Result{}, err
	}
	if c.source != nil {
		if err := s.archive.fetch(ctx, c.source(h)); err != nil {
			return nil, store.Result{}, err
		}
	}
	trial := c
	trial.dry = true
	d, result, err := s.update(ctx, trial, h)
	if c.dry || !errors.Is(err, errGivenUp) { // it failed, or was done before
		return d, result, err
	}
	claimed := d.claim != nil
	if claimed {
		if err := s.archive.take(ctx, h.tx, *d.claim); err != nil {
			if outrun(err) {
				err = errMoved
			}
			return nil, store.Result{}, s.archive.failed(err, c.stack)
		}
	}
	d, result, err = s.update(ctx, c, h)
	gone := d.gone
	if err != nil {
		gone = nil // what was to make room for it has not to
	}
	// An unknown outcome is not settled here: it may come yet.
	if (claimed || len(gone) > 0) && !errkind.Is(err, errkind.UnknownOutcome) {
		s.archive.finish(ctx, c.stack, gone)
	}
	return d, result, err
}

// finish lets the archive follow a transaction whose outcome is known, and removes the records
// that are too many. What fails is left to the next call, or to the leader.
func (a *archive) finish(ctx context.Context, stack string, gone []*record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	h, err := a.settle(ctx, stack)
	if err == nil {
		err = a.prune(ctx, h, gone)
	}
	if err != nil {
		a.logger.Warn("the archive of releases does not follow yet; it is tried again", "stack", stack, "err", err)
	}
}

// prune removes records that the store has no more.
func (a *archive) prune(ctx context.Context, h *holdings, gone []*record) error {
	var errs []error
	for _, r := range gone {
		have, ok := h.head(r.Key)
		if !ok || h.keeps(r.Key) {
			continue
		}
		if err := a.take(ctx, h.tx, step{remove: true, version: have.Version, head: have}); err != nil && !outrun(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Settle lets the archive follow where a manager died before it did: the releases of all stacks
// become in it what they are in the store. The leader calls it, now and then. A stack that is
// being deployed is left out. Without an archive there is nothing to do.
func (s *Server) Settle(ctx context.Context) error {
	if s.archive == nil {
		return nil
	}
	heads, err := s.archive.heads(ctx, "")
	if err != nil {
		return err
	}
	tx, err := s.reader.Newest(ctx)
	if err != nil {
		return err
	}
	all, err := allHoldings(tx, heads)
	if err != nil {
		return err
	}
	var errs []error
	for stack, h := range all {
		if len(h.steps()) == 0 {
			continue
		}
		unlock, ok := s.archive.locks.tryLock(stack)
		if !ok {
			continue
		}
		_, err := s.archive.settle(ctx, stack)
		unlock()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
