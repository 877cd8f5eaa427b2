package compose

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
)

// warningTests are files and all that Load has to say of them.
var warningTests = []struct {
	name, file string
	want       []string
}{
	{name: "version and extensions", file: "version: '3.7'\nx-top: 1\n" + web("x-a: 1", "deploy: {x-b: 1}", "volumes: [{type: tmpfs, target: /t, x-c: 1}]")},
	{
		name: "top level",
		file: "name: other\nmodels: {m: {model: x}}\n" + web(),
		want: []string{"models: not carried over", "name: not carried over"},
	},
	{name: "the stack's own name", file: "name: s\n" + web()},
	{
		name: "service",
		file: web("build: .", "container_name: web1", "depends_on: [db]", "links: [db]", "expose: [80]",
			"privileged: true", "tmpfs: /run", "group_add: [g]", "scale: 2") +
			"  db: {image: db}",
		want: []string{
			"services.web.build: not carried over",
			"services.web.container_name: not carried over",
			"services.web.depends_on: not carried over",
			"services.web.expose: not carried over",
			"services.web.group_add: not carried over",
			"services.web.links: not carried over",
			"services.web.privileged: not carried over",
			"services.web.scale: not carried over",
			"services.web.tmpfs: not carried over",
		},
	},
	{
		name: "depends on nobody", // compose-go would refuse it; the key has no effect here
		file: web("depends_on: [nobody]"),
		want: []string{"services.web.depends_on: not carried over"},
	},
	{
		name: "host address of a port",
		file: web(`ports: ["443:443", "127.0.0.1:80:80", {target: 1, app_protocol: http}]`),
		want: []string{
			"services.web.ports[1].host_ip: not carried over",
			"services.web.ports[2].app_protocol: not carried over",
		},
	},
	{
		name: "mounts",
		file: web(`volumes: ["./a:/a", "/b:/b:z", "data:/c:Z", {type: bind, source: /d, target: /d, bind: {create_host_path: false}}]`) + dataVolume,
		want: []string{
			"services.web.volumes[1].bind.selinux: not carried over",
			"services.web.volumes[2].bind.selinux: not carried over",
		},
	},
	{
		name: "resources",
		file: web("deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}", "mem_limit: 1g", "cpus: 2"),
		want: []string{
			"services.web.cpus: not carried over",
			"services.web.deploy.resources.reservations.devices: not carried over",
			"services.web.mem_limit: not carried over",
		},
	},
	{
		name: "restart twice",
		file: web("restart: always", "deploy: {restart_policy: {condition: any}}"),
		want: []string{"services.web.restart: not carried over: deploy.restart_policy stands in its place"},
	},
	{
		name: "restart: no",
		file: web(`restart: "no"`),
		want: []string{"services.web.restart: not carried over: only deploy.restart_policy can say none"},
	},
	{
		name: "network_mode",
		file: web("network_mode: host"),
		want: []string{"services.web.network_mode: not carried over: the service is in no network"},
	},
	{
		name: "addresses in a network",
		file: web("networks: {front: {ipv4_address: 10.0.0.9, priority: 2}}") + "networks: {front: {enable_ipv4: true}}",
		want: []string{
			"networks.front.enable_ipv4: not carried over",
			"services.web.networks.front.ipv4_address: not carried over",
			"services.web.networks.front.priority: not carried over",
		},
	},
	{
		name: "unused",
		file: web() + "networks: {front: }\nvolumes: {data: }",
		want: []string{
			"networks.front: not carried over: no service is in it",
			"volumes.data: not carried over: no service mounts it",
		},
	},
	{
		name: "external and more",
		file: web(onFront, ``) + "networks: {front: {external: true, driver: overlay}}\nsecrets: {x: {external: true, labels: {a: b}}}",
		want: []string{
			"networks.front.driver: not carried over",
			"secrets.x.labels: not carried over",
		},
	},
	{
		name: "profiles",
		file: "services: {web: {image: x, profiles: []}, debug: {build: ., profiles: [a, b]}}",
		want: []string{"services.debug: left out: it is only for the profiles a, b"},
	},
	{
		name: "variables",
		file: web("command: $$A ${B:-b} ${C:+c} ${D-$E} $E $E ${F}", "environment: [G, H=, SET]"),
		want: []string{
			"variable E is not set: an empty string stands in its place",
			"variable F is not set: an empty string stands in its place",
			"variable G is not set: services.web.environment has it without a value",
		},
	},
}

