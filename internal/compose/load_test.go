package compose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "sub/base.yml", web("environment: {A: 1, B: 1}", "volumes: ['./x:/x']", "command: base")+
		"secrets: {x: {file: data.txt}}")
	writeFile(t, dir, "sub/data.txt", "beside the first file")
	writeFile(t, dir, "more.yml", web("environment: [B=2]", "volumes: ['./y:/y']", "command: more", "ports: [80]"))
	result, err := Load(t.Context(), Options{
		Files: []string{"sub/base.yml", "more.yml", "-"}, Dir: dir, Stack: "s",
		Stdin: strings.NewReader("services: {web: {image: newest, ports: !reset []}}"),
	})
	if err != nil {
		t.Fatal(err)
	}
	c := result.Request.Services[0].Task.GetContainer()
	got := []string{c.Image, strings.Join(c.Args, " "), strings.Join(c.Env, " "), string(result.Request.Secrets[0].Data)}
	for _, m := range c.Mounts {
		got = append(got, m.Source)
	}
	want := []string{
		"newest", "more", "A=1 B=2", "beside the first file",
		filepath.Join(dir, "sub", "x"), filepath.Join(dir, "sub", "y"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if e := result.Request.Services[0].Endpoint; e != nil {
		t.Errorf("ports after !reset: %v", e)
	}
}

func TestExtendsAndInclude(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "common.yml", "services: {base: {image: nginx, environment: {A: '${A}'}}}")
	writeFile(t, dir, "part.yml", "services: {db: {image: 'db:${TAG}'}}")
	writeFile(t, dir, "app.yml", "include: [part.yml]\nservices: {web: {extends: {file: common.yml, service: base}}}")
	result, err := Load(t.Context(), Options{Files: []string{filepath.Join(dir, "app.yml")}, Env: []string{"TAG=1"}, Stack: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"variable A is not set: an empty string stands in its place"}, result.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if got := result.Request.Services[0].Task.GetContainer().Image; got != "db:1" {
		t.Errorf("included image: %s", got)
	}
}

// TestDeterministic: the order of maps must not be seen.
func TestDeterministic(t *testing.T) {
	file := "services:\n"
	for _, name := range []string{"e", "d", "c", "b", "a"} {
		file += "  " + name + ": {image: x, build: ., networks: [n, m, k], secrets: [t, s]}\n"
	}
	file += "networks: {n: , m: , k: {name: zz}}\nsecrets: {t: {environment: A, name: aa}, s: {environment: A}}\n"
	var first string
	for range 20 {
		result, err := loadText(t, file, "A=1")
		if err != nil {
			t.Fatal(err)
		}
		text := result.Request.String() + strings.Join(result.Warnings, "\n")
		if first == "" {
			first = text
		}
		if text != first {
			t.Fatalf("two loads differ:\n%s\n%s", first, text)
		}
	}
	if !strings.Contains(first, "aa") || strings.Index(first, "s_e") < strings.Index(first, "s_d") {
		t.Errorf("not in the order of names: %s", first)
	}
}

// longKey is a key that fits, but not with the stack's name before it.
var longKey = strings.Repeat("a", 62)

// errorTests are files that are refused, and parts of the error. None may show a value of the
// environment ("canary") or have several lines.
var errorTests = []struct {
	name, file string
	want       []string // parts of the error
}{
	{"bad YAML", "services:\n  web: [", []string{"-", "yaml"}},
	{"not a mapping", "- a", []string{"-: ", "mapping"}},
	{"empty", "", []string{"-", "empty"}},
	{"unknown key", web("imagee: x"), []string{"services.web.imagee: Compose has no such key"}},
	{"key twice", web("image: x"), []string{"image", "line 4"}},
	{"wrong type", web("command: {a: b}"), []string{"services.web.command"}},
	{"wrong type where compose-go panics", web("secrets: [{source: x, target: 5}]"), []string{"-", "services.web.secrets.0", "target"}},
	{"wrong type of a service", "services: {web: 5}", []string{"services.web"}},
	{"null service", "services: {web: }", []string{"services.web"}},
	{"no image", "services: {web: {build: .}}", []string{"services.web.image"}},
	{"required variable", web("hostname: ${HOST:?say where}"), []string{"services.web.hostname", "HOST", "say where"}},
	{"unclosed brace", web("environment: {PASSWORD: 'canary${'}"), []string{"services.web.environment.PASSWORD", "${"}},
	{"bad name", web("environment: {PASSWORD: 'canary${1}'}"), []string{"services.web.environment.PASSWORD", "${"}},
	{"bad number", web("deploy: {replicas: '${TAG}'}"), []string{"services.web.deploy.replicas"}},
	{"bad duration", web("stop_grace_period: soon"), []string{"services.web.stop_grace_period: ", "soon"}},
	{"negative duration", web("stop_grace_period: -5s"), []string{"services.web.stop_grace_period", "negative"}},
	{"bad port", web("ports: ['http:80']"), []string{"services.web.ports[0]", "http"}},
	{"bad port of a variable", web("ports: [80, '${TAG}:80']"), []string{"services.web.ports[1]", "v1"}},
	{"bad volume", web("volumes: ['/a:/b:/c:/d']"), []string{"services.web.volumes[0]", "/a:/b:/c:/d"}},
	{"port beyond", web("ports: [{target: 70000}]"), []string{"services.web.ports[0].target", "70000"}},
	{"port range for one target", web("ports: ['8000-8002:80']"), []string{"services.web.ports[0].published", "8000-8002"}},
	{"protocol", web("ports: [{target: 80, protocol: icmp}]"), []string{"services.web.ports[0].protocol", "icmp", "sctp, tcp, udp"}},
	{"publish mode", web("ports: [{target: 80, mode: other}]"), []string{"services.web.ports[0].mode", "other"}},
	{"constraint", web("deploy: {placement: {constraints: [node.role = worker]}}"), []string{"services.web.deploy.placement.constraints[0]", "node.role = worker", "KEY==VALUE"}},
	{"key of a constraint", web("deploy: {placement: {constraints: [node.role==manager, 'node role != x']}}"), []string{"services.web.deploy.placement.constraints[1]", "node role"}},
	{"value of a constraint", web("deploy: {placement: {constraints: ['node.labels.a==b@c']}}"), []string{"services.web.deploy.placement.constraints[0]", "b@c"}},
	{"constraint without a value", web("deploy: {placement: {constraints: ['node.labels.a!=']}}"), []string{"services.web.deploy.placement.constraints[0]"}},
	{"preference", web("deploy: {placement: {preferences: [{spread: ' '}]}}"), []string{"services.web.deploy.placement.preferences[0].spread"}},
	{"endpoint mode", web("deploy: {endpoint_mode: x}"), []string{"services.web.deploy.endpoint_mode"}},
	{"mode", web("deploy: {mode: x}"), []string{"services.web.deploy.mode", "replicated-job"}},
	{"replicas of a global service", web("deploy: {mode: global, replicas: 2}"), []string{"services.web.deploy.replicas"}},
	{"negative replicas", web("deploy: {replicas: -1}"), []string{"services.web.deploy.replicas"}},
	{"failure action", web("deploy: {update_config: {failure_action: x}}"), []string{"services.web.deploy.update_config.failure_action"}},
	{"order", web("deploy: {rollback_config: {order: any}}"), []string{"services.web.deploy.rollback_config.order"}},
	{"failure ratio", web("deploy: {update_config: {max_failure_ratio: 2}}"), []string{"services.web.deploy.update_config.max_failure_ratio"}},
	{"restart condition", web("deploy: {restart_policy: {condition: x}}"), []string{"services.web.deploy.restart_policy.condition"}},
	{"restart", web("restart: sometimes"), []string{"services.web.restart", "sometimes"}},
	{"restart attempts", web("restart: 'on-failure:x'"), []string{"services.web.restart"}},
	{"isolation", web("isolation: x"), []string{"services.web.isolation"}},
	{"cpus", web("deploy: {resources: {limits: {cpus: '-1'}}}"), []string{"services.web.deploy.resources.limits.cpus"}},
	{"cpus too fine", web("deploy: {resources: {limits: {cpus: '0.12345678912'}}}"), []string{"services.web.deploy.resources.limits.cpus"}},
	{"memory", web("deploy: {resources: {limits: {memory: lots}}}"), []string{"services.web.deploy.resources.limits.memory: "}},
	{"dns", web("dns: [1.1.1.1, nowhere]"), []string{"services.web.dns[1]", "nowhere"}},
	{"extra host", web("extra_hosts: {a: }"), []string{"services.web.extra_hosts"}},
	{"healthcheck", web("healthcheck: {test: [curl, x]}"), []string{"services.web.healthcheck.test"}},
	{"healthcheck disabled", web("healthcheck: {test: x, disable: true}"), []string{"services.web.healthcheck"}},
	{"credential specs", web("credential_spec: {file: a, registry: b}"), []string{"services.web.credential_spec", "file and registry"}},
	{"unknown network", web("networks: [n]"), []string{"services.web.networks.n"}},
	{"network_mode with networks", web("networks: [n]", "network_mode: host"), []string{"services.web", "network_mode"}},
	{"subnet", web("networks: [n]") + "networks: {n: {ipam: {config: [{subnet: 10.0.0.0}]}}}", []string{"networks.n.ipam.config[0].subnet"}},
	{"unknown volume", web("volumes: ['v1:/t']"), []string{"services.web.volumes[0].source", "v1"}},
	{"image mount", web("volumes: [{type: image, source: x, target: /t}]"), []string{"services.web.volumes[0].type", "image"}},
	{"propagation", web("volumes: [{type: bind, source: /a, target: /t, bind: {propagation: x}}]"), []string{"services.web.volumes[0].bind.propagation"}},
	{"options of another type", web("volumes: [{type: tmpfs, target: /t, volume: {nocopy: true}}]"), []string{"services.web.volumes[0].volume", "tmpfs"}},
	{"bind options of a volume", web("volumes: ['v1:/t:rshared']") + "volumes: {v1: }", []string{"services.web.volumes[0].bind", "volume"}},
	{"tmpfs options of a volume", web("volumes: [{type: volume, target: /t, tmpfs: {size: 1}}]"), []string{"services.web.volumes[0].tmpfs"}},
	{"source of a tmpfs", web("volumes: [{type: tmpfs, source: /a, target: /t}]"), []string{"services.web.volumes[0].source"}},
	{"no source of a pipe", web("volumes: [{type: npipe, target: /t}]"), []string{"services.web.volumes[0].source", "npipe"}},
	{"recursive", web("volumes: [{type: bind, source: /a, target: /t, bind: {recursive: x}}]"), []string{"services.web.volumes.0.bind.recursive"}},
	{"negative memory", web("deploy: {resources: {limits: {memory: '-1'}}}"), []string{"services.web.deploy.resources.limits.memory"}},
	{"retries", web("healthcheck: {retries: 3000000000}"), []string{"services.web.healthcheck.retries"}},
	{"gateway", web("networks: [n]") + "networks: {n: {ipam: {config: [{gateway: x}]}}}", []string{"networks.n.ipam.config[0].gateway"}},
	{"large secret file", web() + "secrets: {x: {file: /dev/zero}}", []string{"secrets.x.file", "511999"}},
	{"no source", web("volumes: [{type: bind, target: /t}]"), []string{"-: ", "bind", "Source"}},
	{"unknown secret", web("secrets: [x]"), []string{"services.web.secrets[0].source", "x"}},
	{"unknown config", web("configs: [x]"), []string{"services.web.configs[0].source", "x"}},
	{"mode of a file", web("secrets: [{source: x, mode: 99999}]") + "secrets: {x: {file: data.txt}}", []string{"services.web.secrets[0].mode"}},
	{"missing secret file", web() + "secrets: {x: {file: ./none.txt}}", []string{"secrets.x.file", "none.txt", "no such file"}},
	{"secret is a folder", web() + "secrets: {x: {file: .}}", []string{"secrets.x.file", "directory"}},
	{"unset secret", web() + "secrets: {x: {environment: NONE}}", []string{"secrets.x.environment", "NONE"}},
	{"empty secret", web() + "secrets: {x: {environment: EMPTY}}", []string{"secrets.x.environment", "empty"}},
	{"large secret", web() + "secrets: {x: {environment: LARGE}}", []string{"secrets.x.environment", "511999"}},
	{"secret without data", web() + "secrets: {x: {name: y}}", []string{"secrets.x"}},
	{"missing config file", web() + "configs: {x: {file: none.txt}}", []string{"configs.x.file", "none.txt"}},
	{"empty config", web() + "configs: {x: {content: ''}}", []string{"configs.x.content", "the config is empty"}},
	{"bad env file", web("env_file: bad.env"), []string{"bad.env: line 2: it is not KEY=VALUE"}},
	{"open quote in an env file", web("env_file: quote.env"), []string{"quote.env: line 3: a quote is not closed"}},
	{"bad variable in an env file", web("env_file: brace.env"), []string{"brace.env: it cannot be read"}},
	{"bad label file", web("label_file: bad.env"), []string{"bad.env: line 2: it is not KEY=VALUE"}},
	{"missing env file", web("env_file: none.env"), []string{"none.env"}},
	{"service name too long", "services: {" + longKey + ": {image: x}}", []string{"services." + longKey, "64 characters", "63"}},
	{"secret name too long", web() + "secrets: {a" + longKey + "b: {file: data.txt}}", []string{"secrets.a" + longKey, "66 characters", "64"}},
	{"own name", web("networks: [n]") + "networks: {n: {name: 'not valid'}}", []string{"networks.n", "not valid"}},
	{"service name", "services: {web.1: {image: x}}", []string{"services.web.1", "s_web.1"}},
	{"one name twice", web() + "secrets: {x: {file: data.txt, name: S_y}, y: {file: data.txt}}", []string{"secrets.y", "s_y", "secrets.x"}},
	{"two services, one name", "services: {web: {image: x}, WEB: {image: x}}", []string{"services.web", "services.WEB"}},
}

func TestErrors(t *testing.T) {
	for _, test := range errorTests {
		t.Run(test.name, func(t *testing.T) {
			_, err := loadText(t, test.file, "EMPTY=", "TAG=v1", "LARGE=canary"+strings.Repeat("x", 500<<10))
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in the error: %v", part, err)
				}
			}
			if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error shows a value or has several lines: %.300q", err)
			}
		})
	}
}

