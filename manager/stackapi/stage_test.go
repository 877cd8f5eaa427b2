package stackapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// staging is what of a request is to be staged; then the request has it without its data.
func staging(r *holdfast.DeployRequest) *holdfast.StageRequest {
	out := &holdfast.StageRequest{Name: r.Name, Secrets: slices.Clone(r.Secrets), Configs: slices.Clone(r.Configs)}
	for i := range r.Secrets {
		r.Secrets[i].Data = nil
	}
	for i := range r.Configs {
		r.Configs[i].Data = nil
	}
	return out
}

func TestStage(t *testing.T) {
	f := newFixture(t)
	r := app("a")
	r.Configs[0].Annotations.Labels = map[string]string{"tier": "front"}
	request := staging(r)
	first := must(f.Stage(t.Context(), request))
	if first.Revision != 1 || first.Secrets["a_key"] != f.stored("a_key") || first.Configs["a_conf"] != f.stored("a_conf") {
		t.Errorf("got %v", first)
	}
	if again := must(f.Stage(t.Context(), request)); !again.Equal(first) {
		t.Errorf("again: %v, was %v", again, first)
	}
	r.StagedSecrets, r.StagedConfigs = first.Secrets, first.Configs
	r.Configs[0].Annotations.Labels = map[string]string{"tier": "back"}
	const want = "created service a_db, created service a_web, created network a_front, created secret a_key, updated config a_conf"
	for range 2 { // it is told again in the same words
		if got := say(must(f.Deploy(withRequest(t, "1"), r)).Changes); got != want {
			t.Errorf("got %s", got)
		}
	}
	history := must(f.History(t.Context(), &holdfast.StackHistoryRequest{Name: "a"})).Releases
	if len(history) != 1 || history[0].Created != 4 || history[0].Updated != 1 {
		t.Errorf("got %v", history)
	}
	if got := f.config(f.stored("a_conf")).Spec.Annotations.Labels["tier"]; got != "back" {
		t.Errorf("the label is %s", got)
	}
	if got := say(f.deploy(r).Changes); strings.Contains(got, "created") || strings.Contains(got, "updated") {
		t.Errorf("again: %s", got)
	}
	// With the data in the request it is the same.
	full := app("a")
	full.Configs[0].Annotations.Labels = map[string]string{"tier": "back"}
	if resp := f.deploy(full); resp.Release != 1 || strings.Contains(say(resp.Changes), "created") {
		t.Errorf("in full: release %d, %s", resp.Release, say(resp.Changes))
	}
}

func TestStageRefuses(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		name   string
		change func(*holdfast.StageRequest)
		kind   errkind.Kind
		field  string
		text   string
	}{
		{"no name", func(r *holdfast.StageRequest) { r.Name = "" }, errkind.Invalid, "name", "is empty"},
		{"nothing", func(r *holdfast.StageRequest) { *r = holdfast.StageRequest{Name: "a"} }, errkind.Invalid, "secrets", "is empty"},
		{"no data", func(r *holdfast.StageRequest) { r.Configs[0].Data = nil }, errkind.Invalid, "configs[0].data", "config a_conf"},
		{"twice", func(r *holdfast.StageRequest) { r.Secrets = append(r.Secrets, r.Secrets[0]) }, errkind.Invalid, "secrets[1].annotations.name", "a_key"},
		{"too much", func(r *holdfast.StageRequest) {
			for i := range 10 {
				r.Configs = append(r.Configs, api.ConfigSpec{
					Annotations: api.Annotations{Name: fmt.Sprint("a_c", i)}, Data: make([]byte, 500_000),
				})
			}
		}, errkind.Limit, "", "4 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := staging(app("a"))
			c.change(r)
			_, err := f.Stage(t.Context(), r)
			wantError(t, err, c.kind, c.field, c.text)
		})
	}
	if got := f.store.Root().Revision(); got != 0 {
		t.Errorf("the revision is %d", got)
	}
}

