package compose

import (
	"fmt"
	"slices"
)

// report gathers what Load has to say besides its result; the same line counts once.
type report struct {
	said []string
	lost []string // keys that have no place in the result
}

// dropped says that a key of the files has no place in the result.
func (r *report) dropped(path string) {
	r.say(path + ": not carried over")
	r.lost = append(r.lost, path)
}

// droppedBecause says why, where the key alone does not.
func (r *report) droppedBecause(path, why string) {
	r.say(fmt.Sprintf("%s: not carried over: %s", path, why))
	r.lost = append(r.lost, fmt.Sprintf("%s (%s)", path, why))
}

// unset says that a variable has no value.
func (r *report) unset(variable string) {
	r.say(fmt.Sprintf("variable %s is not set: an empty string stands in its place", variable))
}

func (r *report) say(line string) { r.said = append(r.said, line) }

// lines are all that there is to say.
func (r *report) lines() []string { return distinct(r.said) }

// notCarried are the keys that have no place in the result.
func (r *report) notCarried() []string { return distinct(r.lost) }

// distinct sorts lines and leaves one of each.
func distinct(lines []string) []string {
	slices.Sort(lines)
	return slices.Compact(lines)
}
