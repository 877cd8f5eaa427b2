package object_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
	"holdfast/release/drivertest"
)

// crashFixture is a driver on a fake with a clock.
type crashFixture struct {
	*object.Driver
	t     *testing.T
	store *fakeStore
	clock *drivertest.Clock
}

func newCrash(t *testing.T) *crashFixture {
	clock := drivertest.NewClock()
	s := newFake(clock.Now)
	return &crashFixture{newDriver(s, clock.Now), t, s, clock}
}

func staged(revision int64, fill byte) driver.Record {
	return driver.Record{
		Head: driver.Head{Key: drivertest.Key("web", revision), Kind: "test", Status: driver.StatusDeployed},
		Body: bytes.Repeat([]byte{fill}, 2*chunkOnce+5),
	}
}

// begin does all of the creation of a record but its last transaction.
func begin(t *testing.T, s object.Store, r driver.Record) object.Plan {
	t.Helper()
	plan, err := planner().Create(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, ops := range plan.Stages {
		if _, err := s.Write(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
	}
	return plan
}

// failAt fails the nth write from now on, before or after it is done.
func (f *crashFixture) failAt(n int, done bool, err error) {
	fail := func([]object.Op) error {
		if n--; n == 0 {
			return err
		}
		return nil
	}
	if done {
		f.store.hook(nil, fail)
		return
	}
	f.store.hook(fail, nil)
}

func (f *crashFixture) sweep(olderThan time.Duration) int {
	f.t.Helper()
	n, err := f.Sweep(f.t.Context(), olderThan)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// check makes sure that the record is as given, and that there are no objects but its own.
func (f *crashFixture) check(want driver.Record) {
	f.t.Helper()
	got, err := f.Get(f.t.Context(), want.Key)
	if err != nil || !bytes.Equal(got.Body, want.Body) || got.Status != want.Status {
		f.t.Errorf("got %+v, %v", got.Head, err)
	}
	objects := 1 + (len(want.Body)+chunk-1)/chunk
	if got.Exclusive() {
		objects++
	}
	if n := len(f.store.names(nil)); n != objects {
		f.t.Errorf("%d objects, want %d", n, objects)
	}
}

func unknown() error { return errkind.New(errkind.UnknownOutcome, "the connection broke") }

// A program that dies in the middle of an upload leaves what a sweep removes, and the record
// as it was.
func TestCrashIsSwept(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, done := range []bool{false, true} {
			f := newCrash(t)
			old := staged(1, 'a')
			h, err := f.Create(t.Context(), old)
			if err != nil {
				t.Fatal(err)
			}
			f.failAt(n, done, unknown())
			next := staged(1, 'b')
			_, err = f.Update(t.Context(), h.Version, next)
			// Of the last transaction nobody knows; before it, the record was certainly not changed.
			want := errkind.NoLeader
			if n == 3 {
				want = errkind.UnknownOutcome
			}
			if !errkind.Is(err, want) {
				t.Errorf("write %d, done %v: got %v, of kind %d", n, done, err, errkind.Of(err))
			}
			f.store.hook(nil, nil)
			f.clock.Add(time.Hour)
			if removed := f.sweep(2 * time.Hour); removed != 0 {
				t.Errorf("%d objects were removed that are not old", removed)
			}
			f.sweep(time.Minute)
			if n == 3 && done {
				f.check(next)
			} else {
				f.check(old)
			}
			if removed := f.sweep(0); removed != 0 {
				t.Errorf("the second sweep removed %d objects", removed)
			}
		}
	}
}

// When a plan fails for certain, nothing is left to sweep.
func TestFailureCleansUp(t *testing.T) {
	for n := 1; n <= 3; n++ {
		f := newCrash(t)
		boom := errkind.New(errkind.NoLeader, "no leader")
		f.failAt(n, false, boom)
		_, err := f.Create(t.Context(), staged(1, 'a'))
		e, ok := errors.AsType[*errkind.Error](err)
		if !errors.Is(err, boom) || !ok || e.Object != "release" || e.ID != "default/web.v1" {
			t.Errorf("got %v", err)
		}
		if left := f.store.names(nil); len(left) != 0 {
			t.Errorf("write %d: %d objects are left", n, len(left))
		}
	}
}

// A sweep that comes between makes the upload fail; it begins anew, and nothing is lost.
func TestSweepDuringUpload(t *testing.T) {
	f := newCrash(t)
	writes := 0
	f.store.hook(func([]object.Op) error {
		if writes++; writes == 3 { // the last one, of all that was staged
			f.store.hook(nil, nil)
			f.clock.Add(time.Hour)
			if removed := f.sweep(time.Minute); removed != 31 {
				t.Errorf("%d objects were removed", removed)
			}
		}
		return nil
	}, nil)
	want := staged(1, 'a')
	if _, err := f.Create(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	f.check(want)
}

// An upload that comes to its end while a sweep thinks that it is dead keeps its chunks.
func TestUploadDuringSweep(t *testing.T) {
	f := newCrash(t)
	want := staged(1, 'a')
	plan := begin(t, f.store, want)
	f.clock.Add(time.Hour)
	f.store.hook(func([]object.Op) error {
		f.store.hook(nil, nil)
		_, err := f.store.write(plan.Last)
		return err
	}, nil)
	if removed := f.sweep(time.Minute); removed != 0 {
		t.Errorf("%d objects were removed", removed)
	}
	f.check(want)
}

// What is left of a head that was removed by hand is swept, and its name is free again.
func TestSweepAfterAHeadWasRemoved(t *testing.T) {
	f := newCrash(t)
	if _, err := f.Create(t.Context(), staged(1, 'a')); err != nil {
		t.Fatal(err)
	}
	f.store.remove(object.HeadName(drivertest.Key("web", 1)))
	if _, err := f.Create(t.Context(), staged(2, 'b')); !errors.Is(err, driver.ErrDeployed) {
		t.Errorf("got %v", err)
	}
	f.clock.Add(time.Hour)
	f.sweep(time.Minute)
	if left := f.store.names(nil); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	want := staged(2, 'b')
	if _, err := f.Create(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	f.check(want)
}

// What may belong to a head that cannot be read stays until it can be, or is gone.
func TestSweepBesideADamagedHead(t *testing.T) {
	for _, label := range []string{object.LabelUpload, object.LabelMark, object.LabelForm} {
		f := newCrash(t)
		want := staged(1, 'a')
		if _, err := f.Create(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		begin(t, f.store, staged(2, 'b'))
		f.clock.Add(time.Hour)
		head, was := object.HeadName(want.Key), ""
		f.store.edit(t, head, func(o *object.Object) { was, o.Labels[label] = o.Labels[label], "2" })
		if removed := f.sweep(time.Minute); removed != 31 {
			t.Errorf("%s: removed %d objects, want what was staged", label, removed)
		}
		f.store.edit(t, head, func(o *object.Object) { o.Labels[label] = was })
		f.check(want)
		f.store.edit(t, head, func(o *object.Object) { delete(o.Labels, label) })
		if removed := f.sweep(time.Minute); removed != 0 {
			t.Errorf("%s: %d objects were removed", label, removed)
		}
		f.store.remove(head)
		f.sweep(time.Minute)
		if left := f.store.names(nil); len(left) != 0 {
			t.Errorf("%s: left: %v", label, left)
		}
	}
}

// A record whose chunks or mark are gone is reported, and can still be replaced and deleted.
func TestMissingParts(t *testing.T) {
	f := newCrash(t)
	key := drivertest.Key("web", 1)
	r := staged(1, 'a')
	h, err := f.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	damage := func() {
		upload := ""
		f.store.edit(t, object.HeadName(key), func(o *object.Object) { upload = o.Labels[object.LabelUpload] })
		f.store.remove(object.ChunkName(upload, 1))
		f.store.remove(object.MarkName(key))
	}
	damage()
	if _, err := f.Get(t.Context(), key); !errors.Is(err, driver.ErrCorrupt) || errkind.Is(err, errkind.NotFound) {
		t.Errorf("got %v", err)
	}
	r = staged(1, 'b')
	r.Status = driver.StatusFailed
	if h, err = f.Update(t.Context(), h.Version, r); err != nil {
		t.Fatal(err)
	}
	f.check(r)
	r.Status = driver.StatusDeployed
	if _, err = f.Update(t.Context(), h.Version, r); err != nil {
		t.Fatal(err)
	}
	damage()
	if err := f.Delete(t.Context(), key, 0); err != nil {
		t.Fatal(err)
	}
	if left := f.store.names(nil); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// Whoever reads while a body is replaced gets the old one or the new one.
func TestGetDuringUpdates(t *testing.T) {
	f := newCrash(t)
	body := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 3*chunk+i) }
	r := driver.Record{Head: driver.Head{Key: drivertest.Key("web", 1), Kind: "test", Status: driver.StatusDeployed}, Body: body(0)}
	h, err := f.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				// That it was changed too often while it was read is an answer, too.
				if _, err := f.Get(t.Context(), r.Key); err != nil && !errkind.Is(err, errkind.OutOfSequence) {
					t.Error(err)
				}
			}
		})
	}
	for i := range 40 {
		r.Body = body(i + 1)
		if h, err = f.Update(t.Context(), h.Version, r); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	group.Wait()
	f.check(r)
}
