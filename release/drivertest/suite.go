package drivertest

import (
	"sync"
	"testing"
	"time"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

// Backend is an empty backend to test a driver on.
type Backend struct {
	// Open makes another driver on the backend, which is closed when the test ends.
	Open func(t testing.TB) driver.Driver
	// Corrupt changes a bit of the stored body of a record.
	Corrupt func(t testing.TB, key driver.Key)
	// Stop makes the backend one that cannot be reached. It is nil for one that is part of the
	// process, and cannot be away.
	Stop func(t testing.TB)
	// Slow tells that bodies go over a network and to a disk: the largest ones are left out.
	Slow bool
}

// Start makes a Backend, whose drivers use the clock.
type Start func(t testing.TB, clock func() time.Time) Backend

// Clock is a clock that a test sets. It may be used by many goroutines.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock makes a clock that shows a time with nanoseconds, which no driver keeps.
func NewClock() *Clock {
	return &Clock{now: time.Date(2024, 2, 29, 23, 59, 58, 123456789, time.FixedZone("x", 3600))}
}

// Now returns what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves the clock, and returns what it shows then as a driver keeps it.
func (c *Clock) Add(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now.UTC().Truncate(time.Microsecond)
}

// fixture is a driver on a backend of its own.
type fixture struct {
	driver.Driver
	Backend
	t     *testing.T
	clock *Clock
}

// Run runs all tests, each on a backend of its own.
func Run(t *testing.T, start Start) {
	for name, test := range map[string]func(f *fixture){
		"Create":                 testCreate,
		"CreateExists":           testCreateExists,
		"CreateInvalid":          testCreateInvalid,
		"CreateAtOnce":           testCreateAtOnce,
		"Update":                 testUpdate,
		"UpdateBody":             testUpdateBody,
		"UpdateErrors":           testUpdateErrors,
		"UpdateAtOnce":           testUpdateAtOnce,
		"UpdateWithTheSame":      testUpdateWithTheSame,
		"Delete":                 testDelete,
		"DeleteErrors":           testDeleteErrors,
		"VersionsDoNotComeAgain": testVersionsDoNotComeAgain,
		"GetErrors":              testGetErrors,
		"OneDeployed":            testOneDeployed,
		"OneDeployedAtOnce":      testOneDeployedAtOnce,
		"Overlap":                testOverlap,
		"Namespaces":             testNamespaces,
		"Query":                  testQuery,
		"QueryLabels":            testQueryLabels,
		"QueryLoop":              testQueryLoop,
		"Order":                  testOrder,
		"Names":                  testNames,
		"NothingIsShared":        testNothingIsShared,
		"BodySizes":              testBodySizes,
		"LargestBody":            testLargestBody,
		"CorruptBody":            testCorruptBody,
		"Reopen":                 testReopen,
		"EndedContext":           testEndedContext,
		"Unreachable":            testUnreachable,
		"Model":                  testModel,
	} {
		t.Run(name, func(t *testing.T) {
			clock := NewClock()
			b := start(t, clock.Now)
			test(&fixture{Driver: b.Open(t), Backend: b, t: t, clock: clock})
		})
	}
}

// Key makes a key in the namespace "default".
func Key(name string, revision int64) driver.Key {
	return driver.Key{Namespace: "default", Name: name, Revision: revision}
}

// Record makes a record.
func Record(key driver.Key, status driver.Status, body string) driver.Record {
	return driver.Record{
		Head: driver.Head{Key: key, Kind: "test", Status: status},
		Body: []byte(body),
	}
}

func (f *fixture) create(r driver.Record) driver.Head {
	f.t.Helper()
	h, err := f.Create(f.t.Context(), r)
	if err != nil {
		f.t.Fatalf("create %v: %v", r.Key, err)
	}
	return h
}

func (f *fixture) update(version uint64, r driver.Record) driver.Head {
	f.t.Helper()
	h, err := f.Update(f.t.Context(), version, r)
	if err != nil {
		f.t.Fatalf("update %v: %v", r.Key, err)
	}
	return h
}

func (f *fixture) get(key driver.Key) driver.Record {
	f.t.Helper()
	r, err := f.Get(f.t.Context(), key)
	if err != nil {
		f.t.Fatalf("get %v: %v", key, err)
	}
	return r
}

// query gives what a query picks, which must not fail.
func (f *fixture) query(q driver.Query) []driver.Head {
	f.t.Helper()
	var all []driver.Head
	for h, err := range f.Query(f.t.Context(), q) {
		if err != nil {
			f.t.Fatalf("query %+v: %v", q, err)
		}
		all = append(all, h)
	}
	return all
}

// wants checks the kind of an error, its field, and that it names the record.
func (f *fixture) wants(err error, kind errkind.Kind, field string, key driver.Key) {
	f.t.Helper()
	e, ok := err.(*errkind.Error) //nolint:errorlint // the error itself must be one
	switch {
	case err == nil:
		f.t.Errorf("%v: no error", key)
	case !ok:
		f.t.Errorf("%v: the error is a %T: %v", key, err, err)
	case e.Kind != kind || e.Field != field:
		f.t.Errorf("%v: the error is of kind %d and names the field %q, want %d and %q: %v", key, e.Kind, e.Field, kind, field, err)
	case e.Object != "release" || e.ID != key.String():
		f.t.Errorf("%v: the error names %s %s: %v", key, e.Object, e.ID, err)
	}
}

// same compares two heads in all.
func (f *fixture) same(what string, got, want driver.Head) {
	f.t.Helper()
	if !Same(got, want) {
		f.t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}
