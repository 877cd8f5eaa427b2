// Package lazy opens a driver when it is first needed, and again after that failed: so a program
// can start while a database cannot be reached.
//
// The state is that of the driver that is opened. All methods may be called from many goroutines;
// they block while one of them opens it.
package lazy

import (
	"context"
	"iter"
	"sync/atomic"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

// Opened is a driver that is closed at the end.
type Opened interface {
	driver.Driver
	Close() error
}

// Driver is a driver that is opened when it is needed. Make it with New.
type Driver struct {
	name string
	open func(context.Context) (Opened, error)

	turn   chan struct{} // to open or close it
	opened atomic.Pointer[Opened]
	closed atomic.Bool
}

// New makes a driver that calls open until that succeeds, one call at a time. An error of open is
// the error of the call that needed it.
func New(name string, open func(context.Context) (Opened, error)) *Driver {
	return &Driver{name: name, open: open, turn: make(chan struct{}, 1)}
}

// Open opens the driver, if it is not open. It fails as open does, with errkind.NoLeader after
// Close, and with the error of a context that ended.
func (d *Driver) Open(ctx context.Context) (driver.Driver, error) {
	if o := d.opened.Load(); o != nil {
		return *o, nil
	}
	if err := driver.Ended(ctx); err != nil {
		return nil, err
	}
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, driver.Ended(ctx)
	}
	if o := d.opened.Load(); o != nil {
		return *o, nil
	}
	if d.closed.Load() {
		return nil, errkind.New(errkind.NoLeader, "it is closed")
	}
	o, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	d.opened.Store(&o)
	return o, nil
}

// Close closes the driver, if it is open. It is not opened after that.
func (d *Driver) Close() error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	d.closed.Store(true)
	if o := d.opened.Load(); o != nil {
		return (*o).Close()
	}
	return nil
}

// Name returns the name that was given.
func (d *Driver) Name() string { return d.name }

// Create implements driver.Driver.
func (d *Driver) Create(ctx context.Context, r driver.Record) (driver.Head, error) {
	o, err := d.Open(ctx)
	if err != nil {
		return driver.Head{}, driver.On(err, r.Key)
	}
	return o.Create(ctx, r)
}

// Update implements driver.Driver.
func (d *Driver) Update(ctx context.Context, version uint64, r driver.Record) (driver.Head, error) {
	o, err := d.Open(ctx)
	if err != nil {
		return driver.Head{}, driver.On(err, r.Key)
	}
	return o.Update(ctx, version, r)
}

// Delete implements driver.Driver.
func (d *Driver) Delete(ctx context.Context, key driver.Key, version uint64) error {
	o, err := d.Open(ctx)
	if err != nil {
		return driver.On(err, key)
	}
	return o.Delete(ctx, key, version)
}

// Get implements driver.Driver.
func (d *Driver) Get(ctx context.Context, key driver.Key) (driver.Record, error) {
	o, err := d.Open(ctx)
	if err != nil {
		return driver.Record{}, driver.On(err, key)
	}
	return o.Get(ctx, key)
}

// Query implements driver.Driver.
func (d *Driver) Query(ctx context.Context, q driver.Query) iter.Seq2[driver.Head, error] {
	o, err := d.Open(ctx)
	if err != nil {
		return func(yield func(driver.Head, error) bool) { yield(driver.Head{}, err) }
	}
	return o.Query(ctx, q)
}
