package drivertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

func testCreate(f *fixture) {
	r := Record(Key("web", 1), driver.StatusPendingInstall, "body")
	r.Labels = map[string]string{"team": "shop"}
	r.Overlap = true
	// What is the driver's own must not be taken from the caller.
	r.Digest, r.Size, r.Version, r.Created = "x", 99, 77, time.Unix(1, 0)
	created := f.create(r)
	now := f.clock.Add(0)
	want := r.Head
	want.Digest, want.Size, want.Version = driver.Digest(r.Body), 4, created.Version
	want.Created, want.Modified = now, now
	f.same("created", created, want)
	if created.Version == 0 {
		f.t.Error("the version is 0")
	}
	if created.Created.Location() != time.UTC {
		f.t.Errorf("the time is in %v", created.Created.Location())
	}
	got := f.get(r.Key)
	f.same("got", got.Head, created)
	if string(got.Body) != "body" {
		f.t.Errorf("the body is %q", got.Body)
	}
	all := f.query(driver.Query{})
	if len(all) != 1 {
		f.t.Fatalf("%d heads", len(all))
	}
	f.same("listed", all[0], created)
	if f.Name() == "" {
		f.t.Error("the driver has no name")
	}
}

func testCreateExists(f *fixture) {
	key := Key("web", 1)
	first := f.create(Record(key, driver.StatusDeployed, "first"))
	for _, status := range []driver.Status{driver.StatusFailed, driver.StatusDeployed} {
		_, err := f.Create(f.t.Context(), Record(key, status, "second"))
		f.wants(err, errkind.Exists, "", key)
		if errors.Is(err, driver.ErrDeployed) {
			f.t.Errorf("a key that is taken was reported as another revision that is deployed: %v", err)
		}
	}
	got := f.get(key)
	f.same("after", got.Head, first)
	if string(got.Body) != "first" {
		f.t.Errorf("the body is %q", got.Body)
	}
}

// bad lists what must be refused: what is wrong, the kind of error and the field.
func bad() map[string]struct {
	change func(*driver.Record)
	kind   errkind.Kind
	field  string
} {
	type c = struct {
		change func(*driver.Record)
		kind   errkind.Kind
		field  string
	}
	many := map[string]string{}
	for i := range 10 {
		many[fmt.Sprint("k", i)] = strings.Repeat("x", driver.MaxLabelValue)
	}
	label := func(key, value string) func(*driver.Record) {
		return func(r *driver.Record) { r.Labels = map[string]string{key: value} }
	}
	return map[string]c{
		"no kind":            {func(r *driver.Record) { r.Kind = "" }, errkind.Invalid, "kind"},
		"kind not UTF-8":     {func(r *driver.Record) { r.Kind = "\xff" }, errkind.Invalid, "kind"},
		"no status":          {func(r *driver.Record) { r.Status = "" }, errkind.Invalid, "status"},
		"unknown status":     {func(r *driver.Record) { r.Status = "done" }, errkind.Invalid, "status"},
		"status case":        {func(r *driver.Record) { r.Status = "Deployed" }, errkind.Invalid, "status"},
		"empty label key":    {label("", "x"), errkind.Invalid, "labels"},
		"label key too long": {label(strings.Repeat("k", driver.MaxLabelKey+1), ""), errkind.Limit, `labels["` + strings.Repeat("k", 80) + `"].key`},
		"label too long":     {label("k", strings.Repeat("v", driver.MaxLabelValue+1)), errkind.Limit, `labels["k"]`},
		"label not UTF-8":    {label("k", "\xff"), errkind.Invalid, `labels["k"]`},
		"label with NUL":     {label("k", "a\x00b"), errkind.Invalid, `labels["k"]`},
		"too many labels":    {func(r *driver.Record) { r.Labels = many }, errkind.Limit, "labels"},
		"empty body":         {func(r *driver.Record) { r.Body = []byte{} }, errkind.Invalid, "body"},
		"body too large":     {func(r *driver.Record) { r.Body = make([]byte, driver.MaxBody+1) }, errkind.Limit, "body"},
	}
}

func testCreateInvalid(f *fixture) {
	for name, c := range bad() {
		r := Record(Key(name, 1), driver.StatusDeployed, "x")
		c.change(&r)
		_, err := f.Create(f.t.Context(), r)
		f.wants(err, c.kind, c.field, r.Key)
	}
	none := Record(Key("none", 1), driver.StatusDeployed, "x")
	none.Body = nil
	_, err := f.Create(f.t.Context(), none)
	f.wants(err, errkind.Invalid, "body", none.Key)
	for key, field := range badKeys() {
		r := Record(key, driver.StatusDeployed, "x")
		_, createErr := f.Create(f.t.Context(), r)
		_, updateErr := f.Update(f.t.Context(), 1, r)
		_, getErr := f.Get(f.t.Context(), key)
		for _, err := range []error{createErr, updateErr, getErr, f.Delete(f.t.Context(), key, 0)} {
			e, ok := errors.AsType[*errkind.Error](err)
			if !ok || e.Kind != errkind.Invalid && e.Kind != errkind.Limit || e.Field != field {
				f.t.Errorf("%.80q: got %v, want an error about %s", key, err, field)
			}
		}
	}
	if all := f.query(driver.Query{}); len(all) != 0 {
		f.t.Errorf("stored: %v", all)
	}
}

