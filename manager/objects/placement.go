package objects

import (
	"fmt"
	"strings"

	"holdfast/api"
	"holdfast/internal/errkind"
)

func checkPlacement(path string, p *api.Placement) error {
	if p == nil {
		return nil
	}
	for i, c := range p.Constraints {
		if err := checkConstraint(fmt.Sprintf("%s.constraints[%d]", path, i), c); err != nil {
			return err
		}
	}
	for i, pref := range p.Preferences {
		at := fmt.Sprintf("%s.preferences[%d]", path, i)
		if pref.GetSpread() == nil {
			return errkind.Field(at, "is empty").WithHint("give spread.spread_descriptor")
		}
		if strings.TrimSpace(pref.GetSpread().SpreadDescriptor) == "" {
			return errkind.Field(at+".spread.spread_descriptor", "is empty").
				WithHint("name what to spread over, such as node.labels.zone")
		}
	}
	return nil
}

// checkConstraint checks the form KEY==VALUE or KEY!=VALUE.
func checkConstraint(path, c string) error {
	operator := "=="
	if ne := strings.Index(c, "!="); ne >= 0 && (!strings.Contains(c, operator) || ne < strings.Index(c, operator)) {
		operator = "!="
	}
	key, value, ok := strings.Cut(c, operator)
	if !ok {
		return errkind.Field(path, "%q is not a constraint", c).WithHint("use KEY==VALUE or KEY!=VALUE")
	}
	if key = strings.TrimSpace(key); !isConstraintKey(key) {
		return errkind.Field(path, "%q: the key %q is not valid", c, key).
			WithHint("begin with a letter or _, then use letters, digits, _ - and .")
	}
	if value = strings.TrimSpace(value); !isConstraintValue(value) {
		return errkind.Field(path, "%q: the value %q is not valid", c, value).
			WithHint("use letters, digits, spaces and any of %s", constraintMarks)
	}
	return nil
}

func isConstraintKey(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && c != '_' && (i == 0 || !isDigit(c) && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

// constraintMarks are what a value may have beside letters, digits and spaces.
const constraintMarks = `:-_.*()?+[]\^$|/`

func isConstraintValue(s string) bool {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && strings.IndexByte(" \t\n\f\r"+constraintMarks, s[i]) < 0 {
			return false
		}
	}
	return s != ""
}
