package drivertest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

func testUpdate(f *fixture) {
	r := Record(Key("web", 1), driver.StatusPendingInstall, "body")
	r.Labels = map[string]string{"stays": "1", "changes": "old", "goes": "x"}
	created := f.create(r)
	later := f.clock.Add(time.Minute)
	r.Status, r.Body, r.Overlap = driver.StatusDeployed, nil, true
	r.Labels = map[string]string{"stays": "1", "changes": "new", "comes": ""}
	updated := f.update(created.Version, r)
	want := created
	want.Status, want.Labels, want.Overlap = r.Status, r.Labels, true
	want.Modified, want.Version = later, updated.Version
	f.same("updated", updated, want)
	if updated.Version == created.Version || updated.Version == 0 {
		f.t.Errorf("versions: %d, then %d", created.Version, updated.Version)
	}
	got := f.get(r.Key)
	f.same("got", got.Head, updated)
	if string(got.Body) != "body" {
		f.t.Errorf("the body is %q", got.Body)
	}
	for value, n := range map[string]int{"old": 0, "new": 1} {
		if all := f.query(driver.Query{Labels: map[string]string{"changes": value}}); len(all) != n {
			f.t.Errorf("changes=%s: %v", value, all)
		}
	}
	r.Labels = nil
	if none := f.update(updated.Version, r); len(none.Labels) != 0 {
		f.t.Errorf("labels that were taken away: %v", none.Labels)
	}
	f.clock.Add(-time.Hour)
	back := f.update(f.get(r.Key).Version, r)
	if !back.Modified.Equal(later) || !back.Created.Equal(created.Created) {
		f.t.Errorf("after the clock was set back: created %v, modified %v", back.Created, back.Modified)
	}
}

func testUpdateBody(f *fixture) {
	r := Record(Key("web", 1), driver.StatusDeployed, "old")
	h := f.create(r)
	for _, body := range []string{"another", "old", "old", "x"} {
		r.Body = []byte(body)
		h = f.update(h.Version, r)
		if h.Size != int64(len(body)) || h.Digest != driver.Digest(r.Body) {
			f.t.Errorf("%s: %+v", body, h)
		}
		got := f.get(r.Key)
		f.same(body, got.Head, h)
		if string(got.Body) != body {
			f.t.Errorf("the body is %q, not %q", got.Body, body)
		}
	}
}

// An update that gives a record what it has is a change like any other: of two, one is late.
func testUpdateWithTheSame(f *fixture) {
	r := Record(Key("web", 1), driver.StatusDeployed, "x")
	first := f.create(r)
	r.Body = nil
	second := f.update(first.Version, r)
	if second.Version == first.Version {
		f.t.Errorf("the version %d stays", first.Version)
	}
	_, err := f.Update(f.t.Context(), first.Version, r)
	f.wants(err, errkind.OutOfSequence, "", r.Key)
}

func testUpdateErrors(f *fixture) {
	r := Record(Key("web", 1), driver.StatusDeployed, "x")
	_, err := f.Update(f.t.Context(), 1, r)
	f.wants(err, errkind.NotFound, "", r.Key)
	if n := len(f.query(driver.Query{})); n != 0 {
		f.t.Fatal("an update of nothing made a record")
	}
	first := f.create(r)
	for name, c := range bad() {
		changed := r
		c.change(&changed)
		_, err := f.Update(f.t.Context(), first.Version, changed)
		if e, ok := errors.AsType[*errkind.Error](err); !ok || e.Kind != c.kind || e.Field != c.field {
			f.t.Errorf("%s: got %v", name, err)
		}
	}
	_, err = f.Update(f.t.Context(), 0, r)
	f.wants(err, errkind.Invalid, "version", r.Key)
	other := r
	other.Kind = "other"
	_, err = f.Update(f.t.Context(), first.Version, other)
	f.wants(err, errkind.Invalid, "kind", r.Key)
	f.same("after what was refused", f.get(r.Key).Head, first)

	second := f.update(first.Version, Record(r.Key, driver.StatusSuperseded, "y"))
	_, err = f.Update(f.t.Context(), first.Version, Record(r.Key, driver.StatusFailed, "z"))
	f.wants(err, errkind.OutOfSequence, "", r.Key)
	if e, ok := errors.AsType[*errkind.Error](err); ok && e.Seen != first.Version {
		f.t.Errorf("the error tells of version %d, not %d", e.Seen, first.Version)
	}
	f.same("after", f.get(r.Key).Head, second)
}

