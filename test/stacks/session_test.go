package stacks_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/manager/objects"
	"holdfast/test/testcluster"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

func TestMain(m *testing.M) { os.Exit(testcluster.Run(m)) }

// session is a person with ctl at a cluster, in a folder of their own. It writes down what
// was shown.
type session struct {
	t       testing.TB
	cluster *testcluster.Cluster
	client  *client.Client
	dir     string
	socket  string // to call, instead of those of all members
	text    strings.Builder
	// names gives the objects that were seen, by their IDs.
	names map[string]string
	// random gives, by the names of objects that end in something random, what to show instead.
	random map[string]string
	// records is how many secrets are parts of releases' records, when last looked at.
	records int
}

func newSession(t testing.TB, c *testcluster.Cluster) *session {
	t.Helper()
	return &session{t: t, cluster: c, client: c.Client(), dir: t.TempDir(), names: map[string]string{}, random: map[string]string{}}
}

// write makes a file in the session's folder, and returns its path.
func (s *session) write(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// run calls ctl and expects an exit code.
func (s *session) run(code int, args ...string) testcluster.Result {
	s.t.Helper()
	return s.input(code, "", args...)
}

// input is run with something on the standard input.
func (s *session) input(code int, stdin string, args ...string) testcluster.Result {
	s.t.Helper()
	if s.socket != "" {
		args = append([]string{"--socket", s.socket}, args...)
	}
	r := s.cluster.CtlInput(stdin, args...)
	if r.Code != code {
		s.t.Fatalf("ctl %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), r.Code, code, r.Out, r.Err)
	}
	return r
}

// show is run, and writes down what was called and what it printed.
func (s *session) show(code int, args ...string) testcluster.Result {
	s.t.Helper()
	r := s.run(code, args...)
	s.objects() // for their names
	s.text.WriteString("$ ctl " + s.plain(strings.Join(args, " ")) + "\n")
	out := r.Out
	if args[1] == "ls" || args[1] == "services" {
		out = sortRows(out)
	}
	s.text.WriteString(s.plain(out))
	for line := range strings.Lines(s.plain(r.Err)) {
		s.text.WriteString("! " + line)
	}
	s.text.WriteString("\n")
	return r
}

// note writes down a heading.
func (s *session) note(text string) { s.text.WriteString("# " + text + "\n\n") }

// golden compares what was written down with a transcript.
func (s *session) golden(name string) {
	s.t.Helper()
	path := filepath.Join("testdata", name+".golden")
	got := strings.TrimRight(s.text.String(), "\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		s.t.Errorf("%s differs (-want +got); -update rewrites it\n%s", path, diff)
	}
}

// sortRows sorts what is below the head of a table: lists are in the order of IDs.
func sortRows(table string) string {
	lines := strings.SplitAfter(table, "\n")
	slices.SortFunc(lines[1:], func(a, b string) int {
		return strings.Compare(anID.ReplaceAllString(a, ""), anID.ReplaceAllString(b, ""))
	})
	return strings.Join(lines, "")
}

var (
	anID     = regexp.MustCompile(`\b[0-9a-z]{25}\b`)
	quotedID = regexp.MustCompile(`"[0-9a-z]{25}"`)
	anAge    = regexp.MustCompile(`(?m) \d+[smhd]$`)
	aTime    = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[\d:.]+Z`)
	index    = regexp.MustCompile(`"index": "\d+"`)
	revision = regexp.MustCompile(`\brevision \d+`)
	// The meta of an object that stands alone, and of one in an array; what
	// is kept are two of its numbers.
	metaAlone = regexp.MustCompile(`(?ms)^  "meta": \{$.*?"generation": "(\d+)",\s+"changes": "(\d+)",$.*?^  \},$`)
	metaInner = regexp.MustCompile(`(?ms)^    "meta": \{$.*?"generation": "(\d+)",\s+"changes": "(\d+)",$.*?^    \},$`)
)

// plain replaces what differs from one run to the next, by something as wide where it stands
// in a table.
func (s *session) plain(text string) string {
	text = strings.ReplaceAll(text, s.dir+string(filepath.Separator), "")
	for name, shown := range s.random {
		text = strings.ReplaceAll(text, name, shown)
	}
	text = metaAlone.ReplaceAllString(text, `  "meta": "generation $1, changes $2",`)
	text = metaInner.ReplaceAllString(text, `    "meta": "generation $1, changes $2",`)
	text = quotedID.ReplaceAllStringFunc(text, func(id string) string {
		if name, ok := s.names[strings.Trim(id, `"`)]; ok {
			return `"<` + name + `>"`
		}
		return `"<ID>"`
	})
	text = anID.ReplaceAllString(text, fmt.Sprintf("%-25s", "ID"))
	text = anAge.ReplaceAllString(text, " AGE")
	text = aTime.ReplaceAllString(text, fmt.Sprintf("%-20s", "TIME"))
	text = index.ReplaceAllString(text, `"index": "R"`)
	text = revision.ReplaceAllString(text, "revision R")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// object is an object as a manager holds it. Two are equal if all of it is.
