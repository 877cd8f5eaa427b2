package stacks_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"holdfast/test/testcluster"
)

// TestRules looks at what stacks owe each other, and at what a deployment may not do. Each
// part leaves nothing behind.
func TestRules(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, 3)
	for _, part := range []struct {
		name string
		test func(*session)
	}{
		{"two stacks in one network", testTwoStacks},
		{"own network, used outside", testOwnNetworkInUse},
		{"all or nothing", testAllOrNothing},
		{"what does not change", testUnchangeable},
		{"names that others have", testTakenNames},
		{"through each manager", testEachManager},
		{"what is no Compose file", testBadFiles},
		{"keys that are not carried", testDroppedKeys},
		{"ports that change hands", testPortsChangeHands},
		{"what was changed by hand", testChangedByHand},
		{"two deployments at a time", testAtOnce},
	} {
		t.Run(part.name, func(t *testing.T) {
			s := newSession(t, c)
			part.test(s)
			s.nothingLeft()
		})
	}
}

// deploy deploys a file with a content, and expects an exit code.
func (s *session) deploy(code int, stack, content string) testcluster.Result {
	s.t.Helper()
	return s.run(code, "stack", "deploy", "-c", s.write(stack+".yml", content), stack)
}

// refused deploys a file, and expects an exit code, an error that says some parts, and that
// nothing comes of it.
func (s *session) refused(code int, stack, content string, parts ...string) {
	s.t.Helper()
	s.unmoved("a deployment that is refused", func() {
		s.t.Helper()
		s.says(s.deploy(code, stack, content).Err, append(parts, "error: ")...)
	})
}

func testTwoStacks(s *session) {
	const file = `
services:
  web: {image: 'web:1', networks: [front, own]}
networks:
  front: {external: true, name: shared}
  own:
`
	s.run(0, "network", "create", "--driver", "overlay", "shared")
	shared := s.objects()
	s.deploy(0, "blue", file)
	blue := of("blue", s.objects())
	s.deploy(0, "green", file)
	all := s.objects()
	s.same("the other stack", blue, of("blue", all))
	s.same("the stacks", shared, of("", all))
	if n := len(of("green", all)); n != 2 || n != len(blue) {
		s.t.Errorf("the stacks have %d and %d objects, want 2", len(blue), n)
	}
	for _, name := range []string{"blue", "green"} {
		if ls := s.run(0, "stack", "ls").Out; !regexp.MustCompile(`(?m)^` + name + ` .* 1 +1 +0 +0`).MatchString(ls) {
			s.t.Errorf("%s is not listed: %s", name, ls)
		}
	}

	s.unmoved("the removal of a network in use", func() {
		s.says(s.run(6, "network", "rm", "shared").Err, "network shared", "in use", "blue_web", "green_web")
	})
	s.run(0, "stack", "rm", "blue")
	s.same("the other stack's removal", of("green", all), of("green", s.objects()))
	s.same("the other stack's removal", shared, of("", s.objects()))
	r := s.run(6, "network", "rm", "shared")
	s.says(r.Err, "green_web")
	if strings.Contains(r.Err, "blue_web") {
		s.t.Errorf("a service that is gone uses the network: %s", r.Err)
	}
	s.run(0, "stack", "rm", "green")
	s.run(0, "network", "rm", "shared")
}

func testOwnNetworkInUse(s *session) {
	s.deploy(0, "app", "services: {web: {image: 'web:1', networks: [own]}}\nnetworks: {own: {}}")
	s.run(0, "service", "create", "--name", "guest", "--network", "app_own", "guest:1")
	s.unmoved("the removal of a stack in use", func() {
		s.says(s.run(6, "stack", "rm", "app").Err, "network app_own", "in use", "guest")
	})
	s.refused(6, "app", "services: {web: {image: 'web:2', networks: [other]}}\nnetworks: {other: {}}",
		"network app_own", "in use", "guest")
	s.run(0, "service", "rm", "guest")

	s.deploy(0, "other", "services: {web: {image: 'web:1', networks: [n]}}\nnetworks: {n: {external: true, name: app_own}}")
	s.says(s.run(6, "stack", "rm", "app").Err, "network app_own", "in use", "other_web")
	s.run(0, "stack", "rm", "other", "app") // in this order it goes
}

