package stacks_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/testinput"
	"holdfast/test/testcluster"
)

// TestLifecycle takes applications as their authors published them from their first deployment
// to their removal, on one cluster, and kills its leader in the middle of each step. Nobody does
// anything about that: ctl goes on through the other managers, and what it was asked for is done
// once. Whatever moment a kill hits, the outcome is the same.
//
// In the short form there is a kill in each step of two applications, and not always the same two.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	inputs := testinput.Path(t, "inputs")
	usesAll(t, inputs)
	c := testcluster.New(t, 3)
	deadline := time.Now().Add(testcluster.Soak(t))
	for round := 0; round == 0 || time.Now().Before(deadline); round++ {
		for n, app := range applications() {
			passed := t.Run(fmt.Sprint(app.name, " ", round), func(t *testing.T) {
				l := newLife(newSession(t, c), app)
				steps := l.steps()
				if round > 0 {
					for i := range steps {
						steps[i].blow = anyBlow()
					}
				}
				l.live(t, steps, func(i int) bool { return !testing.Short() || (i+n)%3 == 0 })
			})
			if !passed {
				return // the next one needs an empty cluster
			}
		}
	}
}

// live takes the steps, of which some are harmed, and removes what was there before them.
func (l *life) live(t *testing.T, steps []step, harmed func(i int) bool) {
	for i, st := range steps {
		if !t.Run(st.name, func(t *testing.T) { l.take(t, st, harmed(i)) }) {
			t.FailNow() // the next step begins where this one ends
		}
	}
	l.removeExternal(l.app)
	l.nothingLeft()
}

