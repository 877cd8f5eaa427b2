package stackapi_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/stackapi"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
	"holdfast/release/driver"
	"holdfast/release/driver/memory"
)

// namespace is that of the archive's records.
const namespace = "stacks-of-a-cluster"

// life is how far a manager comes before it dies: some writes, to the store or to the archive.
type life struct {
	mu   sync.Mutex
	left int  // writes until the last one; below 0: it does not die
	done bool // the last one is done, but nobody hears of it
	dead bool
}

var errDead = errkind.New(errkind.NoLeader, "the manager is dead")

// write does a write, unless the manager is dead, or dies of it.
func (l *life) write(do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.dead:
		return errDead
	case l.left != 0:
		l.left--
		return do()
	}
	l.dead = true
	if !l.done {
		return errDead
	}
	if err := do(); err != nil {
		return err
	}
	return errkind.New(errkind.UnknownOutcome, "the manager died over it")
}

// mortalStore is the store of a manager that dies.
type mortalStore struct {
	*store.MemoryStore
	life *life
}

func (s mortalStore) Update(ctx context.Context, fn func(*store.Tx) error) (result store.Result, err error) {
	err = s.life.write(func() (err error) {
		result, err = s.MemoryStore.Update(ctx, fn)
		return err
	})
	return result, err
}

// mortalDriver is the archive of a manager that dies.
type mortalDriver struct {
	driver.Driver
	life *life
}

func (d mortalDriver) Create(ctx context.Context, r driver.Record) (h driver.Head, err error) {
	err = d.life.write(func() (err error) {
		h, err = d.Driver.Create(ctx, r)
		return err
	})
	return h, err
}

func (d mortalDriver) Update(ctx context.Context, version uint64, r driver.Record) (h driver.Head, err error) {
	err = d.life.write(func() (err error) {
		h, err = d.Driver.Update(ctx, version, r)
		return err
	})
	return h, err
}

func (d mortalDriver) Delete(ctx context.Context, key driver.Key, version uint64) error {
	return d.life.write(func() error { return d.Driver.Delete(ctx, key, version) })
}

func (d mortalDriver) Query(ctx context.Context, q driver.Query) iter.Seq2[driver.Head, error] {
	d.life.mu.Lock()
	defer d.life.mu.Unlock()
	if d.life.dead {
		return func(yield func(driver.Head, error) bool) { yield(driver.Head{}, errDead) }
	}
	return d.Driver.Query(ctx, q)
}

// archived is a cluster with an archive.
type archived struct {
	t       *testing.T
	store   *store.MemoryStore
	archive driver.Driver
}

func newArchived(t *testing.T) *archived {
	return &archived{t, storetest.New(t), memory.New(time.Now)}
}

// manager makes a manager of the cluster that lives on.
func (a *archived) manager() *fixture {
	c := config(a.t, a.store)
	c.Archive, c.Namespace = a.archive, namespace
	return &fixture{stackapi.New(c), a.t, a.store}
}

// mortal makes a manager that dies.
func (a *archived) mortal(l *life) *fixture {
	c := config(a.t, a.store)
	c.Store, c.Archive, c.Namespace = mortalStore{a.store, l}, mortalDriver{a.archive, l}, namespace
	return &fixture{stackapi.New(c), a.t, a.store}
}

// heads gives what the archive has: "1 superseded, 2 deployed".
func (a *archived) heads() string {
	a.t.Helper()
	var all []string
	for h, err := range a.archive.Query(a.t.Context(), driver.Query{Namespace: namespace}) {
		if err != nil {
			a.t.Fatal(err)
		}
		all = append(all, fmt.Sprint(h.Key.Revision, " ", h.Status))
	}
	return strings.Join(all, ", ")
}

