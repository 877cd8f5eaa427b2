package objects

import (
	"time"

	"github.com/gogo/protobuf/types"

	"holdfast/internal/errkind"
)

// checkEnum refuses a number that the enum does not have.
func checkEnum[E ~int32](path string, value E, names map[int32]string) error {
	if _, ok := names[int32(value)]; !ok {
		return errkind.Field(path, "has the unknown value %d", value)
	}
	return nil
}

// checkDuration refuses a negative duration. Nil is allowed.
func checkDuration(path string, d *types.Duration) error {
	_, err := duration(path, d)
	return err
}

// checkProbeTime refuses a time that is neither 0 nor at least a millisecond.
func checkProbeTime(path string, d *types.Duration) error {
	v, err := duration(path, d)
	if err == nil && v != 0 && v < time.Millisecond {
		return errkind.Field(path, "is %v, must be 0 or at least 1ms", v)
	}
	return err
}

func duration(path string, d *types.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	v, err := types.DurationFromProto(d)
	if err != nil {
		return 0, errkind.Field(path, "is not a duration: %d s and %d ns", d.Seconds, d.Nanos)
	}
	if v < 0 {
		return 0, errkind.Field(path, "is %v, must not be negative", v)
	}
	return v, nil
}

// check is one rule, put off until those before it have passed.
type check func() error

// first returns the error of the first check that fails.
func first(checks ...check) error {
	for _, c := range checks {
		if err := c(); err != nil {
			return err
		}
	}
	return nil
}
