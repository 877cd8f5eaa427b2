package stacks_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gogo/protobuf/proto"
	gocmp "github.com/google/go-cmp/cmp"

	"holdfast/api/holdfast"
	"holdfast/test/testcluster"
)

const (
	appStack = "app"
	sidecar  = "app_sidecar"
	// keptReleases is more than the default, since some applications have more versions.
	keptReleases = "20"
	handScale    = 7 // tasks, and no application asks for as many
)

// life is an application that is deployed, changed, and removed in the end. Its published files
// are deployed with one more, which gives the service that is changed later, and one beside it, a
// config.
type life struct {
	*session
	app       application
	published []string // flags that name the application's own files
	files     []string // flags that name those that are deployed, or are about to be

	size     int      // how many objects there were in release 1
	foretold []string // names of what would change
	releases []release
	was      map[uint64]past // what there was in releases, but for the changed one
	at       uint64          // the one of them that there is again
}

// past is what there was in a release before the change.
type past struct {
	files    []string
	services map[string]string // as services tells them
}

// release is what a stack's history has to tell of one of its releases.
type release struct {
	Number, RollbackOf        uint64
	Status, Message           string
	Created, Updated, Removed uint32
}

// newLife makes what an application needs before it is deployed.
func newLife(s *session, app application) *life {
	s.t.Helper()
	l := &life{session: s, app: app, published: s.copyInputs(app), was: map[uint64]past{}}
	var sockets []string
	for _, m := range s.cluster.Members {
		sockets = append(sockets, m.Endpoint())
	}
	s.socket = strings.Join(sockets, ",")
	if len(app.env) > 0 {
		var env strings.Builder
		for _, key := range slices.Sorted(maps.Keys(app.env)) {
			fmt.Fprintf(&env, "%s='%s'\n", key, app.env[key])
		}
		l.published = append(l.published, "--env-file", s.write("app.env", env.String()))
	}
	s.createExternal(app)
	l.files = append(slices.Clone(l.published), "-c", l.writeData(1))
	return l
}

// goBack makes the files what they were in a release before the change.
func (l *life) goBack(number uint64) {
	l.t.Helper()
	l.at, l.files = number, l.was[number].files
	l.writeData(1)
}

// writeData writes the files with the data of secrets and configs, in a version, and returns the
// one that is a Compose file.
func (l *life) writeData(version int) string {
	l.t.Helper()
	for name, content := range l.app.extra {
		l.write(name, fmt.Sprint(content, version))
	}
	return l.write("settings.yml", fmt.Sprintf(`
services:
  %s: {configs: [settings]}
  sidecar: {image: 'sidecar:1', configs: [settings], network_mode: none}
configs: {settings: {content: '%s'}}
`, strings.TrimPrefix(l.app.changed, "app_"), settings(version)))
}

// settings is the content of the config.
func settings(version int) string { return fmt.Sprint("settings, version ", version) }

// short is what the managers tell of the content of a config.
func short(content string) string {
	sum := sha256.Sum256([]byte(content))
	return fmt.Sprintf("%q", hex.EncodeToString(sum[:6]))
}

// services tells the stack's services by their names: all that they are but for what the managers
// say of them, with names for the IDs that they refer to.
func (l *life) services() map[string]string {
	l.t.Helper()
	l.objects() // for their names
	all := map[string]string{}
	for s, err := range l.client.Services(testcluster.Context(l.t, testcluster.Bound), nil) {
		if err != nil {
			l.t.Fatal(err)
		}
		all[s.Spec.Annotations.Name] = anID.ReplaceAllStringFunc(proto.CompactTextString(&s.Spec), func(id string) string {
			return cmp.Or(l.names[id], id)
		})
	}
	return all
}