func testAllOrNothing(s *session) {
	const file = `
services:
  a: {image: 'a:%[1]d', networks: [one], configs: [conf%[1]d], secrets: [key%[1]d]}
  b: {image: 'b:%[1]d', networks: [two%[1]d], deploy: {replicas: %[1]d}}
  z: {image: 'z:%[1]d', networks: [one]%[2]s}
networks: {one: {}, two%[1]d: {}}
configs: {conf%[1]d: {content: 'version %[1]d'}}
secrets: {key%[1]d: {file: key}}
`
	const (
		takenPort = `, ports: ['8080:80']`
		tooLittle = `, deploy: {resources: {limits: {memory: 1m}}}`
	)
	s.write("key", "a key")
	s.run(0, "service", "create", "--name", "outside", "--publish", "8080:80", "outside:1")
	s.refused(6, "app", fmt.Sprintf(file, 1, takenPort), "service app_z", "8080", "outside")
	s.refused(1, "app", fmt.Sprintf(file, 1, tooLittle), "service app_z", "memory")
	if n := len(s.objects()); n != 1 {
		s.t.Fatalf("there are %d objects, want the one service outside", n)
	}
	s.deploy(0, "app", fmt.Sprintf(file, 1, ""))
	s.refused(6, "app", fmt.Sprintf(file, 2, takenPort), "service app_z", "8080", "outside")
	s.refused(1, "app", fmt.Sprintf(file, 2, tooLittle), "service app_z", "memory")

	before := s.objects()
	s.deploy(0, "app", fmt.Sprintf(file, 2, ""))
	after := s.objects()
	for _, name := range []string{"a", "b", "z"} {
		s.updated(before, after, "service app_"+name)
	}
	for _, name := range []string{"network app_two", "config app_conf", "secret app_key"} {
		// What the first release names is kept for it.
		kept := name != "network app_two"
		if _, left := after[name+"1"]; left != kept || after[name+"2"].ID == "" {
			s.t.Errorf("%s1 has not made room for %[1]s2: %v", name, after)
		}
	}
	s.same("the next version", only("network app_one", before), only("network app_one", after))
	s.run(0, "stack", "rm", "app")
	s.run(0, "service", "rm", "outside")
}

func testUnchangeable(s *session) {
	const file = `
services:
  web:
    image: web:1
    networks: [net]
    configs: [conf]
    secrets: [key]
    deploy: {mode: %[1]s}
networks: {net: {driver: %[2]s, internal: %[3]s, labels: {tier: '%[4]s'}}}
configs: {conf: {content: '%[5]s', labels: {of: '%[6]s'}}}
secrets: {key: {file: key, labels: {of: '%[7]s'}}}
`
	good := []any{"replicated", "overlay", "false", "one", "content", "me", "me"}
	with := func(i int, value string) string {
		values := append([]any{}, good...)
		values[i] = value
		return fmt.Sprintf(file, values...)
	}
	s.write("key", "a key")
	s.deploy(0, "app", with(0, "replicated"))
	s.refused(1, "app", with(0, "global"), "service app_web", "mode", "replicated, not global", "hint: ")
	s.refused(1, "app", with(1, "bridge"), "network app_net", `driver_config.name is "overlay", wanted "bridge"`, "hint: ")
	s.refused(1, "app", with(2, "true"), "network app_net", "internal is false, wanted true", "hint: ")
	s.refused(1, "app", with(3, "two"), "network app_net", `annotations.labels["tier"] is "one", wanted "two"`, "hint: ")

	// Other data is another object, which the service is updated to.
	before := s.objects()
	out := s.deploy(0, "app", with(4, "other")).Out
	s.says(out, "config app_conf-", " created  ", "service app_web updated  ")
	after := s.objects()
	s.updated(before, after, "service app_web")
	if a, b := before["config app_conf"], after["config app_conf"]; a.ID == b.ID || after["config "+a.Name].ID != a.ID {
		s.t.Errorf("the config was %v, is %v", a, b)
	}
	s.write("key", "another key")
	s.says(s.deploy(0, "app", with(4, "other")).Out, "secret app_key-", " created  ", "service app_web updated  ")
	s.write("key", "a key")
	if out := s.deploy(0, "app", with(0, "replicated")).Out; strings.Contains(out, "created") {
		s.t.Errorf("what was there before was made again: %s", out)
	}
	s.run(0, "stack", "rm", "app")
	s.deploy(0, "app", with(0, "replicated"))

	before = s.objects()
	s.says(s.deploy(0, "app", with(5, "you")).Out, "config app_conf-", " updated  ")
	s.updated(before, s.objects(), "config app_conf")
	s.same("new labels of a config", only("service", before), only("service", s.objects()))
	before = s.objects()
	s.says(s.deploy(0, "app", with(6, "you")).Out, "secret app_key-", " updated  ")
	s.updated(before, s.objects(), "secret app_key")
	s.run(0, "stack", "rm", "app")
}

func testTakenNames(s *session) {
	const file = "services: {web: {image: 'web:1', networks: [net]}}\nnetworks: {net: {name: Common}}"
	s.deploy(0, "first", file)
	s.refused(6, "second", file, "network Common", "taken", "stack first")
	s.run(0, "service", "create", "--name", "APP_web", "guest:1")
	s.refused(6, "app", "services: {web: {image: 'web:1'}}", "service APP_web", "taken", "no stack")
	s.run(0, "service", "rm", "app_WEB")
	s.run(0, "stack", "rm", "first")
}

