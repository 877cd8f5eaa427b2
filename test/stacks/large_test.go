package stacks_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"holdfast/test/testcluster"
)

const (
	largeConfigs = 12
	largeConfig  = 500 << 10 // bytes of each, so that they have 6 MB together
)

// large is a stack whose configs are too large for one request.
type large struct {
	*session
	content [largeConfigs][]byte // of the configs' files
	file    string
}

// newLarge makes the files of the stack. Their data is all different, and cannot be compressed.
func newLarge(s *session) *large {
	s.t.Helper()
	l := &large{session: s}
	random := rand.NewChaCha8([32]byte{1})
	var names []string
	var configs strings.Builder
	for i := range l.content {
		l.content[i] = make([]byte, largeConfig)
		random.Read(l.content[i]) //nolint:errcheck // it never fails
		name := largeName(i)
		s.write(name, string(l.content[i]))
		names = append(names, name)
		fmt.Fprintf(&configs, "  %s: {file: %[1]s}\n", name)
	}
	l.file = s.write("large.yml", fmt.Sprintf("services: {web: {image: 'web:1', configs: [%s]}}\nconfigs:\n%s",
		strings.Join(names, ", "), &configs))
	return l
}

// largeName is the name of a config, and of its file.
func largeName(i int) string { return fmt.Sprintf("c%02d", i) }

// change changes a byte of one config.
func (l *large) change() {
	l.t.Helper()
	const i = 7
	l.content[i] = slices.Clone(l.content[i])
	l.content[i][largeConfig/2]++
	l.write(largeName(i), string(l.content[i]))
}

// serves checks each byte that the service is given, and how many configs there are for that.
func (l *large) serves(want [largeConfigs][]byte, configs int) {
	l.t.Helper()
	given := l.container("large_web").Configs
	if len(given) != len(want) {
		l.t.Fatalf("the service is given %d configs, want %d", len(given), len(want))
	}
	for i, r := range given {
		if name := largeName(i); r.GetFile().GetName() != name || !bytes.Equal(l.data(r), want[i]) {
			l.t.Errorf("%s is not what its file was, or not at its place: it is %v", name, r)
		}
	}
	if n := len(only("config", l.objects())); n != configs {
		l.t.Errorf("there are %d configs, want %d", n, configs)
	}
}

// TestLargeRelease takes a stack of 6 MB through its releases, and kills the leader in the middle
// of each. ctl stores the configs in two parts before it deploys them.
func TestLargeRelease(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, 3)
	l := newLarge(newSession(t, c))
	deploy := []string{"stack", "deploy", "-c", l.file, "large"}
	first := l.content
	struck := func(b blow, args ...string) (out string) {
		t.Helper()
		lead := l.struck(b, func() { out = l.run(0, args...).Out })
		lead.Start()
		c.Same()
		return out
	}

	secondPart := blow{after: testcluster.Bound / 4, grown: 2, passedOn: true}
	l.says(struck(secondPart, deploy...), "service large_web created  ", "\nrelease 1\n")
	l.serves(first, largeConfigs)
	l.unmoved("the same files again", func() {
		r := l.run(0, deploy...)
		l.says(r.Err, "nothing to change\n")
		l.says(r.Out, "release 1\n")
	})

	l.change()
	l.says(struck(writeMidway(), deploy...), "service large_web updated  ", "\nrelease 2\n")
	l.serves(l.content, largeConfigs+1) // release 1 names the one from before
	l.says(l.run(1, "stack", "diff", "large", "--from", "1").Out, "config large_c07 ", "service large_web ")

	l.says(struck(writeAnswerLost(), "stack", "rollback", "--expect-revision", "2", "large"), "service large_web updated  ", "\nrelease 3\n")
	l.serves(first, largeConfigs+1)
	l.wantHistory("large", "1 superseded, 2 superseded, 3 deployed of 1")
	// What was stored for a release counts as created by it, beside the service and its network.
	history := l.run(0, "stack", "history", "large").Out
	l.says(history, fmt.Sprintf("  %d created\n", largeConfigs+2), "  1 created, 1 updated\n", "  1 updated (rollback to 1)\n")

	struck(writeInFlight(), "stack", "rm", "large")
	l.nothingLeft()
}