// wantSettings checks the data of the config that services are given: "" if they are given none.
func (l *life) wantSettings(want string, services ...string) {
	l.t.Helper()
	for _, name := range services {
		given := ""
		for _, r := range l.container(name).Configs {
			if strings.HasPrefix(r.ConfigName, "app_settings-") {
				given += string(l.data(r))
			}
		}
		if given != want {
			l.t.Errorf("%s is given the config %q, want %q", name, given, want)
		}
	}
}

// wantReleases checks the history, as each manager has it, and that nothing else is kept of it.
func (l *life) wantReleases() {
	l.t.Helper()
	ctx := testcluster.Context(l.t, testcluster.Bound)
	for _, m := range l.cluster.Running() {
		var have []release
		r, err := m.Client().Stacks().History(ctx, &holdfast.StackHistoryRequest{Name: appStack})
		if err != nil && len(l.releases) > 0 {
			l.t.Fatal(err)
		}
		for _, one := range r.GetReleases() {
			have = append(have, release{
				Number: one.Number, RollbackOf: one.RollbackOf, Status: one.Status, Message: one.Message,
				Created: one.Created, Updated: one.Updated, Removed: one.Removed,
			})
		}
		if diff := gocmp.Diff(l.releases, have); diff != "" {
			l.t.Errorf("the history that %s has (-want +got)\n%s", m.Name, diff)
		}
	}
	want := 2 * len(l.releases) // a head and a body; what is deployed has a mark, too
	if want > 0 && l.last().Status == "deployed" {
		want++
	}
	if l.objects(); l.records != want {
		l.t.Errorf("the releases have %d parts, want %d", l.records, want)
	}
}

// released takes in that a step made a release, and checks what ctl said of it.
func (l *life) released(d deed, rollbackOf uint64) {
	l.t.Helper()
	l.isTold(d)
	r := release{Number: 1, Status: "deployed", RollbackOf: rollbackOf, Message: d.message}
	if len(l.releases) > 0 {
		if r.Number = l.last().Number + 1; l.last().Status == "deployed" {
			l.last().Status = "superseded"
		}
	}
	for _, what := range d.done {
		switch what {
		case "created":
			r.Created++
		case "updated":
			r.Updated++
		case "removed":
			r.Removed++
		}
	}
	l.releases = append(l.releases, r)
	l.says(d.out, fmt.Sprintf("\nrelease %d\nrevision ", r.Number))
}

// last is the newest release.
func (l *life) last() *release { return &l.releases[len(l.releases)-1] }

// isTold checks that ctl told all that was done, and nothing else.
func (l *life) isTold(d deed) {
	l.t.Helper()
	if diff := gocmp.Diff(d.done, said(d.out)); diff != "" {
		l.t.Errorf("what was done, and what was told (-done +told)\n%s\nof\n%s", diff, d.out)
	}
}

// changedNothing checks that of a step that reads.
func (l *life) changedNothing(d deed) {
	l.t.Helper()
	l.same("a step that reads", d.before, d.after)
}

// names gives the names of what was created, updated or removed, by the stack's own names.
func (d deed) names() []string {
	found := map[string]bool{}
	for _, all := range []map[string]object{d.before, d.after} {
		for key, o := range all {
			if _, ok := d.done[o.ID]; ok {
				_, name, _ := strings.Cut(key, " ")
				found[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// row is how ctl shows a release in a table.
func (r release) row() *regexp.Regexp {
	var changes []string
	for _, one := range []struct {
		count uint32
		word  string
	}{{r.Created, "created"}, {r.Updated, "updated"}, {r.Removed, "removed"}} {
		if one.count > 0 {
			changes = append(changes, fmt.Sprint(one.count, " ", one.word))
		}
	}
	text := strings.Join(changes, ", ")
	if r.RollbackOf != 0 {
		text += fmt.Sprintf(" (rollback to %d)", r.RollbackOf)
	}
	return regexp.MustCompile(fmt.Sprintf(`(?m)^%d +%s +.* %s +%s +%s *$`,
		r.Number, aTime, r.Status, regexp.QuoteMeta(text), regexp.QuoteMeta(r.Message)))
}
