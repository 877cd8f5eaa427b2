package compose

import (
	"fmt"
	"maps"
	"slices"
)

// report gathers what Load has to say besides its result; the same line counts once.
type report struct {
	said map[string]struct{}
}

// dropped says that a key of the files has no place in the result.
func (r *report) dropped(path string) {
	r.say(path + ": not carried over")
}

// droppedBecause says why, where the key alone does not.
func (r *report) droppedBecause(path, why string) {
	r.say(fmt.Sprintf("%s: not carried over: %s", path, why))
}

// unset says that a variable has no value.
func (r *report) unset(variable string) {
	r.say(fmt.Sprintf("variable %s is not set: an empty string stands in its place", variable))
}

func (r *report) say(line string) {
	if r.said == nil {
		r.said = map[string]struct{}{}
	}
	r.said[line] = struct{}{}
}

func (r *report) lines() []string {
	return slices.Sorted(maps.Keys(r.said))
}
