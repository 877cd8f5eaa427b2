package stackapi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// as is a call of somebody, who says why.
func as(t testing.TB, caller, message string) context.Context {
	return state.WithRequest(t.Context(), state.Request{Caller: caller, Message: message})
}

func expect(r *holdfast.DeployRequest, release uint64) *holdfast.DeployRequest {
	r.Expect = &holdfast.DeployRequest_ExpectRelease{ExpectRelease: release}
	return r
}

// scaled is a stack whose first service has a number of replicas.
func scaled(name string, replicas uint64) *holdfast.DeployRequest {
	r := app(name)
	r.Services[0].Mode.(*api.ServiceSpec_Replicated).Replicated.Replicas = replicas
	return r
}

// history gives a stack's releases on one line: "1 superseded, 2 deployed".
func (f *fixture) history(stack string) string {
	f.t.Helper()
	resp, err := f.History(f.t.Context(), &holdfast.StackHistoryRequest{Name: stack})
	if err != nil {
		f.t.Fatal(err)
	}
	var all []string
	for _, r := range resp.Releases {
		said := fmt.Sprint(r.Number, " ", r.Status)
		if r.RollbackOf != 0 {
			said += fmt.Sprint(" of ", r.RollbackOf)
		}
		all = append(all, said)
	}
	return strings.Join(all, ", ")
}

