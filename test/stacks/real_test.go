package stacks_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/testinput"
	"holdfast/test/testcluster"
)

// application is one that somebody published, and what is done with it.
type application struct {
	name  string
	files []string // below inputs
	env   map[string]string
	extra map[string]string // files that stand beside the first one
	// external are the objects that must be there, as "kind name".
	external []string
	// later are files that are added one after the other, each for another version.
	later []string
	// change is one more Compose file, and changed the only service that it updates.
	change, changed string
}

func applications() []application {
	return []application{
		{
			name:    "voting-app",
			files:   []string{"voting-app.yml"},
			change:  "services: {vote: {ports: !override ['9090:80'], deploy: {replicas: 5}}}",
			changed: "app_vote",
		},
		{
			name:  "shop-app",
			files: []string{"shop-app.yml"},
			external: []string{
				"secret postgres_password", "secret revprox_cert", "secret revprox_key", "secret staging_token",
			},
			change:  "services: {visualizer: {image: 'dockersamples/visualizer:2', ports: ['8002:8082']}}",
			changed: "app_visualizer",
		},
		{
			name:     "ghost",
			files:    []string{"ghost.yml"},
			extra:    map[string]string{"secret-ghost-db": "not a real password\n"},
			external: []string{"network proxy"},
			change:   "services: {ghost: {image: 'ghost:5-alpine'}}",
			changed:  "app_ghost",
		},
		{
			name:     "traefik-public",
			files:    []string{"traefik-public.yml"},
			env:      map[string]string{"USERS": "admin:$apr1$abc", "DOMAIN": "traefik.example.org"},
			external: []string{"network docker_socket_proxy"},
			change:   "services: {traefik_ingress: {deploy: {replicas: 1}}}",
			changed:  "app_traefik_ingress",
		},
		{
			name:     "todo-list-v5",
			files:    []string{"todo-list/v5.yml"},
			external: []string{"config todo-list-config", "secret todo-list-secret"},
			change:   "services: {todo-db: {image: 'diamol/postgres:12', volumes: ['todo-db-data:/data:ro']}}",
			changed:  "app_todo-db",
		},
		{
			name:  "numbers",
			files: []string{"numbers/docker-compose.yml", "numbers/prod.yml"},
			later: []string{
				"numbers/prod-healthcheck.yml", "numbers/v2.yml", "numbers/prod-update-config.yml", "numbers/v3.yml",
				"numbers/prod-rollback-config.yml", "numbers/v5-bad.yml", "numbers/v5.yml",
			},
			change:  "services: {numbers-api: {image: 'diamol/ch14-numbers-api:v6', environment: [Broken=true]}}",
			changed: "app_numbers-api",
		},
	}
}

// TestRealInputs deploys applications as their authors published them, one at a time.
func TestRealInputs(t *testing.T) {
	testinput.Path(t, "inputs")
	c := testcluster.New(t, 3)
	for _, app := range applications() {
		t.Run(app.name, func(t *testing.T) {
			for key, value := range app.env {
				t.Setenv(key, value)
			}
			s := newSession(t, c)
			if len(app.later) > 0 {
				s.deployVersions(app)
			} else {
				s.deployChanged(app)
			}
			s.golden(app.name)
		})
	}
}

// deployChanged deploys an application as it is, and then with its change.
func (s *session) deployChanged(app application) {
	s.t.Helper()
	deploy := append([]string{"stack", "deploy"}, s.copyInputs(app)...)
	s.refuseMissing(app, deploy)
	s.createExternal(app)
	externals := s.objects()
	s.deployReal(app, deploy)
	s.changeReal(app, deploy)
	s.removeReal(app, externals)
	s.removeExternal(app)
}

// copyInputs copies an application's files, and returns the flags that name them.
func (s *session) copyInputs(app application) []string {
	s.t.Helper()
	flags := s.copyFiles(app.files...)
	for name, content := range app.extra {
		s.write(name, content)
	}
	return flags
}

// copyFiles copies files from below inputs, and returns the flags that name them.
func (s *session) copyFiles(files ...string) []string {
	s.t.Helper()
	var flags []string
	for _, f := range files {
		content, err := os.ReadFile(testinput.Path(s.t, "inputs", filepath.FromSlash(f)))
		if err != nil {
			s.t.Fatal(err)
		}
		flags = append(flags, "-c", s.write(filepath.Base(f), string(content)))
	}
	return flags
}

// refuseMissing deploys before the external objects are there.
func (s *session) refuseMissing(app application, deploy []string) {
	s.t.Helper()
	if len(app.external) == 0 {
		return
	}
	s.note("Before the external objects are there")
	s.unmoved("a deployment that is refused", func() {
		r := s.run(1, append(deploy, "app")...)
		for _, o := range app.external {
			kind, name, _ := strings.Cut(o, " ")
			s.says(r.Err, kind+` "`+name+`" is external and does not exist`)
		}
	})
	s.show(1, append(deploy, "app")...)
	if n := len(s.objects()); n > 0 {
		s.t.Fatalf("%d objects came of a deployment that was refused", n)
	}
}

func (s *session) createExternal(app application) {
	s.t.Helper()
	for _, o := range app.external {
		kind, name, _ := strings.Cut(o, " ")
		if kind == "network" {
			s.run(0, "network", "create", name)
			continue
		}
		s.input(0, "the data of "+name, kind, "create", name, "-")
	}
}