// badKeys gives keys that are not valid, and the field that is wrong.
func badKeys() map[driver.Key]string {
	return map[driver.Key]string{
		{Name: "web", Revision: 1}:                   "key.namespace",
		{Namespace: "a/b", Name: "web", Revision: 1}: "key.namespace",
		{Namespace: strings.Repeat("n", driver.MaxNamespace+1), Name: "web", Revision: 1}: "key.namespace",
		{Namespace: "default", Revision: 1}:                                               "key.name",
		{Namespace: "default", Name: "a\x00b", Revision: 1}:                               "key.name",
		{Namespace: "default", Name: "\xff", Revision: 1}:                                 "key.name",
		{Namespace: "default", Name: strings.Repeat("n", driver.MaxName+1), Revision: 1}:  "key.name",
		{Namespace: "default", Name: "web", Revision: -1}:                                 "key.revision",
	}
}

func testCreateAtOnce(f *fixture) {
	const writers = 64
	var group sync.WaitGroup
	var won atomic.Int64
	key := Key("web", 1)
	drivers := []driver.Driver{f.Driver, f.Open(f.t)}
	for i := range writers {
		group.Go(func() {
			h, err := drivers[i%len(drivers)].Create(f.t.Context(), Record(key, driver.StatusDeployed, fmt.Sprint("body ", i)))
			if err == nil {
				won.Add(1)
				if h.Digest != driver.Digest(fmt.Appendf(nil, "body %d", i)) {
					f.t.Errorf("the winner got the head of another: %+v", h)
				}
				return
			}
			if !errkind.Is(err, errkind.Exists) || errors.Is(err, driver.ErrDeployed) {
				f.t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		f.t.Errorf("%d of %d creates won", won.Load(), writers)
	}
	f.get(key) // and its body is the one that its head tells
	if n := len(f.query(driver.Query{})); n != 1 {
		f.t.Errorf("%d records", n)
	}
}

func testDelete(f *fixture) {
	keep := f.create(Record(Key("web", 1), driver.StatusSuperseded, "1"))
	two := f.create(Record(Key("web", 2), driver.StatusDeployed, "2"))
	f.create(Record(Key("web", 3), driver.StatusFailed, "3"))
	if err := f.Delete(f.t.Context(), two.Key, two.Version); err != nil {
		f.t.Fatal(err)
	}
	if err := f.Delete(f.t.Context(), Key("web", 3), 0); err != nil {
		f.t.Fatal(err)
	}
	_, err := f.Get(f.t.Context(), two.Key)
	f.wants(err, errkind.NotFound, "", two.Key)
	all := f.query(driver.Query{})
	if len(all) != 1 {
		f.t.Fatalf("left: %v", all)
	}
	f.same("left", all[0], keep)
}

func testDeleteErrors(f *fixture) {
	key := Key("web", 1)
	f.wants(f.Delete(f.t.Context(), key, 0), errkind.NotFound, "", key)
	f.wants(f.Delete(f.t.Context(), key, 5), errkind.NotFound, "", key)
	first := f.create(Record(key, driver.StatusDeployed, "x"))
	second := f.update(first.Version, Record(key, driver.StatusSuperseded, "x"))
	err := f.Delete(f.t.Context(), key, first.Version)
	f.wants(err, errkind.OutOfSequence, "", key)
	f.same("after", f.get(key).Head, second)
	other := key
	other.Namespace = "other"
	f.wants(f.Delete(f.t.Context(), other, 0), errkind.NotFound, "", other)
}

func testVersionsDoNotComeAgain(f *fixture) {
	r := Record(Key("web", 1), driver.StatusDeployed, "x")
	first := f.create(r)
	if err := f.Delete(f.t.Context(), r.Key, 0); err != nil {
		f.t.Fatal(err)
	}
	again := f.create(r)
	if again.Version == first.Version {
		f.t.Errorf("the version %d came again", again.Version)
	}
	_, err := f.Update(f.t.Context(), first.Version, r)
	f.wants(err, errkind.OutOfSequence, "", r.Key)
	f.wants(f.Delete(f.t.Context(), r.Key, first.Version), errkind.OutOfSequence, "", r.Key)
}