// TestManagerDies lets a manager die before and after each of its writes, to the store and to the
// archive. Whatever was done then, the store has all of it or nothing; readers see what the store
// says, at once; and the archive follows, whether by the leader or by the next call.
func TestManagerDies(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, op := range []struct {
		name string
		do   func(f *fixture) error
		// What readers see, and what the archive has once it follows, if it was done and if not.
		done, undone []string
	}{
		{
			"deploy", func(f *fixture) error {
				_, err := f.Deploy(ctx, scaled("a", 3))
				return err
			},
			[]string{"1 superseded, 2 superseded, 3 deployed"},
			[]string{"1 superseded, 2 deployed", "1 superseded, 2 deployed, 3 failed"},
		},
		{
			"deploy with a short history", func(f *fixture) error {
				r := scaled("a", 3)
				r.MaxHistory = 2
				_, err := f.Deploy(ctx, r)
				return err
			},
			// What is too many may wait for the next deployment.
			[]string{"2 superseded, 3 deployed", "1 superseded, 2 superseded, 3 deployed"},
			[]string{"1 superseded, 2 deployed", "1 superseded, 2 deployed, 3 failed"},
		},
		{
			"rollback", func(f *fixture) error {
				_, err := f.Rollback(ctx, &holdfast.RollbackRequest{Name: "a"})
				return err
			},
			[]string{"1 superseded, 2 superseded, 3 deployed"},
			[]string{"1 superseded, 2 deployed", "1 superseded, 2 deployed, 3 failed"},
		},
		{
			"remove", func(f *fixture) error {
				_, err := f.Remove(ctx, &holdfast.RemoveStackRequest{Name: "a"})
				return err
			},
			[]string{""},
			[]string{"1 superseded, 2 deployed"},
		},
		{
			"remove and keep the history", func(f *fixture) error {
				_, err := f.Remove(ctx, &holdfast.RemoveStackRequest{Name: "a", KeepHistory: true})
				return err
			},
			[]string{"1 superseded, 2 uninstalled"},
			[]string{"1 superseded, 2 deployed"},
		},
	} {
		for _, done := range []bool{false, true} {
			for writes := 0; ; writes++ {
				l := &life{left: writes, done: done}
				t.Run(fmt.Sprintf("%s/%d writes, the last one done %v", op.name, writes, done), func(t *testing.T) {
					dies(t, l, op.do, op.done, op.undone)
				})
				if !l.dead {
					break
				}
			}
		}
	}
}

// dies does something while a manager dies, and looks at what is left.
func dies(t *testing.T, l *life, do func(*fixture) error, done, undone []string) {
	a := newArchived(t)
	f := a.manager()
	f.deploy(scaled("a", 1))
	f.deploy(scaled("a", 2))
	before := f.store.Root().Revision()
	err := do(a.mortal(l))

	f = a.manager()
	want := undone
	if f.store.Root().Revision() > before {
		want = done
	} else if err == nil {
		t.Fatal("nothing was done, and nothing said")
	}
	seen := ""
	resp, historyErr := f.History(t.Context(), &holdfast.StackHistoryRequest{Name: "a"})
	if historyErr == nil {
		seen = f.history("a")
	} else if !errkind.Is(historyErr, errkind.NotFound) {
		t.Fatal(historyErr)
	}
	// It is told before it has failed that it is under way.
	told := strings.NewReplacer("pending-upgrade", "failed", "pending-rollback", "failed", " of 1", "").Replace(seen)
	if !slices.Contains(want, told) {
		t.Errorf("before the archive follows, the history is %q, want one of %q; %v", seen, want, resp)
	}
	settled := a.copied()
	if err := settled.manager().Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := settled.heads(); !slices.Contains(want, got) {
		t.Errorf("after the leader looked, the archive has %q, want one of %q", got, want)
	}
	// The next call settles, too.
	next := f.deploy(scaled("a", 9))
	if got := a.heads(); strings.Count(got, " deployed") != 1 || !strings.HasSuffix(got, fmt.Sprint(next.Release, " deployed")) ||
		strings.Contains(got, "ing") {
		t.Errorf("after the next deployment, of %d, the archive has %q", next.Release, got)
	}
	if got := strings.ReplaceAll(f.history("a"), " of 1", ""); got != a.heads() {
		t.Errorf("the history is %q, and the archive has %q", got, a.heads())
	}
	if _, err := f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a"}); want[0] != "" && err != nil {
		t.Error(err)
	}
}

// copied is the cluster with a copy of its archive.
func (a *archived) copied() *archived {
	a.t.Helper()
	to := memory.New(time.Now)
	for h, err := range a.archive.Query(a.t.Context(), driver.Query{}) {
		if err != nil {
			a.t.Fatal(err)
		}
		if _, err := to.Create(a.t.Context(), must(a.archive.Get(a.t.Context(), h.Key))); err != nil {
			a.t.Fatal(err)
		}
	}
	return &archived{a.t, a.store, to}
}
