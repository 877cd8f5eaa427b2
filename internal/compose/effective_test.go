package compose

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sameAgain reads the effective file of a result, which must give the same request, the same
// effective file and no warning that was not there before.
func sameAgain(t testing.TB, o Options, first *Result) {
	t.Helper()
	o.Files, o.Stdin = []string{"-"}, strings.NewReader(first.Request.Compose)
	o.EnvFiles, o.Profiles = nil, nil
	again, err := Load(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, first.Request.Compose)
	}
	if diff := cmp.Diff(first.Request.Compose, again.Request.Compose); diff != "" {
		t.Errorf("effective file of the effective file (-first +again):\n%s", diff)
	}
	if !again.Request.Equal(first.Request) {
		t.Errorf("another request (-first +again):\n%s", cmp.Diff(first.Request.String(), again.Request.String()))
	}
	before := map[string]bool{}
	for _, w := range first.Warnings {
		before[w] = true
	}
	for _, w := range again.Warnings {
		if !before[w] {
			t.Errorf("new warning: %s", w)
		}
	}
}

// TestEffectiveSaysTheSame: whatever is carried over is in the effective file.
func TestEffectiveSaysTheSame(t *testing.T) {
	env := []string{"GIVEN=here", "N=7"}
	for _, test := range keyTests {
		t.Run(test.key, func(t *testing.T) {
			result, err := loadText(t, test.file, env...)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir() // without the env files and the label files
			writeFile(t, dir, "data.txt", "from a file")
			sameAgain(t, Options{Dir: dir, Env: env, Stack: "s"}, result)
		})
	}
}

// TestEffectiveText: any text of a value comes through as it is, whatever YAML or a variable
// would make of it.
func TestEffectiveText(t *testing.T) {
	words := rapid.OneOf(
		rapid.SampledFrom([]string{
			"yes", "no", "on", "y", "null", "~", "0777", "0o17", "0x1f", "0b1", "1_000", "1e3", ".5", ".inf", ".nan",
			"12:30:45", "2001-01-01", "<<", "=", "", " ", "a: b", "- a", "# a", "a #b", "'", `"`, "|", ">", "%", "@", "`",
			"&a", "*a", "!a", "{a", "[a", "$", "$$", "${A}", "$A", "a\nb\n", "\ta", "é", "\u2028", "\u0085", "a\u0085b", "\ufeffa", "\u00a0", "\u007f", "\r\n", "a\\u0085", "-", "?",
		}),
		rapid.StringMatching(`[ -~\n\t]{0,20}`),
	)
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		value := words.Draw(rt, "value")
		key := rapid.SampledFrom([]string{"A", "yes", "on", "null", "0777", "1e3", "a$b", "$A"}).Draw(rt, "key")
		file := fmt.Sprintf("services:\n  web:\n    image: x\n    environment: {%q: %q}\n    command: [%q]\n    labels: {%q: %q}\n",
			key, strings.ReplaceAll(value, "$", "$$"), strings.ReplaceAll(value, "$", "$$"), key, strings.ReplaceAll(value, "$", "$$"))
		o := Options{Files: []string{"-"}, Stdin: strings.NewReader(file), Dir: dir, Env: []string{"A=wrong"}, Stack: "s"}
		result, err := Load(t.Context(), o)
		if err != nil {
			rt.Skip(err) // the first file is not what is tested
		}
		o.Stdin = strings.NewReader(result.Request.Compose)
		again, err := Load(t.Context(), o)
		if err != nil {
			rt.Fatalf("%v\n%s", err, result.Request.Compose)
		}
		if !again.Request.Equal(result.Request) {
			rt.Fatalf("%s\n%s", cmp.Diff(result.Request.String(), again.Request.String()), result.Request.Compose)
		}
		if c := again.Request.Services[0].Task.GetContainer(); c.Args[0] != value {
			rt.Fatalf("%q became %q", value, c.Args[0])
		}
	})
}

// TestEffectiveHidesSecrets: the content of a secret is nowhere in the effective file, whatever
// it is made of; where it comes from is.
func TestEffectiveHidesSecrets(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "key.txt", "canary-file")
	writeFile(t, dir, "more.env", "FROM_FILE=canary-env-file\n")
	file := web() + `secrets:
  a: {environment: SECRET}
  b: {file: key.txt, name: "${NAME}"}
  c: {environment: FROM_FILE, labels: {l: "1"}}
configs:
  d: {content: "at ${NAME}, $$5"}
  e: {environment: CONFIG}
`
	result, err := Load(t.Context(), Options{
		Files: []string{"-"}, Stdin: strings.NewReader(file), Dir: dir, EnvFiles: []string{"more.env"},
		Env: []string{"SECRET=canary-env", "NAME=named", "CONFIG=of a variable"}, Stack: "s",
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"canary-file", "canary-env", "canary-env-file"} {
		if got := string(result.Request.Secrets[i].Data); got != want {
			t.Errorf("secret %d: %q, want %q", i, got, want)
		}
	}
	want := `services:
  web:
    image: nginx
secrets:
  a:
    environment: SECRET
  b:
    file: ` + filepath.Join(dir, "key.txt") + `
    name: named
  c:
    environment: FROM_FILE
    labels:
      l: "1"
configs:
  d:
    content: at named, $$5
  e:
    environment: CONFIG
`
	if diff := cmp.Diff(want, result.Request.Compose); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEffectiveIsMerged: files, variables, env files and profiles are in it; what has no effect
// is not.
func TestEffectiveIsMerged(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "base.yml", `x-all: &all
  logging: {driver: json-file}
services:
  web:
    <<: *all
    image: nginx:${TAG}
    build: .
    env_file: web.env
    environment: {B: "2", C: }
    ports: ["8080:80"]
    deploy: {resources: {limits: {cpus: "1.123456789"}}}
  debug:
    image: ${MISSING}
    profiles: [debug]
  tools:
    image: tools
    profiles: [tools, debug]
networks: {unused: }
`)
	writeFile(t, dir, "more.yml", "services:\n  web:\n    deploy: {replicas: 3}\n    build: !reset null\n")
	writeFile(t, dir, "web.env", "A='$1'\nB=1\n")
	writeFile(t, dir, "tags.env", "TAG=2\n")
	result, err := Load(t.Context(), Options{
		Files: []string{"base.yml", "more.yml"}, Dir: dir, Stack: "s", Profiles: []string{"tools"}, EnvFiles: []string{"tags.env"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `services:
  tools:
    image: tools
  web:
    deploy:
      replicas: 3
      resources:
        limits:
          cpus: "1.123456789"
    environment:
      A: $$1
      B: "2"
      C: null
    image: nginx:2
    logging:
      driver: json-file
    ports:
    - mode: ingress
      protocol: tcp
      published: "8080"
      target: 80
networks:
  unused: {}
`
	if diff := cmp.Diff(want, result.Request.Compose); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantWarnings := []string{
		"networks.unused: not carried over: no service is in it",
		"services.debug: left out: it is only for the profiles debug",
		"variable C is not set: services.web.environment has it without a value",
		"variable MISSING is not set: an empty string stands in its place",
	}
	if diff := cmp.Diff(wantWarnings, result.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "web.env")); err != nil {
		t.Fatal(err)
	}
}
