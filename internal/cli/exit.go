package cli

import (
	"errors"
	"fmt"
	"io"

	"holdfast/internal/errkind"
)

// The exit codes.
const (
	ExitOK         = 0
	ExitFailed     = 1
	ExitUsage      = 2
	ExitNotAllowed = 4
	ExitNoAnswer   = 5 // no leader, outcome not known, no answer in time, or nobody there
	ExitConflict   = 6 // exists, changed meanwhile, or refused
	ExitNotFound   = 7

	// Of a comparison, as of diff: that it failed must not look like a difference.
	ExitDifferent  = 1
	ExitDiffFailed = 8
)

// UsageError is a command that was called wrongly.
type UsageError struct {
	Msg  string
	Hint string
}

// Usagef makes a UsageError.
func Usagef(format string, args ...any) *UsageError {
	return &UsageError{Msg: fmt.Sprintf(format, args...)}
}

// Error gives what is wrong.
func (e *UsageError) Error() string { return e.Msg }

// Different is what a comparison ends with that found a difference. It is no failure, and is
// not reported.
type Different struct{}

// Error tells that there is a difference.
func (Different) Error() string { return "there are differences" }

// DiffError is a comparison that failed.
type DiffError struct{ Err error }

// Error gives what is wrong.
func (e *DiffError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *DiffError) Unwrap() error { return e.Err }

// Compared makes the error of a command that compares one that has the exit code of such.
func Compared(err error) error {
	_, different := errors.AsType[Different](err)
	_, usage := errors.AsType[*UsageError](err)
	if err == nil || different || usage {
		return err
	}
	return &DiffError{Err: err}
}

// Errors are the errors of a command that went on after the first.
type Errors []error

// Error gives all of them, one to a line.
func (e Errors) Error() string { return errors.Join(e...).Error() }

// Unwrap returns all of them.
func (e Errors) Unwrap() []error { return e }

// ExitCode gives the exit code that follows from err; of several errors, from the first.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if all, ok := errors.AsType[Errors](err); ok && len(all) > 0 {
		return ExitCode(all[0])
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		return ExitUsage
	}
	if _, ok := errors.AsType[Different](err); ok {
		return ExitDifferent
	}
	if _, ok := errors.AsType[*DiffError](err); ok {
		return ExitDiffFailed
	}
	switch errkind.Of(err) {
	case errkind.NotFound:
		return ExitNotFound
	case errkind.Exists, errkind.OutOfSequence, errkind.Refused:
		return ExitConflict
	case errkind.NoLeader, errkind.UnknownOutcome, errkind.DeadlineReached:
		return ExitNoAnswer
	case errkind.NotAllowed, errkind.Unauthenticated:
		return ExitNotAllowed
	}
	return ExitFailed
}

// Report tells err to a person: a line "error: …", and a line "hint: …" if there is one;
// of several errors, each.
func Report(w io.Writer, err error) {
	if _, ok := errors.AsType[Different](err); ok || err == nil {
		return
	}
	if all, ok := errors.AsType[Errors](err); ok {
		for _, one := range all {
			Report(w, one)
		}
		return
	}
	hint := errkind.Hint(err)
	if usage, ok := errors.AsType[*UsageError](err); ok {
		hint = usage.Hint
	}
	// What cannot be written to stderr can be told to nobody.
	fmt.Fprintf(w, "error: %s\n", Clean(err.Error())) //nolint:errcheck // see above
	if hint != "" {
		fmt.Fprintf(w, "hint: %s\n", Clean(hint)) //nolint:errcheck // see above
	}
}
