package stackapi_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/stackapi"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
	"holdfast/release/driver"
)

// withArchive is the name of the test that runs others with an archive.
const withArchive = "TestWithArchive"

// TestWithArchive runs what does not look at where records are: nothing of it may depend on that.
func TestWithArchive(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"TestCompare":                          TestCompare,
		"TestDrift":                            TestDrift,
		"TestCompareRefuses":                   TestCompareRefuses,
		"TestChangedContents":                  TestChangedContents,
		"TestWhatMakesAnotherObject":           TestWhatMakesAnotherObject,
		"TestNamesOfContents":                  TestNamesOfContents,
		"TestCredentials":                      TestCredentials,
		"TestDeployCreatesThenChangesNothing":  TestDeployCreatesThenChangesNothing,
		"TestDeployUpdatesAndRemoves":          TestDeployUpdatesAndRemoves,
		"TestDeployResetsWhatWasChangedByHand": TestDeployResetsWhatWasChangedByHand,
		"TestDeployMovesPorts":                 TestDeployMovesPorts,
		"TestDeployRefuses":                    TestDeployRefuses,
		"TestReleasesAreNumbered":              TestReleasesAreNumbered,
		"TestWhatMakesARelease":                TestWhatMakesARelease,
		"TestExpectedRelease":                  TestExpectedRelease,
		"TestDeployAtOnce":                     TestDeployAtOnce,
		"TestStackOfBeforeReleases":            TestStackOfBeforeReleases,
		"TestKeepOthers":                       TestKeepOthers,
		"TestListAndRemove":                    TestListAndRemove,
		"TestRemoveOfALargeStack":              TestRemoveOfALargeStack,
		"TestReplays":                          TestReplays,
		"TestReplaysAfterCompaction":           TestReplaysAfterCompaction,
		"TestConcurrentDeployments":            TestConcurrentDeployments,
		"TestRollback":                         TestRollback,
		"TestRollbackRefuses":                  TestRollbackRefuses,
		"TestRemoveWithHistory":                TestRemoveWithHistory,
		"TestGetRelease":                       TestGetRelease,
		"TestDryRun":                           TestDryRun,
		"TestLargeRecord":                      TestLargeRecord,
		"TestStage":                            TestStage,
		"TestDeployRefusesStaged":              TestDeployRefusesStaged,
		"TestStagedInVain":                     TestStagedInVain,
		"TestStagedInVainAndNothingNew":        TestStagedInVainAndNothingNew,
		"TestStageALargeStack":                 TestStageALargeStack,
		"TestStageReplays":                     TestStageReplays,
		"TestDeployKeepsWhatOthersUse":         TestDeployKeepsWhatOthersUse,
		"TestTasksInANetworkThatGoes":          TestTasksInANetworkThatGoes,
	} {
		t.Run(name, test)
	}
}

// lateStore is the store of a manager that does not hear of the outcome of what it writes, until it
// is let go.
type lateStore struct {
	*store.MemoryStore
	skip int // writes that it hears of
	late []func() error
}

func (s *lateStore) Update(ctx context.Context, fn func(*store.Tx) error) (store.Result, error) {
	if s.skip > 0 {
		s.skip--
		return s.MemoryStore.Update(ctx, fn)
	}
	s.late = append(s.late, func() error {
		_, err := s.MemoryStore.Update(context.WithoutCancel(ctx), fn)
		return err
	})
	return store.Result{}, errkind.New(errkind.UnknownOutcome, "it may come yet")
}

