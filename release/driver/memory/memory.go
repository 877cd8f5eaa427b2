// Package memory keeps records of releases in memory, for tests and for programs that need
// them only while they run.
//
// The state belongs to the Driver, and is gone with it. All methods may be called from many
// goroutines; none blocks for longer than it takes to copy what is asked for.
package memory

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast/release/driver"
)

// Driver keeps records. Make it with New.
type Driver struct {
	clock func() time.Time

	mu      sync.RWMutex
	records map[driver.Key]driver.Record
	version uint64 // of the last change
}

// New makes an empty driver. The clock tells when records are created and changed.
func New(clock func() time.Time) *Driver {
	return &Driver{clock: clock, records: map[driver.Key]driver.Record{}}
}

// Name returns "memory".
func (d *Driver) Name() string { return "memory" }

// Create implements driver.Driver.
func (d *Driver) Create(ctx context.Context, r driver.Record) (driver.Head, error) {
	h, err := driver.Begin(r, d.clock())
	if err != nil {
		return driver.Head{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := driver.Ended(ctx); err != nil {
		return driver.Head{}, driver.On(err, h.Key)
	}
	if _, ok := d.records[h.Key]; ok {
		return driver.Head{}, driver.Exists(h.Key)
	}
	return d.put(h, bytes.Clone(r.Body))
}

// Update implements driver.Driver.
func (d *Driver) Update(ctx context.Context, version uint64, r driver.Record) (driver.Head, error) {
	if err := driver.CheckUpdate(version, r); err != nil {
		return driver.Head{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := driver.Ended(ctx); err != nil {
		return driver.Head{}, driver.On(err, r.Key)
	}
	old, ok := d.records[r.Key]
	if !ok {
		return driver.Head{}, driver.NotFound(r.Key)
	}
	h, err := driver.Next(old.Head, version, r, d.clock())
	if err != nil {
		return driver.Head{}, err
	}
	body := old.Body
	if r.Body != nil {
		body = bytes.Clone(r.Body)
	}
	return d.put(h, body)
}

// put stores what is the driver's own. The lock is held.
func (d *Driver) put(h driver.Head, body []byte) (driver.Head, error) {
	if h.Exclusive() {
		for key, other := range d.records {
			if key != h.Key && key.Namespace == h.Key.Namespace && key.Name == h.Key.Name && other.Exclusive() {
				return driver.Head{}, driver.Deployed(h.Key)
			}
		}
	}
	d.version++
	h.Version = d.version
	d.records[h.Key] = driver.Record{Head: h, Body: body}
	return copied(h), nil
}

// Delete implements driver.Driver.
func (d *Driver) Delete(ctx context.Context, key driver.Key, version uint64) error {
	if err := key.Check(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := driver.Ended(ctx); err != nil {
		return driver.On(err, key)
	}
	old, ok := d.records[key]
	switch {
	case !ok:
		return driver.NotFound(key)
	case version != 0 && version != old.Version:
		return driver.Changed(key, version, old.Version)
	}
	delete(d.records, key)
	return nil
}

// Get implements driver.Driver.
func (d *Driver) Get(ctx context.Context, key driver.Key) (driver.Record, error) {
	if err := key.Check(); err != nil {
		return driver.Record{}, err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if err := driver.Ended(ctx); err != nil {
		return driver.Record{}, driver.On(err, key)
	}
	r, ok := d.records[key]
	if !ok {
		return driver.Record{}, driver.NotFound(key)
	}
	if err := r.CheckBody(r.Body); err != nil {
		return driver.Record{}, err
	}
	return driver.Record{Head: copied(r.Head), Body: bytes.Clone(r.Body)}, nil
}

// Query implements driver.Driver. It shows one state.
func (d *Driver) Query(ctx context.Context, q driver.Query) iter.Seq2[driver.Head, error] {
	return func(yield func(driver.Head, error) bool) {
		for _, h := range d.pick(q) {
			if err := driver.Ended(ctx); err != nil {
				yield(driver.Head{}, err)
				return
			}
			if !yield(h, nil) {
				return
			}
		}
		if err := driver.Ended(ctx); err != nil {
			yield(driver.Head{}, err)
		}
	}
}

func (d *Driver) pick(q driver.Query) []driver.Head {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var picked []driver.Head
	for _, r := range d.records {
		if q.Match(r.Head) {
			picked = append(picked, copied(r.Head))
		}
	}
	slices.SortFunc(picked, func(a, b driver.Head) int { return a.Key.Compare(b.Key) })
	return picked
}

// copied returns a head that has no memory in common with the driver's.
func copied(h driver.Head) driver.Head {
	h.Labels = maps.Clone(h.Labels)
	return h
}
