package drivertest

import (
	"context"
	"slices"
	"strings"
	"time"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

func testGetErrors(f *fixture) {
	key := Key("web", 1)
	_, err := f.Get(f.t.Context(), key)
	f.wants(err, errkind.NotFound, "", key)
	f.create(Record(key, driver.StatusDeployed, "x"))
	for _, other := range []driver.Key{
		{Namespace: "Default", Name: "web", Revision: 1},
		{Namespace: "default", Name: "Web", Revision: 1},
		{Namespace: "default", Name: "we", Revision: 1},
		{Namespace: "default", Name: "web ", Revision: 1},
		{Namespace: "default", Name: "w%", Revision: 1},
		{Namespace: "default", Name: "web", Revision: 11},
	} {
		_, err := f.Get(f.t.Context(), other)
		f.wants(err, errkind.NotFound, "", other)
	}
}

func testNamespaces(f *fixture) {
	in := func(namespace string) driver.Key { return driver.Key{Namespace: namespace, Name: "web", Revision: 1} }
	for _, namespace := range []string{"a", "b", "A"} {
		f.create(Record(in(namespace), driver.StatusDeployed, "in "+namespace))
	}
	for _, namespace := range []string{"a", "b", "A"} {
		if r := f.get(in(namespace)); string(r.Body) != "in "+namespace {
			f.t.Errorf("%s: got %q", namespace, r.Body)
		}
		if all := f.query(driver.Query{Namespace: namespace}); len(all) != 1 || all[0].Key != in(namespace) {
			f.t.Errorf("%s: listed %v", namespace, all)
		}
	}
	f.update(f.get(in("b")).Version, Record(in("b"), driver.StatusFailed, "changed"))
	if err := f.Delete(f.t.Context(), in("A"), 0); err != nil {
		f.t.Fatal(err)
	}
	if r := f.get(in("a")); string(r.Body) != "in a" || r.Status != driver.StatusDeployed {
		f.t.Errorf("a change in another namespace changed it: %+v", r)
	}
	if all := f.query(driver.Query{}); len(all) != 2 {
		f.t.Errorf("of all namespaces: %v", all)
	}
}

func (f *fixture) picks(q driver.Query, want ...string) {
	f.t.Helper()
	var got []string
	for _, h := range f.query(q) {
		got = append(got, h.Key.String())
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("%+v:\n got %q\nwant %q", q, got, want)
	}
}

func testQuery(f *fixture) {
	f.picks(driver.Query{})
	for _, r := range []driver.Record{
		Record(Key("web", 1), driver.StatusSuperseded, "x"),
		Record(Key("web", 2), driver.StatusFailed, "x"),
		Record(Key("web", 3), driver.StatusDeployed, "x"),
		Record(Key("api", 1), driver.StatusDeployed, "x"),
	} {
		f.create(r)
	}
	other := Record(driver.Key{Namespace: "other", Name: "web", Revision: 1}, driver.StatusDeployed, "x")
	other.Kind = "other"
	f.create(other)
	f.picks(driver.Query{}, "default/api.v1", "default/web.v1", "default/web.v2", "default/web.v3", "other/web.v1")
	f.picks(driver.Query{Namespace: "default"}, "default/api.v1", "default/web.v1", "default/web.v2", "default/web.v3")
	f.picks(driver.Query{Name: "web"}, "default/web.v1", "default/web.v2", "default/web.v3", "other/web.v1")
	f.picks(driver.Query{Namespace: "default", Name: "web", Revision: 2}, "default/web.v2")
	f.picks(driver.Query{Revision: 1}, "default/api.v1", "default/web.v1", "other/web.v1")
	f.picks(driver.Query{Kind: "other"}, "other/web.v1")
	f.picks(driver.Query{Kind: "tes"})
	f.picks(driver.Query{Name: "WEB"})
	f.picks(driver.Query{Name: "web", Statuses: []driver.Status{driver.StatusDeployed}}, "default/web.v3", "other/web.v1")
	f.picks(driver.Query{Namespace: "default", Statuses: []driver.Status{driver.StatusDeployed, driver.StatusFailed}},
		"default/api.v1", "default/web.v2", "default/web.v3")
	f.picks(driver.Query{Statuses: []driver.Status{driver.StatusUninstalled}})
}

func testQueryLabels(f *fixture) {
	odd := "it's \"odd\" 100% \\ \n {é日}"
	for name, labels := range map[string]map[string]string{
		"a": {"team": "shop", "tier": "front", "empty": ""},
		"b": {"team": "shop", "tier": "back"},
		"c": {"team": "Shop", odd: odd},
		"d": nil,
	} {
		r := Record(Key(name, 1), driver.StatusDeployed, "x")
		r.Labels = labels
		if h := f.create(r); !Same(h, f.get(r.Key).Head) {
			f.t.Errorf("%s: got other labels: %v", name, f.get(r.Key).Labels)
		}
	}
	f.picks(driver.Query{Labels: map[string]string{}}, "default/a.v1", "default/b.v1", "default/c.v1", "default/d.v1")
	f.picks(driver.Query{Labels: map[string]string{"team": "shop"}}, "default/a.v1", "default/b.v1")
	f.picks(driver.Query{Labels: map[string]string{"team": "shop", "tier": "back"}}, "default/b.v1")
	f.picks(driver.Query{Labels: map[string]string{"team": "shop", "tier": "middle"}})
	f.picks(driver.Query{Labels: map[string]string{"team": ""}}) // a value like any other
	f.picks(driver.Query{Labels: map[string]string{"empty": ""}}, "default/a.v1")
	f.picks(driver.Query{Labels: map[string]string{"Team": "shop"}})
	f.picks(driver.Query{Labels: map[string]string{odd: odd}}, "default/c.v1")
	f.picks(driver.Query{Labels: map[string]string{"": ""}})
	// Labels that look like what a driver keeps for itself are the caller's own.
	r := Record(Key("e", 1), driver.StatusDeployed, "x")
	r.Labels = map[string]string{"holdfast.release.status": "failed", "status": "failed", "name": "x"}
	f.same("labels", f.create(r), f.get(r.Key).Head)
	f.picks(driver.Query{Labels: map[string]string{"holdfast.release.status": "failed"}}, "default/e.v1")
	f.picks(driver.Query{Name: "e", Statuses: []driver.Status{driver.StatusDeployed}}, "default/e.v1")
}

// The loop may stop early, and call the driver.
func testQueryLoop(f *fixture) {
	for i := range int64(4) {
		f.create(Record(Key("web", i+1), driver.StatusFailed, "x"))
	}
	for _, err := range f.Query(f.t.Context(), driver.Query{}) {
		if err != nil {
			f.t.Fatal(err)
		}
		break
	}
	seen := 0
	for h, err := range f.Query(f.t.Context(), driver.Query{}) {
		if err != nil {
			f.t.Fatal(err)
		}
		seen++
		f.get(h.Key)
		if h.Key.Revision%2 == 0 {
			if err := f.Delete(f.t.Context(), h.Key, h.Version); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	if seen < 2 {
		f.t.Errorf("%d seen", seen)
	}
	f.picks(driver.Query{}, "default/web.v1", "default/web.v3")
}

func testOrder(f *fixture) {
	for _, revision := range []int64{10, 2, 1 << 40, 1, 9} {
		f.create(Record(Key("b", revision), driver.StatusFailed, "x"))
	}
	for _, name := range []string{"é", "a b", "a-b", "B", "a", "a.v2"} {
		f.create(Record(Key(name, 1), driver.StatusFailed, "x"))
	}
	f.create(Record(driver.Key{Namespace: "Z", Name: "z", Revision: 1}, driver.StatusFailed, "x"))
	f.picks(driver.Query{},
		"Z/z.v1", "default/B.v1", "default/a.v1", "default/a b.v1", "default/a-b.v1", "default/a.v2.v1",
		"default/b.v1", "default/b.v2", "default/b.v9", "default/b.v10", "default/b.v1099511627776", "default/é.v1")
}

func testNames(f *fixture) {
	long := strings.Repeat("long-", driver.MaxName/5) + "name"
	keys := []driver.Key{
		{Namespace: strings.Repeat("n", driver.MaxNamespace), Name: long, Revision: 1},
		{Namespace: strings.Repeat("n", driver.MaxNamespace-1) + "N", Name: long, Revision: 1},
		{Namespace: strings.Repeat("n", driver.MaxNamespace), Name: long[:len(long)-1] + "E", Revision: 1},
		{Namespace: strings.Repeat("n", driver.MaxNamespace), Name: long, Revision: 1 << 62},
		{Namespace: "n", Name: "web.v1", Revision: 2},
		{Namespace: "n", Name: "zero", Revision: 0},
		{Namespace: "n", Name: "web", Revision: 12},
		{Namespace: "n", Name: "web.v1.v2", Revision: 1},
		{Namespace: "n", Name: ".v", Revision: 1},
		{Namespace: "n", Name: "v", Revision: 1},
		{Namespace: "n", Name: "a/b", Revision: 1},
		{Namespace: "n", Name: "sh.helm.release.v1.web", Revision: 1},
		{Namespace: "n", Name: "' OR 1=1; --", Revision: 1},
		{Namespace: "n", Name: "Web", Revision: 12},
		{Namespace: "日本", Name: "é", Revision: 1},
		{Namespace: "日本", Name: "e\u0301", Revision: 1},
	}
	for _, key := range keys {
		f.create(Record(key, driver.StatusFailed, key.String()))
	}
	for _, key := range keys {
		if r := f.get(key); string(r.Body) != key.String() || r.Key != key {
			f.t.Errorf("%v: got %v", key, r.Key)
		}
		if all := f.query(driver.Query{Namespace: key.Namespace, Name: key.Name, Revision: key.Revision}); len(all) != 1 || all[0].Key != key {
			f.t.Errorf("%v: picked %v", key, all)
		}
	}
	if all := f.query(driver.Query{}); len(all) != len(keys) {
		f.t.Errorf("%d of %d keys", len(all), len(keys))
	}
}

// What the driver was given and gave away can be changed without a change of what it keeps.
func testNothingIsShared(f *fixture) {
	r := Record(Key("web", 1), driver.StatusDeployed, "body")
	r.Labels = map[string]string{"a": "1"}
	created := f.create(r)
	created.Labels["a"] = "2"
	r.Body[0], r.Labels["a"] = 'X', "3"
	got := f.get(r.Key)
	got.Body[0], got.Labels["a"] = 'Y', "4"
	for _, h := range f.query(driver.Query{}) {
		h.Labels["a"] = "5"
	}
	if got := f.get(r.Key); string(got.Body) != "body" || got.Labels["a"] != "1" {
		f.t.Errorf("got %q, %v", got.Body, got.Labels)
	}
}

// Whatever a call is to do, it does nothing when its context has ended, and says so.
func testEndedContext(f *fixture) {
	old := f.create(Record(Key("web", 1), driver.StatusDeployed, "x"))
	canceled, cancel := context.WithCancel(f.t.Context())
	cancel()
	late, cancel := context.WithDeadline(f.t.Context(), time.Unix(1, 0))
	defer cancel()
	for ctx, kind := range map[context.Context]errkind.Kind{canceled: errkind.Canceled, late: errkind.DeadlineReached} {
		for method, err := range f.callAll(ctx, old) {
			if !errkind.Is(err, kind) {
				f.t.Errorf("%s: got %v, of kind %d, want %d", method, err, errkind.Of(err), kind)
			}
		}
	}
	all := f.query(driver.Query{})
	if len(all) != 1 {
		f.t.Fatalf("left: %v", all)
	}
	f.same("after", all[0], old)
}

// callAll calls each method, on a record that is there or one that can be made, and returns
// the errors.
func (f *fixture) callAll(ctx context.Context, old driver.Head) map[string]error {
	_, createErr := f.Create(ctx, Record(Key("new", 1), driver.StatusDeployed, "x"))
	_, updateErr := f.Update(ctx, old.Version, Record(old.Key, driver.StatusFailed, "x"))
	_, getErr := f.Get(ctx, old.Key)
	_, missingErr := f.Get(ctx, Key("missing", 1))
	var queryErr error
	for _, err := range f.Query(ctx, driver.Query{}) {
		queryErr = err
	}
	return map[string]error{
		"Create": createErr, "Update": updateErr, "Get": getErr, "Get of what is not there": missingErr,
		"Delete": f.Delete(ctx, old.Key, 0), "Query": queryErr,
	}
}

// A backend that is away is not a record that is not there.
func testUnreachable(f *fixture) {
	if f.Stop == nil {
		f.t.Log("the backend is part of the process: it cannot be away")
		return
	}
	old := f.create(Record(Key("web", 1), driver.StatusDeployed, "x"))
	f.Stop(f.t)
	for method, err := range f.callAll(f.t.Context(), old) {
		kind := errkind.Of(err)
		write := method == "Create" || method == "Update" || method == "Delete"
		if err == nil || kind != errkind.NoLeader && (kind != errkind.UnknownOutcome || !write) {
			f.t.Errorf("%s: got %v, of kind %d", method, err, kind)
		}
	}
}