func testUpdateAtOnce(f *fixture) {
	const writers = 16
	key := Key("web", 1)
	first := f.create(Record(key, driver.StatusDeployed, "x"))
	var group sync.WaitGroup
	var won atomic.Int64
	drivers := []driver.Driver{f.Driver, f.Open(f.t)}
	for i := range writers {
		group.Go(func() {
			r := Record(key, driver.StatusDeployed, fmt.Sprint("body ", i))
			switch _, err := drivers[i%len(drivers)].Update(f.t.Context(), first.Version, r); {
			case err == nil:
				won.Add(1)
			case !errkind.Is(err, errkind.OutOfSequence):
				f.t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		f.t.Errorf("%d of %d updates won", won.Load(), writers)
	}
	f.get(key)
}

func (f *fixture) wantsDeployed(err error, key driver.Key) {
	f.t.Helper()
	f.wants(err, errkind.Exists, "status", key)
	if !errors.Is(err, driver.ErrDeployed) {
		f.t.Errorf("not ErrDeployed: %v", err)
	}
}

func testOneDeployed(f *fixture) {
	one := f.create(Record(Key("web", 1), driver.StatusDeployed, "1"))
	_, err := f.Create(f.t.Context(), Record(Key("web", 2), driver.StatusDeployed, "2"))
	f.wantsDeployed(err, Key("web", 2))
	two := f.create(Record(Key("web", 2), driver.StatusPendingUpgrade, "2"))
	_, err = f.Update(f.t.Context(), two.Version, Record(two.Key, driver.StatusDeployed, "2"))
	f.wantsDeployed(err, two.Key)
	f.same("after", f.get(two.Key).Head, two)
	// A deployed record may be changed, and others may be deployed.
	one = f.update(one.Version, Record(one.Key, driver.StatusDeployed, "1 again"))
	f.create(Record(Key("api", 1), driver.StatusDeployed, "x"))
	elsewhere := Key("web", 2)
	elsewhere.Namespace = "other"
	f.create(Record(elsewhere, driver.StatusDeployed, "x"))

	f.update(one.Version, Record(one.Key, driver.StatusSuperseded, "1"))
	two = f.update(two.Version, Record(two.Key, driver.StatusDeployed, "2"))
	if err := f.Delete(f.t.Context(), two.Key, 0); err != nil {
		f.t.Fatal(err)
	}
	f.create(Record(Key("web", 3), driver.StatusDeployed, "3"))
	if all := f.query(driver.Query{Namespace: "default", Name: "web", Statuses: []driver.Status{driver.StatusDeployed}}); len(all) != 1 || all[0].Key.Revision != 3 {
		f.t.Errorf("deployed: %v", all)
	}
}

func testOneDeployedAtOnce(f *fixture) {
	const writers = 16
	var group sync.WaitGroup
	var won atomic.Int64
	drivers := []driver.Driver{f.Driver, f.Open(f.t)}
	for i := range writers {
		group.Go(func() {
			switch _, err := drivers[i%2].Create(f.t.Context(), Record(Key("web", int64(i+1)), driver.StatusDeployed, "x")); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, driver.ErrDeployed):
				f.t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if all := f.query(driver.Query{}); won.Load() != 1 || len(all) != 1 {
		f.t.Errorf("%d won, %d are there", won.Load(), len(all))
	}
}

func testOverlap(f *fixture) {
	overlapping := func(revision int64) driver.Record {
		r := Record(Key("web", revision), driver.StatusDeployed, "x")
		r.Overlap = true
		return r
	}
	f.create(overlapping(1))
	f.create(overlapping(2))
	alone := f.create(Record(Key("web", 3), driver.StatusDeployed, "x"))
	_, err := f.Create(f.t.Context(), Record(Key("web", 4), driver.StatusDeployed, "x"))
	f.wantsDeployed(err, Key("web", 4))
	alone = f.update(alone.Version, overlapping(3))
	four := f.create(Record(Key("web", 4), driver.StatusDeployed, "x"))
	_, err = f.Update(f.t.Context(), alone.Version, Record(alone.Key, driver.StatusDeployed, "x"))
	f.wantsDeployed(err, alone.Key)
	if err := f.Delete(f.t.Context(), four.Key, 0); err != nil {
		f.t.Fatal(err)
	}
	f.update(alone.Version, Record(alone.Key, driver.StatusDeployed, "x"))
}