// TestEnvFiles: the environment wins over env files, and a later one over an earlier one.
func TestEnvFiles(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "a.env", "# one\nA=a-file\nB=a-file\nC='$no'\nexport D=\"${A}, ${ENV}\"\n")
	writeFile(t, dir, "b.env", "\uFEFFB=b-file\nE=${C}${B}\n")
	o := Options{
		Files: []string{"-"}, Dir: dir, Env: []string{"A=env", "ENV=env"}, EnvFiles: []string{"a.env", "b.env"}, Stack: "s",
		Stdin: strings.NewReader(web("command: ['$A', '$B', '$C', '$D', '$E']")),
	}
	result, err := Load(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	got := result.Request.Services[0].Task.GetContainer().Args
	if diff := cmp.Diff([]string{"env", "b-file", "$no", "env, env", "$nob-file"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for content, want := range map[string]string{
		"A=1\ncanary here\n": "env file: bad.env: line 2: it is not KEY=VALUE",
		"A='canary\nB=1":     "env file: bad.env: line 2: a quote is not closed",
		"A=\"${canary\"":     "env file: bad.env: it cannot be read as KEY=VALUE, or a $ in it cannot",
	} {
		writeFile(t, dir, "bad.env", content)
		o.EnvFiles, o.Stdin = []string{"bad.env"}, strings.NewReader(web())
		if _, err := Load(t.Context(), o); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
	o.EnvFiles, o.Stdin = []string{"none.env"}, strings.NewReader(web())
	if _, err := Load(t.Context(), o); err == nil || !strings.Contains(err.Error(), "none.env: no such file") {
		t.Errorf("missing: %v", err)
	}
}

// TestProfiles: services with profiles are there if one of these is asked for.
func TestProfiles(t *testing.T) {
	file := "services: {a: {image: x}, b: {image: x, profiles: [p]}, c: {image: x, profiles: [p, q]}, d: {build: ., profiles: [r]}}"
	for _, test := range []struct {
		profiles []string
		services string
		warnings []string
	}{
		{nil, "s_a", []string{
			"services.b: left out: it is only for the profiles p", "services.c: left out: it is only for the profiles p, q",
			"services.d: left out: it is only for the profiles r",
		}},
		{[]string{"q", "zz"}, "s_a s_c", []string{
			"profile zz: no service has it", "services.b: left out: it is only for the profiles p",
			"services.d: left out: it is only for the profiles r",
		}},
		{[]string{"p"}, "s_a s_b s_c", []string{"services.d: left out: it is only for the profiles r"}},
	} {
		result, err := Load(t.Context(), Options{
			Files: []string{"-"}, Stdin: strings.NewReader(file), Dir: t.TempDir(), Profiles: test.profiles, Stack: "s",
		})
		if err != nil {
			t.Fatal(err)
		}
		var services []string
		for _, s := range result.Request.Services {
			services = append(services, s.Annotations.Name)
		}
		if got := strings.Join(services, " "); got != test.services {
			t.Errorf("%q: services %s, want %s", test.profiles, got, test.services)
		}
		if diff := cmp.Diff(test.warnings, result.Warnings); diff != "" {
			t.Errorf("%q: warnings (-want +got):\n%s", test.profiles, diff)
		}
		if len(result.NotCarried) > 0 {
			t.Errorf("%q: not carried: %q", test.profiles, result.NotCarried)
		}
	}
	_, err := Load(t.Context(), Options{
		Files: []string{"-"}, Stdin: strings.NewReader(file), Dir: t.TempDir(), Profiles: []string{"*"}, Stack: "s",
	})
	if err == nil || !strings.Contains(err.Error(), "services.d.image") {
		t.Errorf("all profiles: %v", err)
	}
}

// TestBounded: files that grow when they are read must not take the machine with them.
func TestBounded(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("x-a0: &a0 [ha, ha]\n")
	for i := range 30 {
		fmt.Fprintf(&laughs, "x-a%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i)
	}
	for name, file := range map[string]string{
		"aliases":  laughs.String() + web(),
		"exponent": web("deploy: {resources: {limits: {cpus: '1e999999999'}}}"),
		"tiny":     web("deploy: {resources: {limits: {cpus: '1e-999999999'}}}", "isolation: x"),
		"nesting":  web("hostname: '" + strings.Repeat("${A:-", 100_000) + strings.Repeat("}", 100_000) + "'"),
		"depth":    web("command: " + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)),
		"cycle":    "services: &s {web: *s}",
	} {
		start := time.Now()
		_, err := loadText(t, file)
		if took := time.Since(start); err == nil || took > 10*time.Second {
			t.Errorf("%s: error %.200v after %s", name, err, took)
		}
	}
}

func TestOptionErrors(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "a.yml", web())
	writeFile(t, dir, "large.yml", "#"+strings.Repeat("x", maxFile))
	for _, test := range []struct {
		name string
		o    Options
		want string
	}{
		{"no stack", Options{Files: []string{"a.yml"}}, "needs a name"},
		{"bad stack", Options{Files: []string{"a.yml"}, Stack: "a b"}, `"a b"`},
		{"long stack", Options{Files: []string{"a.yml"}, Stack: strings.Repeat("a", 64)}, "64 characters"},
		{"stack ends in _", Options{Files: []string{"a.yml"}, Stack: "a_"}, `"a_"`},
		{"no file", Options{Stack: "s"}, "no Compose file"},
		{"unknown file", Options{Files: []string{"a.yml", "b.yml"}, Stack: "s"}, "b.yml: no such file"},
		{"large file", Options{Files: []string{"large.yml"}, Stack: "s"}, "large.yml: larger than 4 MiB"},
		{"no stdin", Options{Files: []string{"-"}, Stack: "s"}, "no standard input"},
		{"stdin twice", Options{Files: []string{"-", "-"}, Stdin: strings.NewReader(web()), Stack: "s"}, "only once"},
	} {
		test.o.Dir = dir
		if _, err := Load(t.Context(), test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Load(ctx, Options{Files: []string{"a.yml"}, Dir: dir, Stack: "s"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSubstitute(t *testing.T) {
	env := map[string]string{"A": "a", "EMPTY": "", "_x9": "under"}
	get := func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
	for _, test := range []struct{ in, want, unset, err string }{
		{in: "plain", want: "plain"},
		{in: "$A-${A}", want: "a-a"},
		{in: "$_x9.$A$A", want: "under.aa"},
		{in: "$$A $${A}", want: "$A ${A}"},
		{in: "$ $1 $( a$", want: "$ $1 $( a$"},
		{in: "$N ${N}", want: " ", unset: "N"},
		{in: "${EMPTY-d}|${EMPTY:-d}|${N-d}|${N:-d}", want: "|d|d|d"},
		{in: "${EMPTY+r}|${EMPTY:+r}|${N+r}|${N:+r}|${A:+r}", want: "r||||r"},
		{in: "${EMPTY?e}", want: ""},
		{in: "${EMPTY:?say $A}", err: "EMPTY is missing a value: say a"},
		{in: "${N?}", err: "N is missing a value"},
		{in: "${N:-${M:-${A}}} ${A:-$UNUSED}", want: "a a"},
		{in: "${N:-$M}", want: "", unset: "M"},
		{in: `${N:-{"a":{}}}`, want: `{"a":{}}`},
		{in: "${", err: "not closed"},
		{in: "${A", err: "not closed"},
		{in: "${}", err: "name"},
		{in: "${A!b}", err: "name"},
		{in: "${A:}", err: "name"},
		{in: strings.Repeat("${N:-", 40) + strings.Repeat("}", 40), err: "nested"},
	} {
		var unset []string
		s := &substitution{unset: func(v string) { unset = append(unset, v) }}
		got, err := s.substitute(test.in, get)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: error %v", test.in, err)
			}
			continue
		}
		if err != nil || got != test.want || (test.unset == "") != (len(unset) == 0) {
			t.Errorf("%s: %q, unset %q, error %v; want %q, unset %q", test.in, got, unset, err, test.want, test.unset)
		}
	}
}
