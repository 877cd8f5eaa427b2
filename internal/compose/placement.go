package compose

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"holdfast/api"
)

// What managers take as a constraint: KEY==VALUE or KEY!=VALUE, as in Swarm.
var (
	constraintKey   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.-]*$`)
	constraintValue = regexp.MustCompile(`^[a-zA-Z0-9:\-_\s.*()?+\[\]\\^$|/]+$`)
)

func placement(f *fallible, path string, p types.Placement) *api.Placement {
	if len(p.Constraints)+len(p.Preferences) == 0 && p.MaxReplicas == 0 {
		return nil
	}
	path += ".placement"
	spec := &api.Placement{Constraints: p.Constraints, MaxReplicas: p.MaxReplicas}
	for i, c := range p.Constraints {
		checkConstraint(f, fmt.Sprintf("%s.constraints[%d]", path, i), c)
	}
	for i, preference := range p.Preferences {
		if strings.TrimSpace(preference.Spread) == "" {
			f.fail("%s.preferences[%d].spread: is empty; name what to spread over, such as node.labels.zone", path, i)
		}
		spec.Preferences = append(spec.Preferences, &api.PlacementPreference{
			Preference: &api.PlacementPreference_Spread{
				Spread: &api.SpreadOver{SpreadDescriptor: preference.Spread},
			},
		})
	}
	return spec
}

// checkConstraint takes the operator that comes first.
func checkConstraint(f *fallible, path, constraint string) {
	at := strings.Index(constraint, "==")
	if other := strings.Index(constraint, "!="); at < 0 || other >= 0 && other < at {
		at = other
	}
	if at < 0 {
		f.fail("%s: %q is not KEY==VALUE or KEY!=VALUE", path, constraint)
		return
	}
	key, value := strings.TrimSpace(constraint[:at]), strings.TrimSpace(constraint[at+2:])
	switch {
	case !constraintKey.MatchString(key):
		f.fail("%s: %q: %q is not a key, such as node.labels.zone", path, constraint, key)
	case !constraintValue.MatchString(value):
		f.fail("%s: %q: %q is not a value: letters, digits, spaces and any of :-_.*()?+[]\\^$|/ may stand in it",
			path, constraint, value)
	}
}