func (s *session) removeExternal(app application) {
	s.t.Helper()
	for _, o := range app.external {
		kind, name, _ := strings.Cut(o, " ")
		s.run(0, kind, "rm", name)
	}
}

// deployReal deploys an application twice, and looks at what came of it.
func (s *session) deployReal(app application, deploy []string) {
	s.t.Helper()
	s.note("Deployed")
	s.show(0, append(deploy, "app")...)
	s.look("app")
	s.unmoved("the second deployment", func() {
		r := s.run(0, append(deploy, "app")...)
		s.says(r.Err, "nothing to change\n")
		if strings.Count(r.Out, "\n") != 2 || !strings.HasPrefix(r.Out, "release 1\nrevision ") {
			s.t.Errorf("the second deployment says %q", r.Out)
		}
	})
}

// look lists everything, and inspects what belongs to a stack.
func (s *session) look(stack string) {
	s.t.Helper()
	s.show(0, "stack", "ls")
	s.show(0, "stack", "services", stack)
	all := s.objects()
	for _, kind := range kinds() {
		if kind == "secret" { // those of releases have names that are random
			s.show(0, kind, "ls", "-l", "!"+recordPart)
		} else {
			s.show(0, kind, "ls")
		}
		var names []string
		for key, o := range of(stack, all) {
			if strings.HasPrefix(key, kind+" ") {
				names = append(names, o.Name)
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			s.show(0, append([]string{kind, "inspect"}, names...)...)
		}
	}
}

// changeReal deploys an application with one more file, which concerns one service.
func (s *session) changeReal(app application, deploy []string) {
	s.t.Helper()
	s.note("Changed: " + app.change)
	before := s.objects()
	s.show(0, append(deploy, "-c", s.write("change.yml", app.change), "app")...)
	s.show(0, "stack", "services", "app")
	s.show(0, "service", "inspect", app.changed)
	after := s.objects()
	s.updated(before, after, "service "+app.changed)
	s.same("the change, beside the one service,", without(before, app.changed), without(after, app.changed))
}

func without(all map[string]object, service string) map[string]object {
	rest := map[string]object{}
	for key, o := range all {
		if key != "service "+service {
			rest[key] = o
		}
	}
	return rest
}

// updated fails if an object is not the one that it was, in a new version.
func (s *session) updated(before, after map[string]object, key string) {
	s.t.Helper()
	a, b := before[key], after[key]
	if a.ID == "" || a.ID != b.ID || a.Created != b.Created || a.Version >= b.Version {
		s.t.Errorf("%s was not updated: it was %+v and is %+v", key, a, b)
	}
}

// removeReal removes the stack, and expects that what was there before is there still.
func (s *session) removeReal(app application, externals map[string]object) {
	s.t.Helper()
	s.note("Removed")
	s.show(0, "stack", "rm", "app")
	s.same("the stack's coming and going", externals, s.objects())
	if s.records > 0 {
		s.t.Errorf("%d parts of releases are left", s.records)
	}
	s.show(0, "stack", "ls")
	s.run(7, "stack", "services", "app")
	s.run(7, "stack", "rm", "app")
}

// TestUnsetVariables deploys an application without the variables that it wants.
func TestUnsetVariables(t *testing.T) {
	testinput.Path(t, "inputs")
	for _, key := range []string{"USERS", "DOMAIN"} {
		t.Setenv(key, "") // puts it back at the end
		if err := os.Unsetenv(key); err != nil {
			t.Fatal(err)
		}
	}
	s := newSession(t, testcluster.New(t, 1))
	s.run(0, "network", "create", "docker_socket_proxy")
	s.show(0, append(append([]string{"stack", "deploy"}, s.copyFiles("traefik-public.yml")...), "app")...)
	s.objects() // for the names of what the service refers to
	s.show(0, "service", "inspect", "app_traefik_ingress")
	s.golden("traefik-public-unset")
}

// deployVersions deploys the versions of an application one after the other, each with one more
// file, as the book does that they are from.
func (s *session) deployVersions(app application) {
	s.t.Helper()
	base := append([]string{"stack", "deploy"}, s.copyInputs(app)...)
	s.note("The first version")
	s.show(0, append(base, "app")...)
	s.look("app")
	first := s.objects()
	deploy := slices.Clone(base)
	for _, f := range app.later {
		s.note("With " + filepath.Base(f))
		deploy = append(deploy, s.copyFiles(f)...)
		s.show(0, append(deploy, "app")...)
		s.show(0, "stack", "services", "app")
		s.unmoved("the same files again", func() {
			s.says(s.run(0, append(deploy, "app")...).Err, "nothing to change\n")
		})
	}
	s.note("In the end")
	s.show(0, "service", "inspect", "app_numbers-api", "app_numbers-web")
	last := s.objects()
	s.updated(first, last, "service app_numbers-api")
	s.updated(first, last, "service app_numbers-web")
	s.same("the versions, beside the services,", only("network", first), only("network", last))

	s.note("Back to the first version")
	s.show(0, append(base, "app")...)
	s.show(0, "stack", "rm", "app")
	s.nothingLeft()
}

func only(kind string, all map[string]object) map[string]object {
	found := map[string]object{}
	for key, o := range all {
		if strings.HasPrefix(key, kind+" ") {
			found[key] = o
		}
	}
	return found
}