func TestDeployRefusesStaged(t *testing.T) {
	f := newFixture(t)
	f.data("plain")
	other := must(f.Stage(t.Context(), staging(app("b"))))
	base := app("a")
	staged := must(f.Stage(t.Context(), staging(base)))
	before := f.store.Root().Revision()
	for _, c := range []struct {
		name   string
		change func(*holdfast.DeployRequest)
		field  string
		texts  []string
	}{
		{"not there", func(r *holdfast.DeployRequest) {
			r.StagedSecrets["a_key"] = "gone"
		}, `staged_secrets["a_key"]`, []string{"secret a_key", `"gone"`, "does not exist"}},
		{"of another stack", func(r *holdfast.DeployRequest) {
			r.StagedSecrets["a_key"] = other.Secrets["b_key"]
		}, `staged_secrets["a_key"]`, []string{"the stack b"}},
		{"of no stack", func(r *holdfast.DeployRequest) {
			r.StagedConfigs["a_conf"] = "plain"
		}, `staged_configs["a_conf"]`, []string{"config a_conf", "no stack"}},
		{"of another name", func(r *holdfast.DeployRequest) {
			r.Configs[0].Annotations.Name = "a_more"
			r.Services[0].Task.GetContainer().Configs = nil
			r.StagedConfigs = map[string]string{"a_more": staged.Configs["a_conf"]}
		}, `staged_configs["a_more"]`, []string{"a_conf"}},
		{"with data", func(r *holdfast.DeployRequest) {
			r.Secrets[0].Data = []byte(canary)
		}, "secrets[0].data", []string{"secret a_key", `staged_secrets["a_key"]`}},
		{"with another driver", func(r *holdfast.DeployRequest) {
			r.Secrets[0].Driver = &api.Driver{Name: "vault"}
		}, "secrets[0]", []string{"secret a_key", "differs"}},
		{"for nothing", func(r *holdfast.DeployRequest) {
			r.StagedConfigs["a_none"] = staged.Configs["a_conf"]
		}, `staged_configs["a_none"]`, []string{"no config of the request"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := base.Copy()
			r.StagedSecrets, r.StagedConfigs = maps.Clone(staged.Secrets), maps.Clone(staged.Configs)
			c.change(r)
			_, err := f.Deploy(t.Context(), r)
			wantError(t, err, errkind.Invalid, c.field, c.texts...)
		})
	}
	if got := f.store.Root().Revision(); got != before {
		t.Errorf("the revision moved from %d to %d", before, got)
	}
}

// clocked is a fixture with a clock that goes on by what is added to the offset.
func clocked(t *testing.T) (*fixture, *atomic.Int64) {
	offset := &atomic.Int64{}
	loop := storetest.NewLoop(t, store.Options{Clock: func() time.Time {
		return storetest.Start().Add(time.Duration(offset.Load()))
	}})
	return over(t, loop.Store), offset
}

// What was staged waits an hour for a release that names it.
func TestStagedInVain(t *testing.T) {
	f, offset := clocked(t)
	f.deploy(app("a"))
	vain := app("a")
	vain.Secrets[0].Data, vain.Configs[0].Data = []byte(canary+"v"), []byte("in vain")
	must(f.Stage(t.Context(), staging(vain)))
	staged := must(f.Stage(t.Context(), &holdfast.StageRequest{Name: "a", Configs: []api.ConfigSpec{
		{Annotations: api.Annotations{Name: "a_named"}, Data: []byte("named")},
	}}))
	with := app("a")
	with.Configs = append(with.Configs, api.ConfigSpec{Annotations: api.Annotations{Name: "a_named"}})
	with.StagedConfigs = staged.Configs

	offset.Store(int64(time.Hour))
	if got := say(f.deploy(app("a")).Changes); strings.Contains(got, "removed") {
		t.Errorf("after an hour: %s", got)
	}
	offset.Store(int64(time.Hour + time.Second))
	revision := f.store.Root().Revision()
	resp := f.deploy(with)
	if got := say(resp.Changes); strings.Count(got, "removed") != 2 || !strings.Contains(got, "removed secret a_key") ||
		!strings.Contains(got, "removed config a_conf") || !strings.Contains(got, "created config a_named") {
		t.Errorf("after more than an hour: %s", got)
	}
	if resp.Revision != revision+1 || resp.Release != 2 {
		t.Errorf("release %d at %d", resp.Release, resp.Revision)
	}
}