func TestWarnings(t *testing.T) {
	for _, test := range warningTests {
		t.Run(test.name, func(t *testing.T) {
			result, err := loadText(t, test.file, "SET=1")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, result.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStrict: one error names all that is not carried over, and nothing else.
func TestStrict(t *testing.T) {
	result, err := loadText(t, "version: '3'\nx-y: 1\n"+web("build: .", "command: $UNSET", `ports: ["127.0.0.1:80:80"]`)+
		"networks: {front: }\n")
	if err != nil {
		t.Fatal(err)
	}
	strict := result.Strict()
	want := "3 keys of the Compose files are not carried over: networks.front (no service is in it), " +
		"services.web.build, services.web.ports[0].host_ip"
	if strict == nil || strict.Error() != want {
		t.Errorf("got  %v\nwant %s", strict, want)
	}
	result, err = loadText(t, web("build: ."))
	if err != nil {
		t.Fatal(err)
	}
	if strict := result.Strict(); strict == nil || !strings.HasPrefix(strict.Error(), "1 key of the Compose files is not") {
		t.Errorf("one key: %v", strict)
	}
	result, err = loadText(t, web("command: $UNSET"))
	if err != nil {
		t.Fatal(err)
	}
	if strict := result.Strict(); strict != nil {
		t.Errorf("a variable that is not set: %v", strict)
	}
}

// serviceValues are values with the keys of a service that take them; all others take a string.
var serviceValues = map[string]string{
	"1": "oom_score_adj scale cpu_count cpu_percent cpu_period cpu_quota cpu_rt_period " +
		"cpu_rt_runtime cpu_shares cpus pids_limit mem_limit mem_reservation mem_swappiness " +
		"memswap_limit shm_size",
	"true": "init oom_kill_disable privileged read_only attach stdin_open tty use_api_socket",
	"{}": "annotations blkio_config credential_spec environment extra_hosts labels logging networks " +
		"storage_opt sysctls ulimits deploy develop healthcheck",
	"[]": "cap_add cap_drop configs device_cgroup_rules devices dns dns_opt dns_search " +
		"env_file gpus group_add label_file secrets security_opt tmpfs volumes volumes_from expose " +
		"ports profiles external_links links pre_start post_start pre_stop depends_on models",
	"1s":           "stop_grace_period",
	"web1":         "container_name",
	"host":         "cgroup",
	"always":       "restart pull_policy",
	"none":         "network_mode",
	"default":      "isolation",
	"{type: x}":    "provider",
	"'0022'":       "umask",
	"'1'":          "image",
	"{context: .}": "build",
}

// TestNothingIsLost gives each key that compose-go knows a service to have, and holds the
// warnings against the keys that carriedKeys does not know.
func TestNothingIsLost(t *testing.T) {
	values := map[string]string{}
	for value, names := range serviceValues {
		for name := range strings.FieldsSeq(names) {
			values[name] = value
		}
	}
	// Not keys of the schema, or gone before it is decided what is carried over.
	gone := []string{"profiles", "name", "extends", "log_driver", "log_opt", "net", "volume_driver", "dockerfile"}
	for _, key := range serviceFields(reflect.TypeFor[types.ServiceConfig]()) {
		if slices.Contains(gone, key) {
			continue
		}
		value, ok := values[key]
		if !ok {
			value = "x"
		}
		file := "services:\n  web:\n    " + key + ": " + value + "\n"
		if key != "image" {
			file += "    image: nginx\n"
		}
		result, err := loadText(t, file)
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		var want []string
		if _, carried := serviceKeys()[key]; !carried {
			want = []string{"services.web." + key + ": not carried over"}
		}
		if diff := cmp.Diff(want, result.Warnings); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

// serviceFields lists the keys of compose-go's own type.
func serviceFields(t reflect.Type) []string {
	var list []string
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case field.Anonymous && options == "inline":
			list = append(list, serviceFields(field.Type)...)
		case name != "" && name[0] != '#' && name != "-":
			list = append(list, name)
		}
	}
	return list
}

// TestWarningsHideValues: no warning shows the value of a variable or of a secret.
func TestWarningsHideValues(t *testing.T) {
	file := web("environment: {PASSWORD: canary-1, TOKEN: }", "ports: ['127.0.0.1:80:80']", "build: {args: {A: canary-2}}") +
		"secrets: {x: {environment: SECRET}, y: {external: true, file: canary-3}}"
	result, err := loadText(t, file, "SECRET=canary-4", "TOKEN=canary-5")
	if err != nil {
		t.Fatal(err)
	}
	said, err := json.Marshal(result.Warnings)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Warnings) != 3 || strings.Contains(string(said), "canary") {
		t.Errorf("warnings: %s", said)
	}
}

// TestSilent: compose-go must not write to the standard error of whoever calls.
func TestSilent(t *testing.T) {
	var said bytes.Buffer
	logrus.SetOutput(&said)
	defer logrus.SetOutput(io.Discard)
	file := "version: '3'\n" + web("init: 'yes'", "command: $UNSET") + "secrets: {x: {external: {name: y}}}"
	if _, err := loadText(t, file); err != nil {
		t.Error(err)
	}
	if said.Len() > 0 {
		t.Errorf("said: %s", &said)
	}
}