func TestReleasesAreNumbered(t *testing.T) {
	f := newFixture(t)
	first, err := f.Deploy(as(t, "alice", "begin"), app("a"))
	if err != nil || first.Release != 1 || first.Revision != 1 {
		t.Fatalf("first: %v, %v", first, err)
	}
	if again := f.deploy(app("a")); again.Release != 1 || again.Revision != 1 {
		t.Errorf("again: release %d at %d", again.Release, again.Revision)
	}
	next := scaled("a", 3)
	next.Services = next.Services[:1]
	second, err := f.Deploy(as(t, "bob", "less\x00is \xffmore"), next)
	if err != nil || second.Release != 2 || second.Revision != 2 {
		t.Fatalf("second: %v, %v", second, err)
	}
	resp := must(f.History(t.Context(), &holdfast.StackHistoryRequest{Name: "a"}))
	for i, want := range []*holdfast.Release{
		{Number: 1, Status: "superseded", Actor: "alice", Message: "begin", Revision: 1, Created: 5},
		{Number: 2, Status: "deployed", Actor: "bob", Message: "less\uFFFDis \uFFFDmore", Revision: 2, Updated: 1, Removed: 1},
	} {
		got := resp.Releases[i]
		if got.At.GetSeconds() < 1_700_000_000 {
			t.Errorf("release %d is of %v", i+1, got.At)
		}
		got.At = nil
		if !got.Equal(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if len(resp.Releases) != 2 || resp.Revision != 2 {
		t.Errorf("%d releases at %d", len(resp.Releases), resp.Revision)
	}
	// Another stack counts for itself.
	if r := f.deploy(app("b")); r.Release != 1 {
		t.Errorf("b has release %d", r.Release)
	}
}

// What differs from the release makes a new one, though no object does: and so does an object that
// differs from what it was, though the request is the same.
func TestWhatMakesARelease(t *testing.T) {
	f := newFixture(t)
	f.deploy(app("a"))
	for i, c := range []struct {
		name    string
		change  func(r *holdfast.DeployRequest)
		release bool
	}{
		{"another Compose text", func(r *holdfast.DeployRequest) { r.Compose = "services: {}" }, true},
		{"the same Compose text", func(r *holdfast.DeployRequest) { r.Compose = "services: {}" }, false},
		{"a shorter history", func(r *holdfast.DeployRequest) { r.Compose, r.MaxHistory = "services: {}", 4 }, false},
		{"a secret that no service uses", func(r *holdfast.DeployRequest) {
			r.Secrets = append(r.Secrets, api.SecretSpec{Annotations: api.Annotations{Name: "a_more"}, Data: []byte(canary)})
		}, true},
		{"without that secret", func(*holdfast.DeployRequest) {}, true},
		{"changed by hand", func(*holdfast.DeployRequest) {
			f.update(func(tx *store.Tx) error {
				o := f.service("a_db").Copy()
				o.Spec.Mode.(*api.ServiceSpec_Replicated).Replicated.Replicas = 7
				_, err := store.Services.Update(tx, o)
				return err
			})
		}, true},
	} {
		r := app("a")
		c.change(r)
		before := f.store.Root().Revision()
		resp := f.deploy(r)
		if wrote := resp.Revision > before; wrote != c.release {
			t.Errorf("step %d, %s: wrote %v: %s", i, c.name, wrote, say(resp.Changes))
		}
	}
	if got := f.history("a"); got != "1 superseded, 2 superseded, 3 superseded, 4 superseded, 5 deployed" {
		t.Errorf("got %s", got)
	}
}

func TestExpectedRelease(t *testing.T) {
	f := newFixture(t)
	_, err := f.Deploy(t.Context(), expect(app("a"), 3))
	wantError(t, err, errkind.OutOfSequence, "expect_release", "stack a", "no release is deployed", "release 3 was expected")
	f.deploy(expect(app("a"), 0))
	if _, err := f.Deploy(as(t, "bob", "more of it"), expect(scaled("a", 2), 1)); err != nil {
		t.Fatal(err)
	}
	before := f.store.Root().Revision()
	for _, dry := range []bool{false, true} {
		r := expect(scaled("a", 3), 1)
		r.DryRun = dry
		_, err = f.Deploy(t.Context(), r)
		wantError(t, err, errkind.OutOfSequence, "expect_release", "release 2 came first", "bob", `"more of it"`)
		if e, _ := errors.AsType[*errkind.Error](err); e.Seen != 1 || e.Now != 2 {
			t.Errorf("seen %d, now %d", e.Seen, e.Now)
		}
	}
	_, err = f.Deploy(t.Context(), expect(scaled("a", 2), 0)) // nothing would differ
	wantError(t, err, errkind.OutOfSequence, "expect_release", "none was expected")
	if now := f.store.Root().Revision(); now != before {
		t.Errorf("the revision moved from %d to %d", before, now)
	}
	f.deploy(expect(scaled("a", 2), 2))
}

// Of those that deploy at once and expect the same release, one wins, and the others are told.
func TestDeployAtOnce(t *testing.T) {
	f := newFixture(t)
	f.deploy(app("a"))
	var wg sync.WaitGroup
	var responses [8]*holdfast.DeployResponse
	var errs [8]error
	for i := range errs {
		wg.Go(func() {
			responses[i], errs[i] = f.Deploy(as(t, fmt.Sprint("caller", i), fmt.Sprint("why", i)), expect(scaled("a", uint64(10+i)), 1))
		})
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		if err == nil {
			if winner >= 0 {
				t.Errorf("%d and %d have won", winner, i)
			}
			winner = i
		}
	}
	if winner < 0 {
		t.Fatalf("nobody has won: %v", errs)
	}
	if responses[winner].Release != 2 {
		t.Errorf("the winner has release %d", responses[winner].Release)
	}
	for i, err := range errs {
		if i != winner {
			wantError(t, err, errkind.OutOfSequence, "expect_release", "release 2 came first",
				fmt.Sprint("caller", winner), fmt.Sprint("why", winner))
		}
	}
	if got := f.service("a_web").Spec.GetReplicated().Replicas; got != uint64(10+winner) {
		t.Errorf("%d replicas, the winner is %d", got, winner)
	}
	// Without an expectation all come, one after the other.
	for i := range errs {
		wg.Go(func() { _, errs[i] = f.Deploy(t.Context(), scaled("a", uint64(20+i))) })
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Error(err)
	}
	if got := f.history("a"); !strings.HasSuffix(got, "9 superseded, 10 deployed") {
		t.Errorf("got %s", got)
	}
}

func TestHistoryIsLimited(t *testing.T) {
	f := newFixture(t)
	for i := range 12 {
		f.deploy(scaled("a", uint64(1+i)))
	}
	if got := f.history("a"); !strings.HasPrefix(got, "3 superseded, 4") || !strings.HasSuffix(got, ", 12 deployed") {
		t.Errorf("got %s", got)
	}
	if got := f.records(); got != 10*2+1 { // a head and a body each, and the mark of the one that is deployed
		t.Errorf("%d parts of records", got)
	}
	r := scaled("a", 50)
	r.MaxHistory = 3
	f.deploy(r)
	if got := f.history("a"); got != "11 superseded, 12 superseded, 13 deployed" {
		t.Errorf("got %s", got)
	}
	// The source of a rollback may be the one that goes.
	back := &holdfast.RollbackRequest{Name: "a", Number: 11, MaxHistory: 1}
	if resp := must(f.Rollback(t.Context(), back)); resp.Release != 14 {
		t.Errorf("release %d", resp.Release)
	}
	if got := f.history("a"); got != "14 deployed of 11" || f.records() != 3 {
		t.Errorf("got %s, %d parts", got, f.records())
	}
	// One that is uninstalled is old, too.
	must(f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a", KeepHistory: true}))
	if got := f.history("a"); got != "14 uninstalled of 11" || f.records() != 2 {
		t.Errorf("got %s, %d parts", got, f.records())
	}
	r.MaxHistory = 2
	f.deploy(r)
	if got := f.history("a"); got != "14 uninstalled of 11, 15 deployed" {
		t.Errorf("got %s", got)
	}
}

// A stack of before there were releases has none, until it is deployed.
func TestStackOfBeforeReleases(t *testing.T) {
	f := newFixture(t)
	for _, call := range []func() error{
		func() error { _, err := f.History(t.Context(), &holdfast.StackHistoryRequest{Name: "a"}); return err },
		func() error { _, err := f.GetRelease(t.Context(), &holdfast.GetReleaseRequest{Name: "a"}); return err },
		func() error { _, err := f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a"}); return err },
		func() error {
			_, err := f.Compare(t.Context(), &holdfast.CompareStackRequest{Name: "a", To: 1})
			return err
		},
	} {
		wantError(t, call(), errkind.NotFound, "", "stack a", "not found")
	}
	labels := map[string]string{store.StackLabel: "a"}
	f.update(func(tx *store.Tx) error {
		if _, err := store.Secrets.Create(tx, &api.Secret{Spec: api.SecretSpec{
			Annotations: api.Annotations{Name: "a_key", Labels: labels}, Data: []byte(canary),
		}}); err != nil {
			return err
		}
		_, err := store.Configs.Create(tx, &api.Config{Spec: api.ConfigSpec{
			Annotations: api.Annotations{Name: "a_conf", Labels: labels}, Data: []byte("old"),
		}})
		return err
	})
	if got := f.history("a"); got != "" {
		t.Errorf("got %s", got)
	}
	_, err := f.GetRelease(t.Context(), &holdfast.GetReleaseRequest{Name: "a"})
	wantError(t, err, errkind.NotFound, "", "stack a", "has no release")
	// What is the same stays as it is, and what is not is made anew: the old one goes.
	resp := f.deploy(app("a"))
	if resp.Release != 1 {
		t.Errorf("release %d", resp.Release)
	}
	names := map[string]string{}
	for _, c := range resp.Changes {
		names[c.Name] = c.Action.String()
	}
	if names["a_key"] != "UNCHANGED" || names["a_conf"] != "REMOVED" || names[f.stored("a_conf")] != "CREATED" {
		t.Errorf("got %v", names)
	}
	if got := f.service("a_web").Spec.Task.GetContainer().Secrets[0].SecretName; got != "a_key" {
		t.Errorf("the secret is %s", got)
	}
	f.deploy(expect(app("a"), 1))
	if got := f.history("a"); got != "1 deployed" {
		t.Errorf("got %s", got)
	}
}

func TestKeepOthers(t *testing.T) {
	f := newFixture(t)
	first := app("a")
	first.Configs = append(first.Configs, api.ConfigSpec{Annotations: api.Annotations{Name: "a_idle"}, Data: []byte("idle")})
	f.deploy(first)
	more := &holdfast.DeployRequest{
		Name: "a", KeepOthers: true, MaxHistory: 1, Services: []api.ServiceSpec{serviceSpec("a_more")},
		Configs: []api.ConfigSpec{{Annotations: api.Annotations{Name: "a_conf"}, Data: []byte("other")}},
	}
	resp := f.deploy(more)
	if got := say(resp.Changes); got != "unchanged service a_db, created service a_more, unchanged service a_web, "+
		"unchanged network a_front, created config a_conf" {
		t.Errorf("got %s", got)
	}
	// No release names them any more, but they are not the request's to remove, or are in use.
	if got := f.inventory(); got != "service a_db, service a_more, service a_web, network a_front, secret a_key, "+
		"config a_conf, config a_conf, config a_idle" {
		t.Errorf("left: %s", got)
	}
	// Going back to that release keeps others, too.
	next := scaled("a", 2)
	next.Services = append(next.Services, serviceSpec("a_third"))
	f.deploy(next)
	back := must(f.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a"}))
	if got := say(back.Changes); !strings.Contains(got, "created service a_more") ||
		!strings.Contains(got, "unchanged service a_third") || strings.Contains(got, "removed service") {
		t.Errorf("got %s", got)
	}
}
