package driver

import (
	"context"
	"errors"
	"fmt"

	"holdfast/internal/errkind"
)

// noun is what errors call a record.
const noun = "release"

// Errors that a kind alone does not tell.
var (
	// ErrDeployed is an errkind.Exists: another revision of the name is deployed.
	ErrDeployed = errors.New("another revision is deployed")
	// ErrCorrupt is an errkind.Internal: what was read is not what was written.
	ErrCorrupt = errors.New("the record is corrupt")
)

// NotFound is the error of a record that is not there.
func NotFound(key Key) error {
	return errkind.New(errkind.NotFound, "not found").On(noun, key.String())
}

// Exists is the error of a key that is taken.
func Exists(key Key) error {
	return errkind.New(errkind.Exists, "exists already").On(noun, key.String()).
		WithHint("use another revision, or update this one")
}

// Deployed is the error of a record that cannot be deployed, since another revision is.
func Deployed(key Key) error {
	return (&errkind.Error{
		Kind: errkind.Exists, Field: "status", Msg: ErrDeployed.Error(), Err: ErrDeployed,
		Hint: "give the deployed revision another status first",
	}).On(noun, key.String())
}

// Changed is the error of a record that has another version than the caller saw. Now is 0 if
// it is not known.
func Changed(key Key, seen, now uint64) error {
	e := errkind.New(errkind.OutOfSequence, "changed since version %d was read", seen)
	if now != 0 {
		e.Msg = fmt.Sprintf("changed since version %d was read: it is at %d now", seen, now)
	}
	e.Seen, e.Now = seen, now
	return e.On(noun, key.String()).WithHint("read it again and repeat the change")
}

// Corrupt is the error of a record that is not what was stored. Field says which part of it.
func Corrupt(key Key, field, format string, args ...any) error {
	return (&errkind.Error{
		Field: field, Msg: "is corrupt: " + fmt.Sprintf(format, args...), Err: ErrCorrupt,
		Hint: "delete this revision; others are not harmed by it",
	}).On(noun, key.String())
}

// Ended returns the error of a context that ended before anything was done, or nil.
func Ended(ctx context.Context) error {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &errkind.Error{Kind: errkind.DeadlineReached, Msg: "the time ran out; nothing was done", Err: err}
	default:
		return &errkind.Error{Kind: errkind.Canceled, Msg: "canceled; nothing was done", Err: err}
	}
}

// On names the record in an error that names none. Any other error is returned as it is.
func On(err error, key Key) error {
	e, ok := errors.AsType[*errkind.Error](err)
	if !ok || e.Object != "" {
		return err
	}
	named := *e
	return named.On(noun, key.String())
}
