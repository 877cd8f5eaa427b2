package compose

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// loadText loads one file from the standard input, in a folder of its own.
func loadText(t testing.TB, text string, env ...string) (*Result, error) {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "data.txt", "from a file")
	writeFile(t, dir, "vars.env", "FROM_FILE=1\nBOTH=file\n")
	writeFile(t, dir, "my.labels", "from.file=yes\n")
	writeFile(t, dir, "bad.env", "A=1\nPASSWORD canary\n")
	writeFile(t, dir, "quote.env", "PASSWORD='canary\nB=1\n")
	writeFile(t, dir, "brace.env", "PASSWORD=\"canary${\"\n")
	return Load(t.Context(), Options{
		Files: []string{"-"}, Stdin: strings.NewReader(text), Dir: dir, Env: env, Stack: "s",
	})
}

// web is a file with one service and more.
func web(lines ...string) string {
	return "services:\n  web:\n    image: nginx\n    " + strings.Join(lines, "\n    ") + "\n"
}

// compact is a request on one line, its keys sorted.
func compact(t *testing.T, r *Result) string {
	t.Helper()
	var whole struct{ Request any }
	if err := json.Unmarshal(render(t, r), &whole); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(whole.Request)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

const (
	dataVolume = "\nvolumes: {data: {}}\n"
	onFront    = "networks: [front]"
)

// keyTests have what each key of carriedKeys becomes. want is part of the request on one line.
var keyTests = []struct{ key, file, want string }{
	{"services.*.image", web(), `"image":"nginx","labels":{"com.docker.stack.namespace":"s"}`},
	{"services.*.command", web(`command: echo "a b" $$c`), `"args":["echo","a b","$c"]`},
	{"services.*.entrypoint", web(`entrypoint: ["/run", "x y"]`), `"command":["/run","x y"]`},
	{"services.*.environment", web(`environment: {B: 2, A: x=y, C: true, x-d: 1}`), `"env":["A=x=y","B=2","C=true","x-d=1"]`},
	{"services.*.environment", web(`environment: [GIVEN, EMPTY=, MISSING]`), `"env":["EMPTY=","GIVEN=here","MISSING"]`},
	{"services.*.environment", web(`environment: {GIVEN: , NAME: "${GIVEN}-${NOT:-so}"}`), `"env":["GIVEN=here","NAME=here-so"]`},
	{"services.*.env_file", web(`env_file: vars.env`, `environment: {BOTH: key}`), `"env":["BOTH=key","FROM_FILE=1"]`},
	{"services.*.labels", web(`labels: {a: 1, x-b: }`), `"image":"nginx","labels":{"a":"1","com.docker.stack.namespace":"s","x-b":""}`},
	{"services.*.label_file", web(`label_file: my.labels`), `"from.file":"yes"`},
	{"services.*.hostname", web(`hostname: h`), `"hostname":"h"`},
	{"services.*.user", web(`user: "1000:1000"`), `"user":"1000:1000"`},
	{"services.*.working_dir", web(`working_dir: /w`), `"dir":"/w"`},
	{"services.*.stop_signal", web(`stop_signal: SIGUSR1`), `"stopSignal":"SIGUSR1"`},
	{"services.*.stop_grace_period", web(`stop_grace_period: 1m30s`), `"stopGracePeriod":"90s"`},
	{"services.*.tty", web(`tty: true`), `"tty":true`},
	{"services.*.stdin_open", web(`stdin_open: true`), `"openStdin":true`},
	{"services.*.read_only", web(`read_only: true`), `"readOnly":true`},
	{"services.*.init", web(`init: true`), `"init":true`},
	{"services.*.isolation", web(`isolation: hyperv`), `"isolation":"ISOLATION_HYPERV"`},
	{"services.*.sysctls", web(`sysctls: {net.core.somaxconn: 1024}`), `"sysctls":{"net.core.somaxconn":"1024"}`},
	{"services.*.cap_add", web(`cap_add: [sys_admin, NET_ADMIN, CAP_CHOWN]`), `"capabilityAdd":["CAP_CHOWN","CAP_NET_ADMIN","CAP_SYS_ADMIN"]`},
	{"services.*.cap_drop", web(`cap_add: [kill]`, `cap_drop: [kill, chown]`), `"capabilityAdd":["CAP_KILL"],"capabilityDrop":["CAP_CHOWN"]`},
	{"services.*.cap_drop", web(`cap_add: [kill]`, `cap_drop: [all, chown]`), `"capabilityAdd":["CAP_KILL"],"capabilityDrop":["ALL"]`},
	{"services.*.oom_score_adj", web(`oom_score_adj: 5`), `"oomScoreAdj":"5"`},
	{"services.*.dns", web(`dns: 1.1.1.1`), `"dnsConfig":{"nameservers":["1.1.1.1"]}`},
	{"services.*.dns_search", web(`dns_search: [a.org, b.org]`), `"dnsConfig":{"search":["a.org","b.org"]}`},
	{"services.*.dns_opt", web(`dns_opt: ["ndots:2"]`), `"dnsConfig":{"options":["ndots:2"]}`},
	{"services.*.extra_hosts", web(`extra_hosts: ["b:10.0.0.2", "a=::1"]`), `"hosts":["::1 a","10.0.0.2 b"]`},
	{"services.*.extra_hosts", web(`extra_hosts: {a: 10.0.0.1}`), `"hosts":["10.0.0.1 a"]`},
	{"services.*.restart", web(`restart: always`), `"restart":{"condition":"ANY"}`},
	{"services.*.restart", web(`restart: unless-stopped`), `"restart":{"condition":"ANY"}`},
	{"services.*.restart", web(`restart: "on-failure:3"`), `"restart":{"condition":"ON_FAILURE","maxAttempts":"3"}`},
	{"services.*.restart", web(`restart: on-failure`), `"restart":{"condition":"ON_FAILURE"}`},
	{"services.*.network_mode", web(`network_mode: none`), `"image":"nginx","labels":{"com.docker.stack.namespace":"s"}}}}]}`},
	{"services.*.ulimits.*", web(`ulimits: {nproc: 5, nofile: {soft: 1, hard: 2}}`), `"ulimits":[{"hard":"2","name":"nofile","soft":"1"},{"hard":"5","name":"nproc","soft":"5"}]`},
	{"services.*.ulimits.*.soft", web(`ulimits: {nofile: {soft: 1, hard: 2}}`), `"soft":"1"`},
	{"services.*.ulimits.*.hard", web(`ulimits: {nofile: {soft: 1, hard: 2}}`), `"hard":"2"`},
	{"services.*.credential_spec.file", web(`credential_spec: {file: my.json}`), `"privileges":{"credentialSpec":{"file":"my.json"}}`},
	{"services.*.credential_spec.registry", web(`credential_spec: {registry: key}`), `"privileges":{"credentialSpec":{"registry":"key"}}`},
	{
		"services.*.credential_spec.config", web(`credential_spec: {config: c}`) + "configs: {c: {content: x}}",
		`"configs":[{"configName":"s_c","runtime":{}}],"image":"nginx","labels":{"com.docker.stack.namespace":"s"},"privileges":{"credentialSpec":{"config":"s_c"}}`,
	},
	{"services.*.logging.driver", web(`logging: {driver: syslog, options: {tag: a, n: 1}}`), `"logDriver":{"name":"syslog","options":{"n":"1","tag":"a"}}`},
	{"services.*.logging.options", web(`logging: {options: {max-size: 1m}}`), `"logDriver":{"options":{"max-size":"1m"}}`},
	{"services.*.healthcheck.test", web(`healthcheck: {test: curl -f localhost}`), `"healthcheck":{"test":["CMD-SHELL","curl -f localhost"]}`},
	{"services.*.healthcheck.interval", web(`healthcheck: {interval: 1m}`), `"healthcheck":{"interval":"60s"}`},
	{"services.*.healthcheck.timeout", web(`healthcheck: {timeout: 500ms}`), `"healthcheck":{"timeout":"0.500s"}`},
	{"services.*.healthcheck.retries", web(`healthcheck: {retries: 3}`), `"healthcheck":{"retries":3}`},
	{"services.*.healthcheck.start_period", web(`healthcheck: {start_period: 5s}`), `"healthcheck":{"startPeriod":"5s"}`},
	{"services.*.healthcheck.start_interval", web(`healthcheck: {start_interval: 5s}`), `"healthcheck":{"startInterval":"5s"}`},
	{"services.*.healthcheck.disable", web(`healthcheck: {disable: true}`), `"healthcheck":{"test":["NONE"]}`},
	{"services.*.networks.*", web(onFront, ``) + "networks: {front: }", `"networks":[{"aliases":["web"],"target":"s_front"}]`},
	{"services.*.networks.*", web(), `"networks":[{"aliases":["web"],"target":"s_default"}]`},
	{"services.*.networks.*", web(`networks: [default]`), `"networks":[{"aliases":["web"],"target":"s_default"}]`},
	{"services.*.networks.*", web(`networks: [h]`) + "networks: {h: {external: true, name: host}}", `"networks":[{"target":"host"}]`},
	{"services.*.networks.*.aliases", web(`networks: {front: {aliases: [www]}}`) + "networks: {front: }", `"networks":[{"aliases":["www","web"],"target":"s_front"}]`},
	{"services.*.networks.*.use_service_name_alias", web(`networks: {front: {use_service_name_alias: false}}`) + "networks: {front: }", `"networks":[{"target":"s_front"}]`},
	{"services.*.networks.*.driver_opts", web(`networks: {front: {driver_opts: {a: 1}}}`) + "networks: {front: }", `"driverAttachmentOpts":{"a":"1"}`},
	{"services.*.ports.target", web(`ports: [80]`), `"endpoint":{"ports":[{"targetPort":80}]}`},
	{"services.*.ports.target", web(`ports: ["8000-8001:80-81/udp"]`), `"endpoint":{"ports":[{"protocol":"UDP","publishedPort":8000,"targetPort":80},{"protocol":"UDP","publishedPort":8001,"targetPort":81}]}`},
	{"services.*.ports.published", web(`ports: ["443:443", "80:80"]`), `"ports":[{"publishedPort":80,"targetPort":80},{"publishedPort":443,"targetPort":443}]`},
	{"services.*.ports.protocol", web(`ports: [{target: 80, published: "8080", protocol: sctp}]`), `"ports":[{"protocol":"SCTP","publishedPort":8080,"targetPort":80}]`},
	{"services.*.ports.mode", web(`ports: [{target: 80, published: 8080, mode: host}]`), `"ports":[{"publishMode":"HOST","publishedPort":8080,"targetPort":80}]`},
	{"services.*.ports.name", web(`ports: [{target: 80, name: http}]`), `"ports":[{"name":"http","targetPort":80}]`},
	{"services.*.secrets.source", web(`secrets: [x]`) + "secrets: {x: {file: data.txt}}", `"secrets":[{"file":{"gid":"0","mode":292,"name":"x","uid":"0"},"secretName":"s_x"}]`},
	{"services.*.secrets.target", web(`secrets: [{source: x, target: /t}]`) + "secrets: {x: {external: true}}", `"secrets":[{"file":{"gid":"0","mode":292,"name":"/t","uid":"0"},"secretName":"x"}]`},
	{"services.*.secrets.uid", web(`secrets: [{source: x, uid: "1"}]`) + "secrets: {x: {external: true}}", `"uid":"1"`},
	{"services.*.secrets.gid", web(`secrets: [{source: x, gid: "2"}]`) + "secrets: {x: {external: true}}", `"gid":"2"`},
	{"services.*.secrets.mode", web(`secrets: [{source: x, mode: 0440}]`) + "secrets: {x: {external: true}}", `"mode":288`},
	{"services.*.configs.source", web(`configs: [x]`) + "configs: {x: {file: data.txt}}", `"configs":[{"configName":"s_x","file":{"gid":"0","mode":292,"name":"x","uid":"0"}}]`},
	{"services.*.configs.target", web(`configs: [{source: x, target: /t}]`) + "configs: {x: {external: true, name: y}}", `"configs":[{"configName":"y","file":{"gid":"0","mode":292,"name":"/t","uid":"0"}}]`},
	{"services.*.configs.uid", web(`configs: [{source: x, uid: "1"}]`) + "configs: {x: {external: true}}", `"uid":"1"`},
	{"services.*.configs.gid", web(`configs: [{source: x, gid: "2"}]`) + "configs: {x: {external: true}}", `"gid":"2"`},
	{"services.*.configs.mode", web(`configs: [{source: x, mode: "0440"}]`) + "configs: {x: {external: true}}", `"mode":288`},
	{"services.*.volumes.type", web(`volumes: [{type: tmpfs, target: /t}]`), `"mounts":[{"target":"/t","type":"TMPFS"}]`},
	{"services.*.volumes.type", web(`volumes: [{type: npipe, source: 'C:\p', target: 'C:\q'}]`), `"mounts":[{"source":"C:\\p","target":"C:\\q","type":"NPIPE"}]`},
	{"services.*.volumes.type", web(`volumes: [{type: cluster, source: "group:g", target: /t}]`), `"mounts":[{"source":"group:g","target":"/t","type":"CLUSTER"}]`},
	{"services.*.volumes.type", web(`volumes: [{type: cluster, source: data, target: /t}]`) + dataVolume, `"mounts":[{"source":"s_data","target":"/t","type":"CLUSTER"}]`},
	{"services.*.volumes.source", web(`volumes: ["data:/t"]`) + dataVolume, `"mounts":[{"source":"s_data","target":"/t","type":"VOLUME","volumeOptions":{"labels":{"com.docker.stack.namespace":"s"}}}]`},
	{"services.*.volumes.target", web(`volumes: ["/t"]`), `"mounts":[{"target":"/t","type":"VOLUME"}]`},
	{"services.*.volumes.read_only", web(`volumes: ["/a:/b:ro"]`), `"mounts":[{"readonly":true,"source":"/a","target":"/b"}]`},
	{"services.*.volumes.consistency", web(`volumes: [{type: bind, source: /a, target: /b, consistency: cached}]`), `"consistency":"CACHED"`},
	{"services.*.volumes.bind.propagation", web(`volumes: ["/a:/b:rslave"]`), `"bindOptions":{"propagation":"RSLAVE"}`},
	{"services.*.volumes.bind.create_host_path", web(`volumes: [{type: bind, source: /a, target: /b, bind: {create_host_path: true}}]`), `"bindOptions":{"createmountpoint":true}`},
	{"services.*.volumes.bind.recursive", web(`volumes: [{type: bind, source: /a, target: /b, bind: {recursive: disabled}}]`), `"bindOptions":{"nonrecursive":true}`},
	{"services.*.volumes.bind.recursive", web(`volumes: [{type: bind, source: /a, target: /b, bind: {recursive: writable}}]`), `"bindOptions":{"readonlynonrecursive":true}`},
	{"services.*.volumes.bind.recursive", web(`volumes: [{type: bind, source: /a, target: /b, bind: {recursive: readonly}}]`), `"bindOptions":{"readonlyforcerecursive":true}`},
	{"services.*.volumes.volume.nocopy", web(`volumes: [{type: volume, target: /t, volume: {nocopy: true}}]`), `"volumeOptions":{"nocopy":true}`},
	{"services.*.volumes.volume.nocopy", web(`volumes: ["data:/t:nocopy"]`) + dataVolume, `"volumeOptions":{"labels":{"com.docker.stack.namespace":"s"},"nocopy":true}`},
	{"services.*.volumes.volume.subpath", web(`volumes: [{type: volume, source: data, target: /t, volume: {subpath: p}}]`) + dataVolume, `"subpath":"p"`},
	{"services.*.volumes.tmpfs.size", web(`volumes: [{type: tmpfs, target: /t, tmpfs: {size: 1m}}]`), `"tmpfsOptions":{"sizeBytes":"1048576"}`},
	{"services.*.volumes.tmpfs.mode", web(`volumes: [{type: tmpfs, target: /t, tmpfs: {mode: 0755}}]`), `"tmpfsOptions":{"mode":493}`},
	{"services.*.deploy.mode", web(`deploy: {mode: global}`), `"global":{}`},
	{"services.*.deploy.mode", web(`deploy: {mode: global-job}`), `"globalJob":{}`},
	{"services.*.deploy.mode", web(`deploy: {mode: replicated-job, replicas: 3}`), `"replicatedJob":{"maxConcurrent":"3","totalCompletions":"3"}`},
	{"services.*.deploy.replicas", web(`deploy: {replicas: "${N}"}`), `"replicated":{"replicas":"7"}`},
	{"services.*.deploy.replicas", web(`deploy: {replicas: 0}`), `"replicated":{}`},
	{"services.*.deploy.endpoint_mode", web(`deploy: {endpoint_mode: dnsrr}`), `"endpoint":{"mode":"DNSRR"}`},
	{"services.*.deploy.labels", web(`deploy: {labels: [a=b, com.docker.stack.namespace=other]}`), `"annotations":{"labels":{"a":"b","com.docker.stack.image":"nginx","com.docker.stack.namespace":"s"},"name":"s_web"}`},
	{"services.*.deploy.update_config.parallelism", web(`deploy: {update_config: {parallelism: 0}}`), `"update":{}`},
	{"services.*.deploy.update_config.delay", web(`deploy: {update_config: {delay: 10s}}`), `"update":{"delay":"10s","parallelism":"1"}`},
	{"services.*.deploy.update_config.failure_action", web(`deploy: {update_config: {failure_action: continue}}`), `"failureAction":"CONTINUE"`},
	{"services.*.deploy.update_config.monitor", web(`deploy: {update_config: {monitor: 1m}}`), `"monitor":"60s"`},
	{"services.*.deploy.update_config.max_failure_ratio", web(`deploy: {update_config: {max_failure_ratio: 0.25}}`), `"maxFailureRatio":0.25`},
	{"services.*.deploy.update_config.order", web(`deploy: {update_config: {order: start-first}}`), `"order":"START_FIRST"`},
	{"services.*.deploy.rollback_config.parallelism", web(`deploy: {rollback_config: {parallelism: 2}}`), `"rollback":{"parallelism":"2"}`},
	{"services.*.deploy.rollback_config.delay", web(`deploy: {rollback_config: {delay: 10s}}`), `"rollback":{"delay":"10s","parallelism":"1"}`},
	{"services.*.deploy.rollback_config.failure_action", web(`deploy: {rollback_config: {failure_action: continue}}`), `"failureAction":"CONTINUE"`},
	{"services.*.deploy.rollback_config.monitor", web(`deploy: {rollback_config: {monitor: 1m}}`), `"monitor":"60s"`},
	{"services.*.deploy.rollback_config.max_failure_ratio", web(`deploy: {rollback_config: {max_failure_ratio: 1}}`), `"maxFailureRatio":1`},
	{"services.*.deploy.rollback_config.order", web(`deploy: {rollback_config: {order: start-first}}`), `"order":"START_FIRST"`},
	{"services.*.deploy.restart_policy.condition", web(`deploy: {restart_policy: {condition: none}}`), `"restart":{}`},
	{"services.*.deploy.restart_policy.delay", web(`deploy: {restart_policy: {delay: 5s}}`), `"restart":{"condition":"ANY","delay":"5s"}`},
	{"services.*.deploy.restart_policy.max_attempts", web(`deploy: {restart_policy: {max_attempts: 3}}`), `"maxAttempts":"3"`},
	{"services.*.deploy.restart_policy.window", web(`deploy: {restart_policy: {window: 1h}}`), `"window":"3600s"`},
	{"services.*.deploy.placement.constraints", web(`deploy: {placement: {constraints: [node.role == worker]}}`), `"placement":{"constraints":["node.role == worker"]}`},
	{"services.*.deploy.placement.preferences.spread", web(`deploy: {placement: {preferences: [{spread: node.labels.a}]}}`), `"placement":{"preferences":[{"spread":{"spreadDescriptor":"node.labels.a"}}]}`},
	{"services.*.deploy.placement.max_replicas_per_node", web(`deploy: {placement: {max_replicas_per_node: 2}}`), `"placement":{"maxReplicas":"2"}`},
	{"services.*.deploy.resources.limits.cpus", web(`deploy: {resources: {limits: {cpus: 0.35}}}`), `"limits":{"nanoCpus":"350000000"}`},
	{"services.*.deploy.resources.limits.cpus", web(`deploy: {resources: {limits: {cpus: "1.123456789"}}}`), `"limits":{"nanoCpus":"1123456789"}`},
	{"services.*.deploy.resources.limits.memory", web(`deploy: {resources: {limits: {memory: 50M}}}`), `"limits":{"memoryBytes":"52428800"}`},
	{"services.*.deploy.resources.limits.pids", web(`deploy: {resources: {limits: {pids: 9}}}`), `"pidsLimit":"9"`},
	{"services.*.deploy.resources.reservations.cpus", web(`deploy: {resources: {reservations: {cpus: "2"}}}`), `"reservations":{"nanoCpus":"2000000000"}`},
	{"services.*.deploy.resources.reservations.memory", web(`deploy: {resources: {reservations: {memory: 1gb}}}`), `"reservations":{"memoryBytes":"1073741824"}`},
	{"services.*.deploy.resources.reservations.generic_resources.discrete_resource_spec.kind", web(`deploy: {resources: {reservations: {generic_resources: [{discrete_resource_spec: {kind: gpu, value: 2}}]}}}`), `"reservations":{"generic":[{"discreteResourceSpec":{"kind":"gpu","value":"2"}}]}`},
	{"services.*.deploy.resources.reservations.generic_resources.discrete_resource_spec.value", web(`deploy: {resources: {reservations: {generic_resources: [{discrete_resource_spec: {kind: gpu, value: 3}}]}}}`), `"value":"3"`},

	{"networks.*", web(onFront, ``) + "networks: {front: }", `"networks":[{"annotations":{"labels":{"com.docker.stack.namespace":"s"},"name":"s_front"},"driverConfig":{"name":"overlay"}}]`},
	{"networks.*.name", web(onFront, ``) + "networks: {front: {name: own}}", `"labels":{"com.docker.stack.namespace":"s"},"name":"own"}`},
	{"networks.*.external", web(onFront, ``) + "networks: {front: {external: true}}", `{"externalNetworks":["front"],"name":"s","services"`},
	{"networks.*.external", web(onFront, ``) + "networks: {front: {external: {name: old-style}}, unused: {external: true}}", `{"externalNetworks":["old-style","unused"],"name":"s","services"`},
	{"networks.*.driver", web(onFront, ``) + "networks: {front: {driver: macvlan}}", `"driverConfig":{"name":"macvlan"}`},
	{"networks.*.driver_opts", web(onFront, ``) + "networks: {front: {driver_opts: {encrypted: '', x-a: 1}}}", `"driverConfig":{"name":"overlay","options":{"encrypted":"","x-a":"1"}}`},
	{"networks.*.internal", web(onFront, ``) + "networks: {front: {internal: true}}", `"internal":true`},
	{"networks.*.attachable", web() + "networks: {default: {attachable: true}}", `"networks":[{"annotations":{"labels":{"com.docker.stack.namespace":"s"},"name":"s_default"},"attachable":true,`},
	{"networks.*.enable_ipv6", web(onFront, ``) + "networks: {front: {enable_ipv6: true}}", `"ipv6Enabled":true`},
	{"networks.*.labels", web(onFront, ``) + "networks: {front: {labels: {a: b}}}", `"labels":{"a":"b","com.docker.stack.namespace":"s"}`},
	{"networks.*.ipam.driver", web(onFront, ``) + "networks: {front: {ipam: {driver: d}}}", `"ipam":{"driver":{"name":"d"}}`},
	{"networks.*.ipam.options", web(onFront, ``) + "networks: {front: {ipam: {options: {a: b}}}}", `"ipam":{"driver":{"name":"default","options":{"a":"b"}}}`},
	{"networks.*.ipam.config.subnet", web(onFront, ``) + "networks: {front: {ipam: {config: [{subnet: 10.1.0.0/16}]}}}", `"ipam":{"configs":[{"subnet":"10.1.0.0/16"}],"driver":{"name":"default"}}`},
	{"networks.*.ipam.config.ip_range", web(onFront, ``) + "networks: {front: {ipam: {config: [{ip_range: 10.1.1.0/24}]}}}", `"range":"10.1.1.0/24"`},
	{"networks.*.ipam.config.gateway", web(onFront, ``) + "networks: {front: {ipam: {config: [{gateway: 10.1.0.1}]}}}", `"gateway":"10.1.0.1"`},
	{"networks.*.ipam.config.aux_addresses", web(onFront, ``) + "networks: {front: {ipam: {config: [{aux_addresses: {h: 10.1.0.9}}]}}}", `"reserved":{"h":"10.1.0.9"}`},

	{"volumes.*", web(`volumes: ["data:/t"]`) + "volumes: {data: }", `"source":"s_data"`},
	{"volumes.*.name", web(`volumes: ["data:/t"]`) + "volumes: {data: {name: own}}", `"source":"own","target":"/t","type":"VOLUME","volumeOptions":{"labels":{"com.docker.stack.namespace":"s"}}`},
	{"volumes.*.external", web(`volumes: ["data:/t"]`) + "volumes: {data: {external: true}}", `"mounts":[{"source":"data","target":"/t","type":"VOLUME","volumeOptions":{}}]`},
	{"volumes.*.driver", web(`volumes: ["data:/t"]`) + "volumes: {data: {driver: d}}", `"driverConfig":{"name":"d"}`},
	{"volumes.*.driver_opts", web(`volumes: ["data:/t"]`) + "volumes: {data: {driver_opts: {type: nfs, n: 1}}}", `"driverConfig":{"options":{"n":"1","type":"nfs"}}`},
	{"volumes.*.labels", web(`volumes: ["data:/t"]`) + "volumes: {data: {labels: [a=b]}}", `"volumeOptions":{"labels":{"a":"b","com.docker.stack.namespace":"s"}}`},

	{"secrets.*.name", web() + "secrets: {x: {file: data.txt, name: own.name}}", `"name":"own.name"`},
	{"secrets.*.external", web() + "secrets: {x: {external: true, name: y}, z: {external: true}}", `{"externalSecrets":["y","z"],`},
	{"secrets.*.file", web() + "secrets: {x: {file: ./data.txt}}", `"secrets":[{"annotations":{"labels":{"com.docker.stack.namespace":"s"},"name":"s_x"},"data":"ZnJvbSBhIGZpbGU="}]`},
	{"secrets.*.environment", web() + "secrets: {x: {environment: GIVEN}}", `"data":"aGVyZQ=="`},
	{"secrets.*.x-#value", web() + "secrets: {x: {environment: GIVEN}}", `"data":"aGVyZQ=="`},
	{"secrets.*.labels", web() + "secrets: {x: {file: data.txt, labels: {a: b}}}", `"labels":{"a":"b","com.docker.stack.namespace":"s"}`},
	{"secrets.*.driver", web() + "secrets: {x: {driver: vault}}", `"secrets":[{"annotations":{"labels":{"com.docker.stack.namespace":"s"},"name":"s_x"},"driver":{"name":"vault"}}]`},
	{"secrets.*.driver_opts", web() + "secrets: {x: {driver: vault, driver_opts: {a: 1}}}", `"driver":{"name":"vault","options":{"a":"1"}}`},
	{"secrets.*.template_driver", web() + "secrets: {x: {file: data.txt, template_driver: golang}}", `"templating":{"name":"golang"}`},
	{"configs.*.name", web() + "configs: {x: {file: data.txt, name: own}}", `"configs":[{"annotations":{"labels":{"com.docker.stack.namespace":"s"},"name":"own"},"data":"ZnJvbSBhIGZpbGU="}]`},
	{"configs.*.external", web() + "configs: {x: {external: true}}", `{"externalConfigs":["x"],`},
	{"configs.*.file", web() + "configs: {x: {file: data.txt}}", `"data":"ZnJvbSBhIGZpbGU="`},
	{"configs.*.environment", web() + "configs: {x: {environment: GIVEN}}", `"data":"aGVyZQ=="`},
	{"configs.*.content", web() + "configs: {x: {content: '${GIVEN}'}}", `"data":"aGVyZQ=="`},
	{"configs.*.labels", web() + "configs: {x: {content: a, labels: {a: b}}}", `"labels":{"a":"b","com.docker.stack.namespace":"s"}`},
	{"configs.*.template_driver", web() + "configs: {x: {content: a, template_driver: golang}}", `"templating":{"name":"golang"}`},
}

func TestKeys(t *testing.T) {
	for _, test := range keyTests {
		t.Run(test.key, func(t *testing.T) {
			result, err := loadText(t, test.file, "GIVEN=here", "N=7")
			if err != nil {
				t.Fatal(err)
			}
			if got := compact(t, result); !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			for _, w := range result.Warnings {
				if !strings.Contains(w, "MISSING") {
					t.Errorf("a key that is carried over gives a warning: %s", w)
				}
			}
		})
	}
}

// TestKeysComplete: a key that carriedKeys lets pass and nothing converts would be lost without
// a word, so each has a test.
func TestKeysComplete(t *testing.T) {
	tested := map[string]bool{}
	for _, test := range keyTests {
		tested[test.key] = true
	}
	var missing []string
	var walk func(k keys, path string)
	walk = func(k keys, path string) {
		for _, key := range sortedKeys(k) {
			at := strings.TrimPrefix(path+"."+key, ".")
			if k[key] != nil {
				walk(k[key], at)
			} else if !tested[at] {
				missing = append(missing, at)
			}
		}
	}
	walk(carriedKeys(), "")
	if diff := cmp.Diff([]string(nil), missing); diff != "" {
		t.Errorf("keys without a test (+):\n%s", diff)
	}
}