// testEachManager deploys from the standard input through each manager in turn: only one of
// them leads.
func testEachManager(s *session) {
	for i, m := range s.cluster.Members {
		s.socket = m.Endpoint()
		file := fmt.Sprintf("services: {web: {image: 'web:%d'}}\n", i)
		want := "service app_web updated  "
		if i == 0 {
			want = "service app_web created  "
		}
		s.says(s.input(0, file, "stack", "deploy", "-c", "-", "app").Out, want)
		s.unmoved("the same file on the standard input", func() {
			s.says(s.input(0, file, "stack", "deploy", "-c", "-", "app").Err, "nothing to change\n")
		})
		for _, other := range s.cluster.Members {
			s.socket = other.Endpoint()
			s.says(s.run(0, "stack", "services", "app").Out, fmt.Sprintf("web:%d", i))
		}
	}
	more := s.write("more.yml", "services: {web: {deploy: {replicas: 4}}}")
	s.input(0, "services: {web: {image: 'web:9'}}", "stack", "deploy", "-c", "-", "-c", more, "app")
	s.says(s.run(0, "stack", "services", "app").Out, "0/4        web:9")
	s.run(0, "stack", "rm", "app")
}

func testBadFiles(s *session) {
	s.refused(1, "app", "services: {web: {image: 'web:1', ports: ['99999:80']}}", "services.web.ports[0]", "99999")
	s.refused(1, "app", "services: {web: {imag: 'web:1'}}", "services.web", "imag")
	s.refused(1, "app", "services: {web: {image: 'web:1', secrets: [gone]}}", "services.web", "gone")
	s.refused(1, "app", "services: {web: {image: 'web:1', configs: [c]}}\nconfigs: {c: {file: gone.conf}}",
		"configs.c.file", "gone.conf")
	s.refused(1, "app", "services: {web: {image: 'web:1', dns: [nobody]}}", "services.web.dns[0]", "nobody")
	s.refused(1, "app.1", "services: {web: {image: 'web:1'}}", "app.1")
	s.refused(1, "app", "networks: {own: {}}", "services: is empty", "hint: to remove the stack: ctl stack rm app")
	s.run(2, "stack", "deploy", "app")
	s.run(2, "stack", "deploy", "-c", s.write("ok.yml", "services: {web: {image: 'web:1'}}"))
}

func testDroppedKeys(s *session) {
	r := s.deploy(0, "app", `
version: "3.9"
x-note: kept to oneself
services:
  web:
    image: web${NO_SUCH_VARIABLE}
    build: .
    container_name: web
    depends_on: [db]
    ports: ['127.0.0.1:8080:80']
  db: {image: 'db:1', privileged: true, tmpfs: /tmp}
networks: {idle: {}}
`)
	s.says(r.Err,
		"warning: variable NO_SUCH_VARIABLE is not set",
		"warning: services.web.build: not carried over",
		"warning: services.web.container_name: not carried over",
		"warning: services.web.depends_on: not carried over",
		"warning: services.web.ports[0].host_ip: not carried over",
		"warning: services.db.privileged: not carried over",
		"warning: services.db.tmpfs: not carried over",
		"warning: networks.idle: not carried over",
	)
	if n := strings.Count(r.Err, "\n"); n != 8 {
		s.t.Errorf("%d lines of warnings, want 8:\n%s", n, r.Err)
	}
	s.run(0, "stack", "rm", "app")
}

// testPortsChangeHands gives a port of one service to another, in one deployment.
func testPortsChangeHands(s *session) {
	const file = `
services:
  a: {image: 'a:1', ports: ['%d:80']}
  b: {image: 'b:1', ports: ['%d:80']}
`
	s.deploy(0, "app", fmt.Sprintf(file, 8001, 8002))
	s.deploy(0, "app", fmt.Sprintf(file, 8002, 8003))
	s.says(s.run(0, "stack", "services", "app").Out, "*:8002->80/tcp", "*:8003->80/tcp")
	s.deploy(0, "app", "services: {c: {image: 'c:1', ports: ['8002:80']}}")
	s.says(s.run(0, "stack", "services", "app").Out, "app_c", "*:8002->80/tcp")
	s.run(0, "stack", "rm", "app")
}

// testChangedByHand changes a stack's objects behind its back: the next deployment makes them
// again what the file says.
func testChangedByHand(s *session) {
	const file = `
services:
  a: {image: 'a:1', deploy: {replicas: 2}}
  b: {image: 'b:1'}
`
	s.deploy(0, "app", file)
	before := s.objects()
	s.run(0, "service", "scale", "app_a=7")
	s.run(0, "service", "rm", "app_b")
	out := s.deploy(0, "app", file).Out
	s.says(out, "service app_a updated  ", "service app_b created  ")
	if strings.Contains(out, "network") {
		s.t.Errorf("the network was changed, too: %s", out)
	}
	s.updated(before, s.objects(), "service app_a")
	s.says(s.run(0, "stack", "services", "app").Out, "0/2        a:1")

	s.run(0, "service", "update", "--force", "app_b")
	s.unmoved("a deployment after a forced update", func() { s.deploy(0, "app", file) })
	s.run(0, "stack", "rm", "app")
}