// usesAll fails unless the Compose files of a folder are those of the applications.
func usesAll(t *testing.T, folder string) {
	t.Helper()
	var there, used []string
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, _ fs.DirEntry, err error) error {
		if ext := path.Ext(name); ext == ".yml" || ext == ".yaml" {
			there = append(there, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, app := range applications() {
		used = append(append(used, app.files...), app.later...)
	}
	slices.Sort(used)
	slices.Sort(there)
	if diff := cmp.Diff(there, used); diff != "" {
		t.Fatalf("not all files are those of an application (-there +used)\n%s", diff)
	}
}

// The ways in which the leader is killed.
//
// In flight, it has taken up what it was asked for and cannot finish: no read was answered, and
// the next leader may find a write in its log, or not. Where the answer is lost, it does.
// Midway, a follower was asked, which passes writes on to the leader, and nobody stands still.
func writeInFlight() blow   { return blow{after: time.Second, grown: 1, pause: true} }
func writeAnswerLost() blow { return blow{after: time.Second, grown: 1, pause: true, late: true} }
func writeMidway() blow     { return blow{after: time.Second, grown: 1, passedOn: true} }
func readInFlight() blow    { return blow{after: 300 * time.Millisecond, pause: true} }
func readMidway() blow      { return blow{after: 50 * time.Millisecond, passedOn: true} }

// anyBlow is a kill at any moment, in any way: for a soak, where it differs in each round.
func anyBlow() blow {
	pause := rand.N(2) == 0
	return blow{
		after: rand.N(300 * time.Millisecond), pause: pause, late: pause && rand.N(2) == 0, passedOn: rand.N(2) == 0,
	}
}

// step is one call of ctl in the life of a stack.
type step struct {
	name string // also the message of the release, if it makes one
	blow blow
	code int                  // of ctl's exit
	call func(*life) []string // what ctl is called with
	// check looks at what came of it, when the leader is there again.
	check func(*life, deed)
}

// deed is what a step did.
type deed struct {
	before, after map[string]object
	out           string
	done          map[string]string // "created", "updated", "removed", by the IDs of the stack's objects
	message       string
}

// steps are the life of a stack.
func (l *life) steps() []step {
	all := []step{{"deploy", writeInFlight(), 0, (*life).deployFiles, (*life).begins}}
	for i, file := range l.app.later {
		one := step{"deploy with " + file, writeMidway(), 0, l.adding(file), (*life).isRelease}
		if i%2 == 1 {
			one.blow = writeInFlight()
		}
		all = append(all, one)
	}
	return append(
		all,
		step{"compare changed files", readMidway(), 1, (*life).diffFiles, (*life).foretells},
		step{"deploy changed files", writeMidway(), 0, (*life).deployFiles, (*life).isChanged},
		step{"compare releases", readInFlight(), 1, (*life).diffReleases, (*life).tellsChange},
		step{"roll back", writeAnswerLost(), 0, (*life).rollback, (*life).isRollback},
		step{"list releases", readInFlight(), 0, (*life).listReleases, (*life).tellsReleases},
		step{"print a release", readMidway(), 0, (*life).printRelease, (*life).canBeDeployed},
		step{"list stacks", readInFlight(), 0, (*life).listStacks, (*life).tellsStack},
		step{"change by hand", writeMidway(), 0, (*life).scale, (*life).isScaled},
		step{"find the drift", readInFlight(), 1, (*life).diffLive, (*life).tellsDrift},
		step{"put it right", writeInFlight(), 0, (*life).deployFiles, (*life).isRight},
		step{"deploy less, and keep the rest", writeAnswerLost(), 0, (*life).deployLess, (*life).keepsRest},
		step{"remove, and keep the history", writeMidway(), 0, (*life).removeOnly, (*life).isUninstalled},
		step{"bring it back", writeAnswerLost(), 0, (*life).bringBack, (*life).isRollback},
		step{"deploy less, and prune", writeInFlight(), 0, (*life).prune, (*life).isPruned},
		step{"remove", writeAnswerLost(), 0, (*life).remove, (*life).isGone},
	)
}

// take takes a step, and looks at what every step owes: that all managers have the same, that ctl
// told all that was done and nothing else, and that nothing outside the stack was touched.
func (l *life) take(t *testing.T, st step, harmed bool) {
	defer func(whole testing.TB) { l.t = whole }(l.t)
	l.t = t
	d := deed{before: l.objects(), message: st.name}
	args := append(st.call(l), "--message", st.name)
	call := func() { d.out = l.run(st.code, args...).Out }
	if harmed {
		if st.blow.pause {
			args = append(args, l.expecting(args[1])...)
		}
		t.Log("the leader is killed", st.blow)
		l.struck(st.blow, call).Start()
	} else {
		call()
	}
	l.cluster.Same()
	d.after = l.objects()
	d.done = done(of(appStack, d.before), of(appStack, d.after))
	st.check(l, d)
	l.same("the step", of("", d.before), of("", d.after))
	l.wantReleases()
}

// expecting gives the flag that tells ctl which release is deployed. It would ask before it sends
// what is to be killed, and get no answer while the others stand still.
func (l *life) expecting(verb string) []string {
	if verb != "deploy" && verb != "rollback" {
		return nil
	}
	deployed := uint64(0)
	for _, r := range l.releases {
		if r.Status == "deployed" {
			deployed = r.Number
		}
	}
	return []string{"--expect-revision", fmt.Sprint(deployed)}
}

// done tells what was done to objects, by their IDs.
func done(before, after map[string]object) map[string]string {
	did, was := map[string]string{}, map[string]object{}
	for _, o := range before {
		was[o.ID] = o
		did[o.ID] = "removed"
	}
	for _, o := range after {
		switch old, ok := was[o.ID]; {
		case !ok:
			did[o.ID] = "created"
		case old == o:
			delete(did, o.ID)
		default:
			did[o.ID] = "updated"
		}
	}
	return did
}

// said reads what ctl said that it did, as done has it.
func said(out string) map[string]string {
	did := map[string]string{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 4 { // kind, name, what was done, ID
			did[f[3]] = f[2]
		}
	}
	return did
}
