package object

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/internal/errkind"
)

// sweepOnce is how many objects are removed in one transaction: their data may be in its reply.
const sweepOnce = 50

// Sweep removes objects that belong to no record: the chunks of uploads that were not finished,
// and what is left when a head was removed by hand. It leaves alone what was created within
// the last olderThan, by the driver's clock. It returns how many objects were removed.
//
// It harms no record, whatever is written meanwhile: an upload whose chunks it removes fails.
// While there is a head that cannot be read, it removes only what has a stage: the rest may be
// that head's, which somebody may give its labels back.
//
// Store.List is asked for the chunks of all records, so it is not for every minute. It fails
// with the kinds of the store's errors; what was removed until then stays removed.
func (d *Driver) Sweep(ctx context.Context, olderThan time.Duration) (removed int, err error) {
	before := d.o.Planner.Clock().Add(-olderThan)
	s := sweep{store: d.o.Store}
	// The order matters. A chunk or mark is made with its stage or its head, and goes with it:
	// one that is there before those are listed, and that none of them claims, has no owner and
	// never will.
	loose, err := s.list(ctx, partChunk)
	if err != nil {
		return 0, err
	}
	marks, err := s.list(ctx, partMark)
	if err != nil {
		return 0, err
	}
	stages, err := s.list(ctx, partStage)
	if err != nil {
		return 0, err
	}
	heads, err := s.list(ctx, partHead)
	if err != nil {
		return 0, err
	}
	owned := map[string]bool{}
	for _, h := range heads {
		owned[h.Labels[labelUpload]], owned[h.Labels[labelMark]] = true, true
	}
	allRead := sync.OnceValue(func() bool { return readable(heads) }) // mostly nobody asks
	for _, upload := range uploads(loose, stages) {
		if !owned[upload.id] && upload.newest.Before(before) && (upload.staged || allRead()) {
			if err := s.remove(ctx, upload.ops); err != nil {
				return s.removed, err
			}
		}
	}
	for _, m := range marks {
		if !owned[m.ID] && m.Created.Before(before) && allRead() {
			if err := s.remove(ctx, []Op{{Remove, Object{ID: m.ID, Name: m.Name, Version: m.Version}}}); err != nil {
				return s.removed, err
			}
		}
	}
	return s.removed, nil
}

// readable tells whether all heads can be read.
func readable(heads []Object) bool {
	return !slices.ContainsFunc(heads, func(o Object) bool {
		_, err := decodeHead(o)
		return err != nil
	})
}

// sweep is one sweep.
type sweep struct {
	store   Store
	removed int
}

func (s *sweep) list(ctx context.Context, p part) ([]Object, error) {
	var all []Object
	for o, err := range s.store.List(ctx, map[string]string{LabelPart: string(p)}) {
		if err != nil {
			return nil, fmt.Errorf("sweep: list each %s: %w", p, err)
		}
		o.Data = nil
		all = append(all, o)
	}
	return all, nil
}

// upload is what there is of a body.
type upload struct {
	id     string
	staged bool      // it has a stage, so that no head can be its own
	newest time.Time // of its objects
	ops    []Op      // to remove it: the stage first
}

// uploads sorts objects by upload.
func uploads(chunks, stages []Object) []*upload {
	var all []*upload
	byID := map[string]*upload{}
	for i, objects := range [][]Object{stages, chunks} {
		for _, o := range objects {
			u := byID[o.Labels[labelUpload]]
			if u == nil {
				u = &upload{id: o.Labels[labelUpload], staged: i == 0}
				byID[u.id] = u
				all = append(all, u)
			}
			if o.Created.After(u.newest) {
				u.newest = o.Created
			}
			u.ops = append(u.ops, Op{Remove, Object{ID: o.ID, Name: o.Name, Version: o.Version}})
		}
	}
	return all
}

// remove removes objects, in several transactions if they are many. If another one was there
// first, it leaves the rest to that one.
func (s *sweep) remove(ctx context.Context, ops []Op) error {
	for len(ops) > 0 {
		some := ops[:min(sweepOnce, len(ops))]
		ops = ops[len(some):]
		_, err := s.store.Write(ctx, some)
		switch {
		case errkind.Is(err, errkind.NotFound), errkind.Is(err, errkind.OutOfSequence):
			return nil
		case err != nil:
			return fmt.Errorf("sweep: remove %s: %w", some[0].Name, err)
		}
		s.removed += len(some)
	}
	return nil
}
