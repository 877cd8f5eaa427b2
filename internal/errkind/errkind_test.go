package errkind_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/internal/errkind"
)

func TestErrorCrossesTheWire(t *testing.T) {
	for k := errkind.Internal; k <= errkind.DeadlineReached; k++ {
		in := &errkind.Error{
			Kind: k, Object: "service", ID: "web", Field: "spec.name", Max: "63",
			Seen: 3, Now: 7, Msg: "too long", Hint: "use a shorter one",
		}
		out := errkind.FromStatus(errkind.Status(fmt.Errorf("create: %w", in)).Err())
		e, ok := errors.AsType[*errkind.Error](out)
		if !ok {
			t.Fatalf("kind %d: got %T", k, out)
		}
		if *e != *in {
			t.Errorf("kind %d: got %+v, want %+v", k, e, in)
		}
	}
}

// Info and FromInfo carry an error where there is no status.
func TestErrorCrossesAMessage(t *testing.T) {
	for k := errkind.Internal; k <= errkind.DeadlineReached; k++ {
		in := &errkind.Error{
			Kind: k, Object: "service", ID: "web", Field: "spec.name", Max: "63",
			Seen: 3, Now: 7, Msg: "too long", Hint: "use a shorter one",
		}
		reason, message, details := errkind.Info(fmt.Errorf("create: %w", in))
		if out := errkind.FromInfo(reason, message, details); *out != *in {
			t.Errorf("kind %d: got %+v, want %+v", k, out, in)
		}
		if message != "create: service web: spec.name: too long" {
			t.Errorf("message %q", message)
		}
	}
	for _, c := range []struct {
		err  error
		kind errkind.Kind
	}{
		{context.Canceled, errkind.Canceled},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), errkind.DeadlineReached},
		{errors.New("boom"), errkind.Internal},
		{status.Error(codes.NotFound, "no"), errkind.NotFound},
		{status.Error(codes.Unavailable, "reset"), errkind.UnknownOutcome},
	} {
		out := errkind.FromInfo(errkind.Info(c.err))
		if out.Kind != c.kind || out.Msg == "" {
			t.Errorf("%v: got %+v", c.err, out)
		}
	}
	if out := errkind.FromInfo("OF_A_LATER_VERSION", "odd", map[string]string{"revision_now": "x"}); out.Kind != errkind.Internal ||
		out.Msg != "odd" || out.Now != 0 {
		t.Errorf("got %+v", out)
	}
}

func TestKindsHaveCodesOfTheirOwn(t *testing.T) {
	for _, c := range []struct {
		err  error
		code codes.Code
	}{
		{errkind.Field("spec.name", "is empty"), codes.InvalidArgument},
		{errkind.New(errkind.OutOfSequence, "changed"), codes.Aborted},
		{errkind.New(errkind.NoLeader, "none"), codes.Unavailable},
		{errkind.New(errkind.UnknownOutcome, "lost"), codes.Unknown},
		{context.Canceled, codes.Canceled},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), codes.DeadlineExceeded},
		{errors.New("boom"), codes.Internal},
		{status.Error(codes.Unimplemented, "no"), codes.Unimplemented},
	} {
		if got := errkind.Status(c.err).Code(); got != c.code {
			t.Errorf("%v: code %v, want %v", c.err, got, c.code)
		}
	}
}

// A connection that broke says nothing of what was done.
func TestForeignUnavailableIsUnknownOutcome(t *testing.T) {
	err := errkind.FromStatus(status.Error(codes.Unavailable, "connection reset"))
	if !errkind.Is(err, errkind.UnknownOutcome) {
		t.Errorf("got kind %v", errkind.Of(err))
	}
}

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		err  *errkind.Error
		want string
	}{
		{errkind.Field("spec.name", "is empty").On("service", "x1"), "service x1: spec.name: is empty"},
		{errkind.New(errkind.NotFound, "not found").On("task", "t"), "task t: not found"},
		{errkind.New(errkind.NotFound, "not found").On("task", ""), "task: not found"},
		{errkind.New(errkind.Internal, "odd"), "odd"},
	} {
		if c.err.Error() != c.want {
			t.Errorf("got %q, want %q", c.err.Error(), c.want)
		}
	}
}