// A deployment of nothing new removes what was staged in vain, and writes no release for that.
func TestStagedInVainAndNothingNew(t *testing.T) {
	f, offset := clocked(t)
	f.deploy(app("a"))
	must(f.Stage(t.Context(), &holdfast.StageRequest{Name: "a", Configs: []api.ConfigSpec{
		{Annotations: api.Annotations{Name: "a_vain"}, Data: []byte("in vain")},
	}}))
	offset.Store(int64(2 * time.Hour))
	ctx := withRequest(t, "1")
	resp := must(f.Deploy(ctx, app("a")))
	if got := say(resp.Changes); !strings.HasSuffix(got, "removed config a_vain") || resp.Revision != 3 || resp.Release != 1 {
		t.Errorf("got %s, release %d at %d", got, resp.Release, resp.Revision)
	}
	if again := must(f.Deploy(ctx, app("a"))); !again.Equal(resp) {
		t.Errorf("replayed: %v\nwant %v", again, resp)
	}
	if got := f.history("a"); got != "1 deployed" {
		t.Errorf("got %s", got)
	}
}

// A stack that is larger than a transaction comes in parts.
func TestStageALargeStack(t *testing.T) {
	f := newFixture(t)
	r := &holdfast.DeployRequest{Name: "a", Services: []api.ServiceSpec{serviceSpec("a_web")}, StagedConfigs: map[string]string{}}
	for part := range 3 {
		request := &holdfast.StageRequest{Name: "a"}
		for i := range 300 {
			name := fmt.Sprintf("a_c%d", part*300+i)
			request.Configs = append(request.Configs, api.ConfigSpec{
				Annotations: api.Annotations{Name: name}, Data: []byte(strings.Repeat(name, 1000)),
			})
			r.Configs = append(r.Configs, api.ConfigSpec{Annotations: api.Annotations{Name: name}})
		}
		maps.Copy(r.StagedConfigs, must(f.Stage(t.Context(), request)).Configs)
	}
	resp := f.deploy(r)
	if resp.Release != 1 || len(resp.Changes) != 901 || strings.Contains(say(resp.Changes), "unchanged") {
		t.Errorf("release %d, %d changes", resp.Release, len(resp.Changes))
	}
	if got := say(f.deploy(r).Changes); strings.Contains(got, "created") {
		t.Errorf("again: %s", got)
	}
	_, err := f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"})
	wantError(t, err, errkind.Limit, "", "904 objects")
	// It goes in parts, too.
	for range 2 {
		r.Configs, r.MaxHistory = r.Configs[:len(r.Configs)-450], 1
		for name := range r.StagedConfigs {
			if !slices.ContainsFunc(r.Configs, func(s api.ConfigSpec) bool { return s.Annotations.Name == name }) {
				delete(r.StagedConfigs, name)
			}
		}
		f.deploy(r)
	}
	if resp := must(f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"})); len(resp.Changes) != 1 {
		t.Errorf("got %d changes", len(resp.Changes))
	}
	// More than a release can name is refused.
	for i := range 1001 {
		name := fmt.Sprintf("b_c%d", i)
		if i%500 == 0 {
			r = &holdfast.DeployRequest{Name: "b", StagedConfigs: map[string]string{}}
		}
		r.Configs = append(r.Configs, api.ConfigSpec{Annotations: api.Annotations{Name: name}, Data: []byte(name)})
		if i%500 == 499 || i == 1000 {
			must(f.Stage(t.Context(), &holdfast.StageRequest{Name: "b", Configs: r.Configs}))
		}
	}
	all := &holdfast.DeployRequest{Name: "b"}
	for i := range 1001 {
		name := fmt.Sprintf("b_c%d", i)
		all.Configs = append(all.Configs, api.ConfigSpec{Annotations: api.Annotations{Name: name}, Data: []byte(name)})
	}
	_, err = f.Deploy(t.Context(), all)
	wantError(t, err, errkind.Limit, "", "stack b", "1001", "1000")
}

func TestStageReplays(t *testing.T) {
	loop := storetest.NewLoop(t, store.Options{MaxLog: 3})
	f := over(t, loop.Store)
	ctx := withRequest(t, "1")
	first := must(f.Stage(ctx, staging(app("a"))))
	if again := must(f.Stage(ctx, staging(app("a")))); !again.Equal(first) {
		t.Errorf("got %v, want %v", again, first)
	}
	f.update(func(tx *store.Tx) error {
		_, err := store.Configs.Delete(tx, f.config(first.Configs["a_conf"]).ID)
		return err
	})
	if again := must(f.Stage(ctx, staging(app("a")))); !again.Equal(first) {
		t.Errorf("got %v, want %v", again, first)
	}
	for i := range 4 {
		f.network(fmt.Sprint("n", i), nil)
	}
	_, err := f.Stage(ctx, staging(app("a")))
	wantError(t, err, errkind.OutOfRange, "", "config a_conf", "revision 1", "not there any more")
}
