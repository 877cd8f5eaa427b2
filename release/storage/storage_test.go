package storage_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
	"holdfast/release/driver/memory"
	"holdfast/release/drivertest"
	"holdfast/release/storage"
)

func newStorage(t testing.TB, d driver.Driver, maxHistory int) *storage.Storage {
	t.Helper()
	s, err := storage.New(storage.Options{Driver: d, Kind: "test", MaxHistory: maxHistory})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newMemory() *memory.Driver { return memory.New(drivertest.NewClock().Now) }

func release(name string, revision int64, status driver.Status) storage.Release {
	return storage.Release{
		Head:    driver.Head{Key: drivertest.Key(name, revision), Status: status},
		Content: json.RawMessage(`{"n":1}`),
	}
}

func create(t testing.TB, s *storage.Storage, r storage.Release) storage.Release {
	t.Helper()
	created, err := s.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// revisions gives the revisions of heads.
func revisions(heads []driver.Head) []int64 {
	var all []int64
	for _, h := range heads {
		all = append(all, h.Key.Revision)
	}
	return all
}

func history(t testing.TB, s *storage.Storage) []int64 {
	t.Helper()
	all, err := s.History(t.Context(), "default", "web")
	if err != nil {
		t.Fatal(err)
	}
	return revisions(all)
}

func TestNew(t *testing.T) {
	for _, o := range []storage.Options{{Kind: "test"}, {Driver: newMemory()}} {
		if _, err := storage.New(o); !errkind.Is(err, errkind.Invalid) {
			t.Errorf("got %v", err)
		}
	}
}

func TestCreateAndGet(t *testing.T) {
	s := newStorage(t, newMemory(), 0)
	r := release("web", 1, driver.StatusPendingInstall)
	r.Labels = map[string]string{"team": "shop"}
	created := create(t, s, r)
	got, err := s.Get(t.Context(), r.Key)
	if err != nil || !drivertest.Same(got.Head, created.Head) || string(got.Content) != `{"n":1}` || got.Kind != "test" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := s.Create(t.Context(), r); !errkind.Is(err, errkind.Exists) {
		t.Errorf("again: %v", err)
	}
	r.Content = json.RawMessage("{")
	if _, err := s.Create(t.Context(), r); !errkind.Is(err, errkind.Invalid) {
		t.Errorf("not JSON: %v", err)
	}
	for _, key := range []driver.Key{{}, {Namespace: "default", Name: "web", Revision: -1}} {
		r := release("web", 1, driver.StatusFailed)
		r.Key = key
		_, createErr := s.Create(t.Context(), r)
		_, getErr := s.Get(t.Context(), key)
		for _, err := range []error{createErr, getErr} {
			if !errkind.Is(err, errkind.Invalid) {
				t.Errorf("invalid key: %v", err)
			}
		}
	}
}

func TestUpdate(t *testing.T) {
	s := newStorage(t, newMemory(), 0)
	first := create(t, s, release("web", 1, driver.StatusPendingInstall))
	r := first
	r.Status, r.Content = driver.StatusDeployed, nil
	second, err := s.Update(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(t.Context(), r.Key)
	if err != nil || got.Status != driver.StatusDeployed || string(got.Content) != `{"n":1}` {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := s.Update(t.Context(), r); !errkind.Is(err, errkind.OutOfSequence) {
		t.Errorf("from an old version: %v", err)
	}
	second.Content = json.RawMessage(`{"n":2}`)
	if _, err := s.Update(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), r.Key); err != nil || string(got.Content) != `{"n":2}` {
		t.Errorf("got %s, %v", got.Content, err)
	}
	missing := release("web", 9, driver.StatusDeployed)
	missing.Version = 1
	if _, err := s.Update(t.Context(), missing); !errkind.Is(err, errkind.NotFound) {
		t.Errorf("missing: %v", err)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	s := newStorage(t, newMemory(), 0)
	other, err := storage.New(storage.Options{Driver: newMemory(), Kind: "other"})
	if err != nil {
		t.Fatal(err)
	}
	create(t, other, release("web", 1, driver.StatusDeployed))
	_, getErr := s.Get(t.Context(), drivertest.Key("web", 1))
	_, lastErr := s.Last(t.Context(), "default", "web")
	_, historyErr := s.History(t.Context(), "default", "web")
	for _, err := range []error{getErr, lastErr, historyErr, s.Delete(t.Context(), drivertest.Key("web", 1), 0)} {
		if !errkind.Is(err, errkind.NotFound) || errors.Is(err, storage.ErrNoDeployed) {
			t.Errorf("got %v", err)
		}
	}
	create(t, s, release("web", 1, driver.StatusFailed))
	_, deployedErr := s.Deployed(t.Context(), "default", "web")
	_, allErr := s.DeployedAll(t.Context(), "default", "web")
	for _, err := range []error{deployedErr, allErr} {
		if !errkind.Is(err, errkind.NotFound) || !errors.Is(err, storage.ErrNoDeployed) {
			t.Errorf("got %v", err)
		}
	}
	for _, name := range []string{"", "a\x00"} {
		if _, err := s.History(t.Context(), "default", name); !errkind.Is(err, errkind.Invalid) {
			t.Errorf("history of %q: %v", name, err)
		}
	}
	if all, err := s.List(t.Context(), storage.ListOptions{Namespace: "none"}); err != nil || len(all) != 0 {
		t.Errorf("got %v, %v", all, err)
	}
}

// Records of another kind are not seen, and not counted.
func TestOtherKinds(t *testing.T) {
	d := newMemory()
	s := newStorage(t, d, 2)
	if _, err := d.Create(t.Context(), drivertest.Record(drivertest.Key("web", 1), driver.StatusFailed, "not ours")); err != nil {
		t.Fatal(err)
	}
	other, err := storage.New(storage.Options{Driver: d, Kind: "other", MaxHistory: 1})
	if err != nil {
		t.Fatal(err)
	}
	create(t, other, release("web", 2, driver.StatusFailed))
	create(t, other, release("web", 3, driver.StatusFailed))
	if got, err := s.List(t.Context(), storage.ListOptions{}); err != nil || !slices.Equal(revisions(got), []int64{1}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := s.Get(t.Context(), drivertest.Key("web", 3)); !errkind.Is(err, errkind.NotFound) {
		t.Errorf("got %v", err)
	}
	if err := s.Delete(t.Context(), drivertest.Key("web", 3), 0); !errkind.Is(err, errkind.NotFound) {
		t.Errorf("got %v", err)
	}
	if err := other.Delete(t.Context(), drivertest.Key("web", 3), 0); err != nil {
		t.Error(err)
	}
}

func TestLastAndDeployed(t *testing.T) {
	s := newStorage(t, newMemory(), -1)
	for _, revision := range []int64{10, 1, 9, 2} {
		status := driver.StatusSuperseded
		if revision == 2 {
			status = driver.StatusDeployed
		}
		create(t, s, release("web", revision, status))
	}
	create(t, s, release("web.v11", 12, driver.StatusDeployed))
	if got := history(t, s); !slices.Equal(got, []int64{1, 2, 9, 10}) {
		t.Errorf("history %v", got)
	}
	last, err := s.Last(t.Context(), "default", "web")
	if err != nil || last.Key.Revision != 10 {
		t.Errorf("last %v, %v", last.Key, err)
	}
	deployed, err := s.Deployed(t.Context(), "default", "web")
	if err != nil || deployed.Key.Revision != 2 || deployed.Content == nil {
		t.Errorf("deployed %+v, %v", deployed, err)
	}
	r := release("web", 3, driver.StatusDeployed)
	if _, err := s.Create(t.Context(), r); !errors.Is(err, driver.ErrDeployed) {
		t.Errorf("a second one: %v", err)
	}
	r.Overlap = true
	create(t, s, r)
	all, err := s.DeployedAll(t.Context(), "default", "web")
	if err != nil || !slices.Equal(revisions(all), []int64{2, 3}) {
		t.Errorf("deployed %v, %v", all, err)
	}
	if deployed, err = s.Deployed(t.Context(), "default", "web"); err != nil || deployed.Key.Revision != 3 {
		t.Errorf("deployed %v, %v", deployed.Key, err)
	}
	next, err := s.Next(t.Context(), "default", "web")
	if err != nil || next != drivertest.Key("web", 11) {
		t.Errorf("next %v, %v", next, err)
	}
	if next, err = s.Next(t.Context(), "default", "new"); err != nil || next != drivertest.Key("new", 1) {
		t.Errorf("next %v, %v", next, err)
	}
}

func TestHistoryIsLimited(t *testing.T) {
	for name, c := range map[string]struct {
		max      int
		statuses []driver.Status
		want     []int64
	}{
		"default":                 {0, fill(12, driver.StatusSuperseded), []int64{3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		"no limit":                {-1, fill(12, driver.StatusFailed), []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		"one":                     {1, fill(3, driver.StatusFailed), []int64{3}},
		"the deployed one stays":  {3, append([]driver.Status{driver.StatusSuperseded, driver.StatusDeployed}, fill(3, driver.StatusFailed)...), []int64{2, 4, 5}},
		"and is all but the last": {1, append([]driver.Status{driver.StatusDeployed}, fill(3, driver.StatusFailed)...), []int64{1, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStorage(t, newMemory(), c.max)
			for i, status := range c.statuses {
				create(t, s, release("web", int64(i+1), status))
			}
			if got := history(t, s); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func fill(n int, status driver.Status) []driver.Status {
	return slices.Repeat([]driver.Status{status}, n)
}

// Whatever is created, in whatever order: the deployed ones and the new one are never
// removed, others only if they are too many, and the oldest of them first.
func TestPruneModel(t *testing.T) {
	rapid.Check(t, func(t2 *rapid.T) {
		limit := rapid.IntRange(1, 5).Draw(t2, "limit")
		s := newStorage(t, newMemory(), limit)
		have := map[int64]driver.Status{}
		for range rapid.IntRange(1, 15).Draw(t2, "creates") {
			revision := rapid.Int64Range(1, 30).Draw(t2, "revision")
			r := release("web", revision, rapid.SampledFrom(driver.Statuses()[:4]).Draw(t2, "status"))
			r.Overlap = true
			if _, taken := have[revision]; taken {
				continue
			}
			create(t, s, r)
			have[revision] = r.Status
			for old := int64(1); len(have) > limit && old <= 30; old++ {
				if status, ok := have[old]; ok && status != driver.StatusDeployed && old != revision {
					delete(have, old)
				}
			}
			got := history(t, s)
			if len(got) != len(have) {
				t2.Fatalf("got %v, want %v", got, have)
			}
			for _, g := range got {
				if _, ok := have[g]; !ok {
					t2.Fatalf("got %v, want %v", got, have)
				}
			}
		}
	})
}

// counting counts the bodies that are read, and fails deletes.
type counting struct {
	driver.Driver
	gets      int
	deleteErr error
	before    func(driver.Key) // each delete
}

func (c *counting) Get(ctx context.Context, key driver.Key) (driver.Record, error) {
	c.gets++
	return c.Driver.Get(ctx, key)
}

func (c *counting) Delete(ctx context.Context, key driver.Key, version uint64) error {
	if c.deleteErr != nil {
		return c.deleteErr
	}
	if c.before != nil {
		c.before(key)
	}
	return c.Driver.Delete(ctx, key, version)
}

func TestListsReadNoBody(t *testing.T) {
	c := &counting{Driver: newMemory()}
	s := newStorage(t, c, 3)
	for i := range int64(5) {
		create(t, s, release("web", i+1, driver.StatusSuperseded))
	}
	create(t, s, release("web", 6, driver.StatusDeployed))
	if _, err := s.List(t.Context(), storage.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeployedAll(t.Context(), "default", "web"); err != nil {
		t.Fatal(err)
	}
	if history(t, s); c.gets != 0 {
		t.Errorf("%d bodies were read", c.gets)
	}
	if _, err := s.Deployed(t.Context(), "default", "web"); err != nil || c.gets != 1 {
		t.Errorf("%d bodies were read, %v", c.gets, err)
	}
}

func TestPruneFails(t *testing.T) {
	boom := errkind.New(errkind.NoLeader, "away")
	c := &counting{Driver: newMemory(), deleteErr: boom}
	s := newStorage(t, c, 1)
	create(t, s, release("web", 1, driver.StatusFailed))
	created, err := s.Create(t.Context(), release("web", 2, driver.StatusFailed))
	if !errors.Is(err, storage.ErrNotPruned) || !errors.Is(err, boom) || created.Key.Revision != 2 || !errkind.Is(err, errkind.NoLeader) {
		t.Errorf("got %+v, %v", created, err)
	}
	c.deleteErr = nil
	create(t, s, release("web", 3, driver.StatusFailed))
	if got := history(t, s); !slices.Equal(got, []int64{3}) {
		t.Errorf("history %v", got)
	}
}

// A revision that is deployed between the list and the removal stays.
func TestPruneLosesARace(t *testing.T) {
	c := &counting{Driver: newMemory()}
	s := newStorage(t, c, 1)
	old := create(t, s, release("web", 1, driver.StatusSuperseded))
	c.before = func(key driver.Key) {
		c.before = nil
		r := driver.Record{Head: old.Head}
		r.Status = driver.StatusDeployed
		if _, err := c.Update(t.Context(), old.Version, r); err != nil {
			t.Error(err)
		}
	}
	create(t, s, release("web", 2, driver.StatusPendingUpgrade))
	if got := history(t, s); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("history %v", got)
	}
}

// A body that is not of this package is told from one that is not there.
func TestForeignBody(t *testing.T) {
	d := newMemory()
	s := newStorage(t, d, 0)
	key := drivertest.Key("web", 1)
	if _, err := d.Create(t.Context(), drivertest.Record(key, driver.StatusDeployed, "\x01not gzip")); err != nil {
		t.Fatal(err)
	}
	for _, get := range []func() (storage.Release, error){
		func() (storage.Release, error) { return s.Get(t.Context(), key) },
		func() (storage.Release, error) { return s.Last(t.Context(), "default", "web") },
		func() (storage.Release, error) { return s.Deployed(t.Context(), "default", "web") },
	} {
		_, err := get()
		if e, ok := errors.AsType[*errkind.Error](err); !ok || !errors.Is(err, driver.ErrCorrupt) || e.ID != key.String() {
			t.Errorf("got %v", err)
		}
	}
}

// failing fails each query.
type failing struct{ driver.Driver }

func (failing) Query(context.Context, driver.Query) iter.Seq2[driver.Head, error] {
	return func(yield func(driver.Head, error) bool) {
		yield(driver.Head{}, errkind.New(errkind.NoLeader, "away"))
	}
}

func TestBackendAway(t *testing.T) {
	s := newStorage(t, failing{newMemory()}, 0)
	_, historyErr := s.History(t.Context(), "default", "web")
	_, lastErr := s.Last(t.Context(), "default", "web")
	_, deployedErr := s.Deployed(t.Context(), "default", "web")
	_, listErr := s.List(t.Context(), storage.ListOptions{})
	_, nextErr := s.Next(t.Context(), "default", "web")
	for _, err := range []error{historyErr, lastErr, deployedErr, listErr, nextErr} {
		if !errkind.Is(err, errkind.NoLeader) {
			t.Errorf("got %v", err)
		}
	}
}
