package manager_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/api"
	"holdfast/client"
	"holdfast/internal/errkind"
	"holdfast/manager"
	"holdfast/manager/objects"
	"holdfast/manager/releasestore"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
)

// A body of this size takes three transactions, of which the first two leave stagedParts.
const (
	stagedBody  = 8_000_000
	stagedParts = 31
)

// sweepFixture is a store in a bubble, whose clock is the bubble's.
type sweepFixture struct {
	t     testing.TB
	loop  *storetest.Loop
	store *store.MemoryStore
	log   bytes.Buffer
	kinds map[string]object.Store
}

// sweeping runs a test in a bubble of its own, where waiting costs no time.
func sweeping(t *testing.T, test func(t *testing.T, f *sweepFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newSweepFixture(t)) })
}

func newSweepFixture(t testing.TB) *sweepFixture {
	loop := storetest.NewLoop(t, store.Options{})
	return &sweepFixture{t: t, loop: loop, store: loop.Store, kinds: map[string]object.Store{
		"secret": releasestore.Secrets(loop.Store), "config": releasestore.Configs(loop.Store),
	}}
}

func (f *sweepFixture) logger() *slog.Logger { return slog.New(slog.NewTextHandler(&f.log, nil)) }

func (f *sweepFixture) sweepOnce() {
	f.t.Helper()
	if err := manager.SweepOnce(f.t.Context(), f.store, f.logger()); err != nil {
		f.t.Fatal(err)
	}
}

// sweepUntil sweeps as the leader does, until it is told to end.
func (f *sweepFixture) sweepUntil() (end func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Sweep(ctx, f.store, f.logger()) }()
	return func() {
		f.t.Helper()
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	}
}

