package stackapi_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// What others still use is not removed. A network that is to go is refused, and the users are
// named; secrets and configs stay for them.
func TestDeployKeepsWhatOthersUse(t *testing.T) {
	f := newFixture(t)
	f.deploy(app("a"))
	key, conf := f.stored("a_key"), f.stored("a_conf")
	other := serviceSpec("b_web")
	other.Task = app("a").Services[0].Task
	other.Task.GetContainer().Secrets[0].SecretName = key
	other.Task.GetContainer().Configs[0].ConfigName = conf
	f.deploy(&holdfast.DeployRequest{
		Name: "b", Services: []api.ServiceSpec{other},
		ExternalNetworks: []string{"a_front"}, ExternalSecrets: []string{key}, ExternalConfigs: []string{conf},
	})
	before := f.store.Root().Revision()
	r := app("a")
	r.Networks, r.Services[0].Task.Networks = nil, nil
	_, err := f.Deploy(t.Context(), r)
	wantError(t, err, errkind.Refused, "", "network a_front", "b_web")
	for _, keep := range []bool{false, true} {
		_, err = f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a", KeepHistory: keep})
		if keep { // they are the release's; the network is not
			wantError(t, err, errkind.Refused, "", "a_front", "b_web")
		} else {
			wantError(t, err, errkind.Refused, "", key, "b_web")
		}
	}
	if got := f.store.Root().Revision(); got != before {
		t.Errorf("the revision moved from %d to %d", before, got)
	}
	bare := app("a")
	bare.MaxHistory, bare.Secrets, bare.Configs = 1, nil, nil
	bare.Services[0].Task.GetContainer().Secrets, bare.Services[0].Task.GetContainer().Configs = nil, nil
	if got := say(f.deploy(bare).Changes); got != "unchanged service a_db, updated service a_web, unchanged network a_front" {
		t.Errorf("got %s", got)
	}
	if f.stored("a_key") != key || f.stored("a_conf") != conf {
		t.Error("what b uses is gone")
	}
}

// The tasks of the stack's own services cannot end before their services change, so they do
// not hold a network; those of others do.
func TestTasksInANetworkThatGoes(t *testing.T) {
	without := app("a")
	without.Networks, without.Services[0].Task.Networks = nil, nil
	t.Run("own", func(t *testing.T) {
		f := newFixture(t)
		f.deploy(app("a"))
		f.task(f.service("a_web"))
		if got := say(f.deploy(without).Changes); !strings.Contains(got, "removed network a_front") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("of a stranger", func(t *testing.T) {
		f := newFixture(t)
		f.deploy(app("a"))
		f.task(f.service("a_web"))
		f.update(func(tx *store.Tx) error { // its service is gone
			web := f.service("a_web")
			_, err := store.Tasks.Create(tx, &api.Task{
				Annotations: api.Annotations{Name: "leftover"}, Spec: web.Spec.Task, DesiredState: api.TaskState_RUNNING,
			})
			return err
		})
		_, err := f.Deploy(t.Context(), without)
		wantError(t, err, errkind.Refused, "", "network a_front", "leftover")
		if strings.Contains(err.Error(), "a_web") {
			t.Errorf("%v: names a task of the stack's own", err)
		}
		_, err = f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"})
		wantError(t, err, errkind.Refused, "", "network a_front", "leftover")
		f.update(func(tx *store.Tx) error {
			all := must(store.Tasks.FindAll(tx, store.ByName("leftover")))
			ended := all[0].Copy()
			ended.Status.State = api.TaskState_COMPLETE
			_, err := store.Tasks.Update(tx, ended)
			return err
		})
		f.deploy(without)
	})
}

// An error names some of many, and tells how many more there are.
func TestErrorsNameSomeOfMany(t *testing.T) {
	f := newFixture(t)
	r := app("a")
	for i := range 40 {
		r.ExternalNetworks = append(r.ExternalNetworks, fmt.Sprint("gone", i))
	}
	_, err := f.Deploy(t.Context(), r)
	wantError(t, err, errkind.Invalid, "external_networks[0]", `"gone0"`, `"gone31"`, "and 8 more")

	f.deploy(app("a"))
	spec := f.service("a_web").Spec.Task
	f.update(func(tx *store.Tx) error {
		for i := range 8 {
			_, err := store.Tasks.Create(tx, &api.Task{Annotations: api.Annotations{Name: fmt.Sprint("t", i)}, Spec: spec})
			if err != nil {
				return err
			}
		}
		return nil
	})
	_, err = f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"})
	wantError(t, err, errkind.Refused, "", "network a_front", "and 3 more")
}