// A deployment whose outcome nobody knows is failed, and then comes true: the archive follows the
// store. If another one came between, it does not come true.
func TestOutcomeComesLate(t *testing.T) {
	for _, between := range []bool{false, true} {
		a := newArchived(t)
		late := &lateStore{MemoryStore: a.store, skip: 1} // the trial
		c := config(t, a.store)
		c.Store, c.Archive, c.Namespace = late, a.archive, namespace
		if _, err := stackapi.New(c).Deploy(t.Context(), app("a")); !errkind.Is(err, errkind.UnknownOutcome) {
			t.Fatal(err)
		}
		f := a.manager()
		if got := a.heads(); got != "1 pending-install" {
			t.Errorf("got %s", got)
		}
		if err := f.Settle(t.Context()); err != nil || a.heads() != "1 failed" {
			t.Errorf("got %s, %v", a.heads(), err)
		}
		want := "1 deployed"
		if between {
			want = "1 failed, 2 deployed"
			f.deploy(scaled("a", 7))
		}
		if err := late.late[0](); (err != nil) != between {
			t.Errorf("what is late ends with %v", err)
		}
		if err := f.Settle(t.Context()); err != nil || a.heads() != want {
			t.Errorf("got %s, %v, want %s", a.heads(), err, want)
		}
		if got := f.history("a"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A call that would succeed may fail in the end: the archive has what it had.
func TestFailsInTheEnd(t *testing.T) {
	for _, op := range []struct {
		name, want string
		do         func(s *stackapi.Server) error
	}{
		{"deploy", "1 superseded, 2 deployed, 3 failed", func(s *stackapi.Server) error {
			r := scaled("a", 3)
			r.MaxHistory = 1
			_, err := s.Deploy(t.Context(), r)
			return err
		}},
		{"remove", "1 superseded, 2 deployed", func(s *stackapi.Server) error {
			_, err := s.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"})
			return err
		}},
	} {
		a := newArchived(t)
		f := a.manager()
		f.deploy(scaled("a", 1))
		f.deploy(scaled("a", 2))
		before := a.store.Root().Revision()
		c := config(t, a.store)
		c.Store, c.Archive, c.Namespace = &refusing{a.store, 1}, a.archive, namespace
		if err := op.do(stackapi.New(c)); !errkind.Is(err, errkind.Refused) {
			t.Errorf("%s: got %v", op.name, err)
		}
		if got := a.heads(); got != op.want || a.store.Root().Revision() != before {
			t.Errorf("%s: got %s", op.name, got)
		}
	}
}

// pastReader reads a past state for a caller who asks for one.
type pastReader struct {
	reader
	revision uint64
}

func (r pastReader) Read(context.Context) (store.ReadTx, error) { return r.store.At(r.revision) }

// A caller may ask for a past state, and that is not what the archive is made to say.
func TestPastStateIsNotSettled(t *testing.T) {
	a := newArchived(t)
	f := a.manager()
	f.network("before", nil)
	f.deploy(scaled("a", 1))
	f.deploy(scaled("a", 2))
	before := a.heads()
	for revision := range a.store.Root().Revision() {
		c := config(t, a.store)
		c.Reader, c.Archive, c.Namespace = pastReader{reader{a.store}, 1 + revision}, a.archive, namespace
		past := stackapi.New(c)
		if resp, err := past.Deploy(t.Context(), scaled("a", 2)); err != nil || resp.Release != 2 {
			t.Errorf("of revision %d: %v, %v", 1+revision, resp, err)
		}
		if err := past.Settle(t.Context()); err != nil {
			t.Error(err)
		}
		dry := scaled("a", 3)
		dry.DryRun = true
		if resp, err := past.Deploy(t.Context(), dry); err != nil || resp.Release != 3 {
			t.Errorf("a dry run of revision %d: %v, %v", 1+revision, resp, err)
		}
		if got := a.heads(); got != before {
			t.Fatalf("of revision %d: the archive has %s, and had %s", 1+revision, got, before)
		}
	}
}

// refusing is a store that lets some transactions through, and refuses the others.
type refusing struct {
	*store.MemoryStore
	through int
}

func (s *refusing) Update(ctx context.Context, fn func(*store.Tx) error) (store.Result, error) {
	if s.through--; s.through >= 0 {
		return s.MemoryStore.Update(ctx, fn)
	}
	return s.MemoryStore.Update(ctx, func(tx *store.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return errkind.New(errkind.Refused, "no")
	})
}

// What only the archive has goes with the stack, too.
func TestRemoveWhatOnlyTheArchiveHas(t *testing.T) {
	a := newArchived(t)
	a.manager().deploy(app("a"))
	young := &archived{t, storetest.New(t), a.archive}
	f := young.manager()
	c := config(t, young.store)
	c.Store, c.Archive, c.Namespace = &refusing{young.store, 1}, a.archive, namespace
	if _, err := stackapi.New(c).Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"}); !errkind.Is(err, errkind.Refused) {
		t.Errorf("got %v", err)
	}
	if got := young.heads(); got != "1 superseded" {
		t.Errorf("after a removal that failed: %s", got)
	}
	must(f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"}))
	if got := young.heads(); got != "" {
		t.Errorf("got %s", got)
	}
}

// Two managers that both believe to lead deploy one stack at once: each deployment is one release.
func TestTwoLeaders(t *testing.T) {
	a := newArchived(t)
	const each = 10
	numbers := make(chan uint64, 2*each)
	var wg sync.WaitGroup
	for leader := range 2 {
		f := a.manager()
		for i := range each {
			wg.Go(func() {
				r := scaled("a", uint64(1+leader*each+i))
				r.MaxHistory = 100
				resp, err := f.Deploy(t.Context(), r)
				for tries := 0; errkind.Is(err, errkind.OutOfSequence) && tries < 1000; tries++ {
					resp, err = f.Deploy(t.Context(), r)
				}
				if err != nil {
					t.Error(err)
					return
				}
				numbers <- resp.Release
			})
		}
		wg.Go(func() {
			for range each {
				if err := f.Settle(t.Context()); err != nil && !errkind.Is(err, errkind.OutOfSequence) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	close(numbers)
	f := a.manager()
	if err := f.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := f.history("a"), a.heads(); got != want {
		t.Errorf("the history is %s, and the archive has %s", got, want)
	}
	status := map[uint64]string{}
	for _, r := range must(f.History(t.Context(), &holdfast.StackHistoryRequest{Name: "a"})).Releases {
		status[r.Number] = r.Status
	}
	seen, last := map[uint64]bool{}, uint64(0)
	for n := range numbers {
		if seen[n] || status[n] != "superseded" && status[n] != "deployed" {
			t.Errorf("release %d is told again, or is %q", n, status[n])
		}
		seen[n], last = true, max(last, n)
	}
	if len(seen) != 2*each || status[last] != "deployed" {
		t.Errorf("%d deployments; the last one, %d, is %q", len(seen), last, status[last])
	}
}

// Managers can be started with an archive, and without it again: the deployed release is in the
// store, and those of the store get into the archive.
func TestMoveToAnArchiveAndBack(t *testing.T) {
	a := newArchived(t)
	inStore := over(t, a.store)
	for i := range uint64(3) {
		inStore.deploy(scaled("a", 1+i))
	}
	before := must(inStore.GetRelease(t.Context(), &holdfast.GetReleaseRequest{Name: "a", Number: 2}))
	f := a.manager()
	if got := f.history("a"); got != "1 superseded, 2 superseded, 3 deployed" {
		t.Errorf("before all: %s", got)
	}
	f.deploy(scaled("a", 4))
	if got := a.heads(); got != "1 superseded, 2 superseded, 3 superseded, 4 deployed" || f.records() != 3 {
		t.Errorf("got %s, and %d parts of records in the store", got, f.records())
	}
	after := must(f.GetRelease(t.Context(), &holdfast.GetReleaseRequest{Name: "a", Number: 2}))
	if !after.Equal(before) {
		t.Errorf("release 2 is %v, and was %v", after, before)
	}
	must(f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a", Number: 1}))

	if got := inStore.history("a"); got != "5 deployed of 1" {
		t.Errorf("without the archive: %s", got)
	}
	inStore.deploy(scaled("a", 6))
	if got := f.history("a"); !strings.HasSuffix(got, "4 superseded, 5 superseded of 1, 6 deployed") {
		t.Errorf("with the archive again: %s", got)
	}
	if err := f.Settle(t.Context()); err != nil || !strings.HasSuffix(a.heads(), ", 5 superseded, 6 deployed") {
		t.Errorf("the archive has %s, %v", a.heads(), err)
	}
	must(f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"}))
	if a.heads() != "" || f.records() != 0 {
		t.Errorf("left: %s, %d parts of records", a.heads(), f.records())
	}
}

// An archive may have what this store knows nothing of: it was made anew, or is an older one.
func TestStoreIsAnotherOne(t *testing.T) {
	a := newArchived(t)
	f := a.manager()
	for i := range uint64(3) {
		f.deploy(scaled("a", 1+i))
	}
	young := &archived{t, storetest.New(t), a.archive}
	f = young.manager()
	if _, err := f.History(t.Context(), &holdfast.StackHistoryRequest{Name: "a"}); err != nil {
		t.Error(err)
	}
	if resp := f.deploy(scaled("a", 9)); resp.Release != 4 {
		t.Errorf("release %d", resp.Release)
	}
	if got := young.heads(); got != "1 superseded, 2 superseded, 3 superseded, 4 deployed" {
		t.Errorf("got %s", got)
	}
	// The first store comes back. Its release 3 is the deployed one there.
	if err := a.manager().Settle(t.Context()); err != nil || a.heads() != "1 superseded, 2 superseded, 3 deployed, 4 superseded" {
		t.Errorf("got %s, %v", a.heads(), err)
	}
}

// What the archive has under the number of the deployed release gives way to that.
func TestArchiveHasAnother(t *testing.T) {
	a := newArchived(t)
	over(t, a.store).deploy(app("a"))
	_, err := a.archive.Create(t.Context(), driver.Record{
		Head: driver.Head{
			Key:  driver.Key{Namespace: namespace, Name: "a", Revision: 1},
			Kind: "stack", Status: driver.StatusDeployed, Labels: map[string]string{"message": "not this one"},
		},
		Body: []byte("other"),
	})
	if err != nil {
		t.Fatal(err)
	}
	f := a.manager()
	if err := f.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.deploy(scaled("a", 2))
	if got := must(f.GetRelease(t.Context(), &holdfast.GetReleaseRequest{Name: "a", Number: 1})); got.Release.Message != "" {
		t.Errorf("got %v", got)
	}
}

// Nothing is deployed that could not be kept; what is there can still be listed.
func TestArchiveIsAway(t *testing.T) {
	a := newArchived(t)
	a.manager().deploy(app("a"))
	before := a.store.Root().Revision()
	c := config(t, a.store)
	c.Archive, c.Namespace = mortalDriver{a.archive, &life{dead: true}}, namespace
	f := &fixture{stackapi.New(c), t, a.store}
	for name, do := range map[string]func() error{
		"deploy": func() error {
			_, err := f.Deploy(t.Context(), scaled("a", 2))
			return err
		},
		"remove": func() error {
			_, err := f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"})
			return err
		},
		"history": func() error {
			_, err := f.History(t.Context(), &holdfast.StackHistoryRequest{Name: "a"})
			return err
		},
		"settle": func() error { return f.Settle(t.Context()) },
	} {
		if err := do(); !errkind.Is(err, errkind.NoLeader) || !strings.Contains(err.Error(), "releases in memory: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if a.store.Root().Revision() != before {
		t.Error("something was changed")
	}
	list := must(f.List(t.Context(), &holdfast.ListStacksRequest{}))
	if len(list.Stacks) != 1 || list.Stacks[0].Release.GetNumber() != 1 {
		t.Errorf("got %v", list)
	}
}

// A history in the archive is as long as it was asked to be.
func TestArchivedHistoryIsLimited(t *testing.T) {
	a := newArchived(t)
	f := a.manager()
	for i := range uint64(5) {
		r := scaled("a", 1+i)
		r.MaxHistory = 3
		f.deploy(r)
	}
	if got := a.heads(); got != "3 superseded, 4 superseded, 5 deployed" || f.records() != 3 {
		t.Errorf("got %s, and %d parts of records in the store", got, f.records())
	}
	must(f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a", MaxHistory: 1}))
	if got := f.history("a"); got != "6 deployed of 4" || got != a.heads()+" of 4" {
		t.Errorf("got %s", got)
	}
}
