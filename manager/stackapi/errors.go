package stackapi

import (
	"errors"
	"strings"

	"holdfast/internal/errkind"
)

// hintParts says what to do about a deployment that is too large.
const hintParts = "deploy the stack in parts: first with some of its services"

// within names the object in an error, and puts the path of its spec in the request in the
// place of the spec. Without a path the field stays as it is.
func within(err error, path, noun, name string) error {
	e, ok := errors.AsType[*errkind.Error](err)
	if !ok {
		return err
	}
	at := *e
	at.Object, at.ID = noun, name
	if path == "" {
		return &at
	}
	switch rest, inSpec := strings.CutPrefix(e.Field, "spec"); {
	case inSpec:
		at.Field = path + rest
	case e.Field == "":
		at.Field = path
	default:
		at.Field = path + "." + e.Field
	}
	return &at
}

// hinted says what to do about a transaction that is too large for the store.
func hinted(err error, stack, hint string) error {
	e, ok := errors.AsType[*errkind.Error](err)
	if !ok || e.Kind != errkind.Limit || e.Object != "" {
		return err
	}
	at := *e
	return at.On("stack", stack).WithHint("%s", hint)
}

// inField puts the path of a message before the path of a field in it.
func inField(err error, path string) error {
	e, ok := errors.AsType[*errkind.Error](err)
	if !ok || e.Field == "" {
		return err
	}
	at := *e
	at.Field = path + "." + e.Field
	return &at
}
