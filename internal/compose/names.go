package compose

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
)

// Labels that stacks live by. They are Docker's, so that its tools know our stacks.
const (
	labelStack = "com.docker.stack.namespace"
	labelImage = "com.docker.stack.image"
)

// naming is what the store lets an object be called.
type naming struct {
	pattern *regexp.Regexp
	max     int
	rule    string
}

var (
	dnsPattern  = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9_-]*[a-zA-Z0-9])?$`)
	filePattern = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9_.-]*[a-zA-Z0-9])?$`)
)

// dnsNaming is for services and networks.
func dnsNaming() naming {
	return naming{pattern: dnsPattern, max: 63, rule: "letters and digits, and - and _ between them"}
}

// fileNaming is for secrets and configs.
func fileNaming() naming {
	return naming{pattern: filePattern, max: 64, rule: "letters and digits, and -, _ and . between them"}
}

func (n naming) check(path, name string) error {
	switch {
	case len(name) > n.max:
		return fmt.Errorf("%s: the name %q has %d characters, more than %d", path, name, len(name), n.max)
	case !n.pattern.MatchString(name):
		return fmt.Errorf("%s: the name %q is not valid: %s may stand in it", path, name, n.rule)
	}
	return nil
}

func checkStackName(stack string) error {
	if stack == "" {
		return fmt.Errorf("the stack needs a name")
	}
	return dnsNaming().check("stack", stack)
}

// names gives objects their full names, and each name once.
type names struct {
	stack string
	taken map[string]string // by kind and lower-cased name: the path of the object that has it
}

func newNames(stack string) names {
	return names{stack: stack, taken: map[string]string{}}
}

// scoped is the full name of an object: its own, or else that of the stack and its key.
func (n names) scoped(key, own string) string {
	if own != "" {
		return own
	}
	return n.stack + "_" + key
}

// claim is scoped for an object that the request creates: the name must be valid and free.
func (n names) claim(kind, key, own string, rules naming) (string, error) {
	path, name := kind+"."+key, n.scoped(key, own)
	if err := rules.check(path, name); err != nil {
		return "", err
	}
	if err := n.take(kind, path, name); err != nil {
		return "", err
	}
	return name, nil
}

// take notes that an object of the files has a name. Names differ by more than case.
func (n names) take(kind, path, name string) error {
	at := kind + "." + strings.ToLower(name)
	if other, ok := n.taken[at]; ok {
		return fmt.Errorf("%s: the name %q is that of %s, too", path, name, other)
	}
	n.taken[at] = path
	return nil
}

// labels are the user's labels and that of the stack.
func (n names) labels(own map[string]string) map[string]string {
	labels := make(map[string]string, len(own)+1)
	maps.Copy(labels, own)
	labels[labelStack] = n.stack
	return labels
}