// pass lets time pass, and then everybody do what is to be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (f *sweepFixture) update(fn func(*store.Tx) error) {
	f.t.Helper()
	if _, err := f.store.Update(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

func planner() object.Planner { return object.Planner{Clock: time.Now, Random: rand.Reader} }

func releases(s object.Store) *object.Driver {
	return object.New(object.Options{Name: "object/test", Store: s, Planner: planner()})
}

func record(name string, size int) driver.Record {
	return driver.Record{
		Head: driver.Head{
			Key: driver.Key{Namespace: "default", Name: name, Revision: 1}, Kind: "test", Status: driver.StatusDeployed,
		},
		Body: make([]byte, size),
	}
}

// begin does all of the creation of a record but its last transaction, which it returns.
func begin(t testing.TB, s object.Store, name string) []object.Op {
	t.Helper()
	plan, err := planner().Create(record(name, stagedBody))
	if err != nil {
		t.Fatal(err)
	}
	for _, ops := range plan.Stages {
		if _, err := s.Write(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
	}
	return plan.Last
}

// list gives the parts of records that have the labels.
func list(t testing.TB, s object.Store, labels map[string]string) []object.Object {
	t.Helper()
	var all []object.Object
	for o, err := range s.List(t.Context(), labels) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// parts counts the parts of records.
func parts(t testing.TB, s object.Store) int {
	t.Helper()
	return len(list(t, s, nil))
}

// What an upload left goes when it is older than an hour. What is younger stays, and so do records.
func TestSweepOnce(t *testing.T) {
	sweeping(t, func(t *testing.T, f *sweepFixture) {
		whole, young := map[string]int{}, map[string][]object.Op{}
		for kind, s := range f.kinds {
			for name, size := range map[string]int{"large": stagedBody, "small": 1} {
				if _, err := releases(s).Create(t.Context(), record(name, size)); err != nil {
					t.Fatal(err)
				}
			}
			whole[kind] = parts(t, s)
			begin(t, s, "old")
		}
		time.Sleep(time.Nanosecond)
		for kind, s := range f.kinds {
			young[kind] = begin(t, s, "young")
		}
		at := f.store.Root().Revision()
		time.Sleep(time.Hour - time.Nanosecond)
		f.sweepOnce()
		if now := f.store.Root().Revision(); now != at || f.log.Len() > 0 {
			t.Errorf("nothing is old, but revision %d became %d: %s", at, now, f.log.String())
		}
		time.Sleep(time.Nanosecond)
		f.sweepOnce()
		for kind, s := range f.kinds {
			if n := parts(t, s); n != whole[kind]+stagedParts {
				t.Errorf("%s: %d parts, want %d of records and %d of an upload", kind, n, whole[kind], stagedParts)
			}
			if _, err := s.Write(t.Context(), young[kind]); err != nil {
				t.Errorf("%s: what is young cannot be finished: %v", kind, err)
			}
			if line := fmt.Sprintf("driver=object/%s objects=%d", kind, stagedParts); !strings.Contains(f.log.String(), line) {
				t.Errorf("%q is not in the log: %s", line, f.log.String())
			}
			for _, name := range []string{"large", "small", "young"} {
				if _, err := releases(s).Get(t.Context(), driver.Key{Namespace: "default", Name: name, Revision: 1}); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
		}
		history, err := f.store.Changes(at, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range history {
			if r.Request.Caller != "manager" || r.Request.Message != "sweep what unfinished uploads left" || len(r.Changes) != stagedParts {
				t.Errorf("%d changes by %+v", len(r.Changes), r.Request)
			}
		}
		time.Sleep(24 * time.Hour)
		f.store.Lost(1)
		f.sweepOnce() // it would fail if it ran a transaction
	})
}

// It begins when the store takes writes, goes on every ten minutes, and ends with leadership.
func TestSweepUntilTheEnd(t *testing.T) {
	sweeping(t, func(t *testing.T, f *sweepFixture) {
		s := f.kinds["config"]
		begin(t, s, "left")
		pass(2 * time.Hour)
		f.store.Lost(1)
		end := f.sweepUntil()
		pass(0)
		if n := parts(t, s); n != stagedParts || f.log.Len() > 0 {
			t.Errorf("before the store takes writes: %d parts, %s", n, f.log.String())
		}
		f.loop.Lead(t)
		pass(2 * time.Second)
		if n := parts(t, s); n != 0 {
			t.Errorf("%d parts are left", n)
		}
		begin(t, s, "more")
		pass(time.Hour)
		if n := parts(t, s); n != stagedParts {
			t.Errorf("after an hour: %d parts", n)
		}
		pass(10 * time.Minute)
		if n := parts(t, s); n != 0 {
			t.Errorf("%d parts are left", n)
		}
		end()
	})
}

// What cannot be removed is told, keeps nothing else from being removed, and is tried again.
func TestSweepGoesOn(t *testing.T) {
	sweeping(t, func(t *testing.T, f *sweepFixture) {
		secrets, configs := f.kinds["secret"], f.kinds["config"]
		begin(t, secrets, "left")
		begin(t, configs, "left")
		chunk := list(t, secrets, map[string]string{object.LabelPart: "chunk"})[0]
		var service *api.Service
		f.update(func(tx *store.Tx) (err error) {
			spec := serviceSpec("web")
			spec.Task.GetContainer().Secrets = []*api.SecretReference{{
				SecretID: chunk.ID, SecretName: chunk.Name,
				Target: &api.SecretReference_File{File: &api.FileTarget{Name: "x"}},
			}}
			service, err = objects.CreateService(tx, spec)
			return err
		})
		end := f.sweepUntil()
		pass(75 * time.Minute)
		if s, c := parts(t, secrets), parts(t, configs); s != stagedParts || c != 0 {
			t.Errorf("%d parts in secrets and %d in configs are left", s, c)
		}
		if log := f.log.String(); strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, chunk.Name) {
			t.Errorf("the log does not tell once of %s: %s", chunk.Name, log)
		}
		f.update(func(tx *store.Tx) error { _, err := objects.RemoveService(tx, service.ID); return err })
		pass(10 * time.Minute)
		if n := parts(t, secrets); n != 0 {
			t.Errorf("%d parts are left", n)
		}
		end()
	})
}

// A manager sweeps when it begins to lead.
func TestLeaderSweeps(t *testing.T) {
	dir, err := os.MkdirTemp("", "hf") // a socket's path may have 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	var later atomic.Int64
	cfg := manager.WithClock(manager.Config{}, func() time.Time { return time.Now().Add(time.Duration(later.Load())) })
	configs := func(t *testing.T) object.Store {
		c, err := client.New(client.Options{Endpoints: []string{"unix://" + start(t, dir, cfg).ready.Control}, RetryFor: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		return object.NewClient(c)
	}
	var last []object.Op
	t.Run("an upload that is not finished", func(t *testing.T) {
		s := configs(t)
		last = begin(t, s, "left")
		if n := parts(t, s); n != stagedParts {
			t.Errorf("%d parts", n)
		}
	})
	later.Store(int64(2 * time.Hour))
	s := configs(t)
	eventually(t, func() bool { return parts(t, s) == 0 })
	if _, err := s.Write(t.Context(), last); !errkind.Is(err, errkind.NotFound) {
		t.Errorf("the upload goes on: %v", err)
	}
}

// BenchmarkSweepOnce looks where there is nothing to remove: beside 10,000 configs, and 1,000
// records in configs.
func BenchmarkSweepOnce(b *testing.B) {
	for _, records := range []int{0, 1_000} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			f := newSweepFixture(b)
			for i := range 20 {
				f.update(func(tx *store.Tx) error {
					for j := range 500 {
						if _, err := objects.CreateConfig(tx, &api.ConfigSpec{
							Annotations: api.Annotations{Name: fmt.Sprintf("app-%d-%d", i, j)}, Data: []byte("x"),
						}); err != nil {
							return err
						}
					}
					return nil
				})
			}
			for i := range records {
				if _, err := releases(f.kinds["config"]).Create(b.Context(), record(fmt.Sprint("app-", i), 10_000)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				f.sweepOnce()
			}
		})
	}
}
