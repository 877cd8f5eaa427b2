package kinds

import (
	"errors"
	"strconv"
	"strings"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/internal/selector"
	"holdfast/manager/state"
)

// Fields that some kinds have, beside those that all have.
const (
	fieldService      = ".service"
	fieldNode         = ".node"
	fieldSlot         = ".slot"
	fieldState        = ".state"
	fieldDesiredState = ".desired-state"
	fieldRole         = ".role"
	fieldMembership   = ".membership"
	fieldAvailability = ".availability"
)

// where reads the text of a selector for this kind; nil keeps all.
func (t table[T]) where(text string) (keep func(T) bool, err error) {
	s, err := selector.Parse(text)
	if err != nil || s.Empty() {
		return nil, inWhere(err)
	}
	blank := t.Blank("")
	known := func(field string) bool {
		_, ok := fieldOf(blank, field)
		return ok
	}
	if err := s.Check(known); err != nil {
		return nil, inWhere(err)
	}
	return func(o T) bool {
		return s.Matches(labelsOf(o), func(field string) []string {
			switch field {
			case selector.FieldID:
				return []string{o.GetID()}
			case selector.FieldName:
				return []string{t.Name(o)}
			case selector.FieldVersion:
				return []string{strconv.FormatUint(o.GetMeta().Version.Index, 10)}
			case selector.FieldGeneration:
				return []string{strconv.FormatUint(o.GetMeta().Generation, 10)}
			}
			value, _ := fieldOf(o, field)
			if value == "" {
				return nil
			}
			return []string{value}
		})
	}, nil
}

// inWhere gives an error the path that the text has in a request.
func inWhere(err error) error {
	if e, ok := errors.AsType[*errkind.Error](err); ok {
		e.Field = "selector.where"
	}
	return err
}

// fieldOf returns a field that not all kinds have; ok is false if the object's has not.
func fieldOf(o state.Object, field string) (value string, ok bool) {
	switch o := o.(type) {
	case *api.Task:
		switch field {
		case fieldService:
			return o.ServiceID, true
		case fieldNode:
			return o.NodeID, true
		case fieldSlot:
			return strconv.FormatUint(o.Slot, 10), true
		case fieldState:
			return strings.ToLower(o.Status.State.String()), true
		case fieldDesiredState:
			return strings.ToLower(o.DesiredState.String()), true
		}
	case *api.Node:
		switch field {
		case fieldRole:
			return strings.ToLower(o.Role.String()), true
		case fieldMembership:
			return strings.ToLower(o.Spec.Membership.String()), true
		case fieldAvailability:
			return strings.ToLower(o.Spec.Availability.String()), true
		}
	}
	return "", false
}