type object struct {
	Name, ID, Stack              string
	Created, Version, Generation uint64
	Digest                       string // of the whole
}

// kinds are those that stacks are made of, as ctl names them.
func kinds() []string { return []string{"service", "network", "secret", "config"} }

// Labels of objects that stacks have, and of those that are parts of releases' records.
const (
	stackName  = "holdfast.stack.name"
	recordPart = "holdfast.release.part"
)

// objects returns all objects that a stack can have, in it or not, by "kind name". The newest of
// those that a stack has under one name goes by that. Records of releases are only counted.
func (s *session) objects() map[string]object {
	s.t.Helper()
	ctx := testcluster.Context(s.t, testcluster.Bound)
	all := map[string]object{}
	s.records = 0
	for _, kind := range kinds() {
		number := holdfast.Kind_value["KIND_"+strings.ToUpper(kind)]
		for o, err := range s.client.List(ctx, holdfast.Kind(number), holdfast.Selector{}) {
			if err != nil {
				s.t.Fatal(err)
			}
			data, err := o.Marshal()
			if err != nil {
				s.t.Fatal(err)
			}
			inner := objects.Unwrap(o)
			meta, annotations := inner.GetMeta(), annotations(inner)
			if _, ok := annotations.Labels[recordPart]; ok {
				s.records++
				continue
			}
			stored := kind + " " + annotations.Name
			name := stored
			if own, ok := annotations.Labels[stackName]; ok {
				name = kind + " " + own
				if kind == "secret" {
					s.random[annotations.Name] = own + "-RANDOM......"
				}
			}
			s.names[inner.GetID()] = name
			if other, ok := all[name]; ok && other.Created > meta.CreatedVersion.Index {
				name = stored
			} else if ok {
				all[kind+" "+other.Name] = other
			}
			all[name] = object{
				Name: annotations.Name, ID: inner.GetID(), Stack: annotations.Labels["com.docker.stack.namespace"],
				Created: meta.CreatedVersion.Index, Version: meta.Version.Index, Generation: meta.Generation,
				Digest: fmt.Sprintf("%x", sha256.Sum256(data)),
			}
		}
	}
	return all
}

// get returns the object of a kind with an ID, or with a name.
func (s *session) get(kind holdfast.Kind, id, name string) *holdfast.Object {
	s.t.Helper()
	ctx := testcluster.Context(s.t, testcluster.Bound)
	r, err := s.client.Objects().Get(ctx, &holdfast.GetRequest{Kind: kind, ID: id, Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Object
}

// container returns what a service runs.
func (s *session) container(service string) *api.ContainerSpec {
	s.t.Helper()
	return s.get(holdfast.Kind_KIND_SERVICE, "", service).GetService().Spec.Task.GetContainer()
}

// data returns what a config has in it that a service is given.
func (s *session) data(given *api.ConfigReference) []byte {
	s.t.Helper()
	return s.get(holdfast.Kind_KIND_CONFIG, given.ConfigID, "").GetConfig().Spec.Data
}

func annotations(o any) api.Annotations {
	switch o := o.(type) {
	case *api.Service:
		return o.Spec.Annotations
	case *api.Network:
		return o.Spec.Annotations
	case *api.Secret:
		return o.Spec.Annotations
	case *api.Config:
		return o.Spec.Annotations
	}
	return api.Annotations{}
}

// nothingLeft fails if there is an object, or a part of a release's record.
func (s *session) nothingLeft() {
	s.t.Helper()
	if left := s.objects(); len(left) > 0 || s.records > 0 {
		s.t.Fatalf("%d parts of releases are left, and objects: %v", s.records, left)
	}
}

// of returns those objects that belong to a stack.
func of(stack string, all map[string]object) map[string]object {
	found := maps.Clone(all)
	maps.DeleteFunc(found, func(_ string, o object) bool { return o.Stack != stack })
	return found
}

// same fails if objects differ in anything that is looked at.
func (s *session) same(what string, before, after map[string]object) {
	s.t.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		s.t.Errorf("%s changed objects (-before +after)\n%s", what, diff)
	}
}

// says fails if a text lacks one of some parts.
func (s *session) says(text string, parts ...string) {
	s.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			s.t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// revision returns the newest revision.
func (s *session) revision() uint64 {
	s.t.Helper()
	status, err := s.client.Cluster().Status(testcluster.Context(s.t, testcluster.Bound), &holdfast.StatusRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	return status.Revision
}

// unmoved fails if do moves the cluster's revision. The leader itself moves it when it finds
// that a member came or went: only what does so each time was moved by do.
func (s *session) unmoved(what string, do func()) {
	s.t.Helper()
	const tries = 5
	for range tries {
		objects, before := s.objects(), s.revision()
		do()
		after := s.revision()
		s.same(what, objects, s.objects())
		if before == after {
			return
		}
	}
	s.t.Errorf("%s moved the revision, %d times of %d", what, tries, tries)
}
