package errkind

import (
	"context"
	"errors"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// domain marks the details that are ours.
const domain = "holdfast"

// Keys of the metadata of an ErrorInfo.
const (
	keyObject = "object"
	keyID     = "id"
	keyField  = "field"
	keyMax    = "limit"
	keySeen   = "revision_seen"
	keyNow    = "revision_now"
	keyHint   = "hint"
	keyMsg    = "message"
)

// wireKind is how a kind looks on the wire.
type wireKind struct {
	kind   Kind
	reason string
	code   codes.Code
}

func wireKinds() []wireKind {
	return []wireKind{
		{Internal, "INTERNAL", codes.Internal},
		{Invalid, "INVALID", codes.InvalidArgument},
		{NotFound, "NOT_FOUND", codes.NotFound},
		{Exists, "EXISTS", codes.AlreadyExists},
		{OutOfSequence, "OUT_OF_SEQUENCE", codes.Aborted},
		{Refused, "REFUSED", codes.FailedPrecondition},
		{OutOfRange, "OUT_OF_RANGE", codes.OutOfRange},
		{Limit, "LIMIT", codes.ResourceExhausted},
		{NoLeader, "NO_LEADER", codes.Unavailable},
		{UnknownOutcome, "UNKNOWN_OUTCOME", codes.Unknown},
		{NotAllowed, "NOT_ALLOWED", codes.PermissionDenied},
		{Unauthenticated, "UNAUTHENTICATED", codes.Unauthenticated},
		{Canceled, "CANCELED", codes.Canceled},
		{DeadlineReached, "DEADLINE", codes.DeadlineExceeded},
	}
}

// Status turns err into the status that is sent to a client. An error that already is a
// status goes through as it is; one without a kind is Internal.
func Status(err error) *status.Status {
	if err == nil {
		return nil
	}
	e, foreign := kinded(err)
	if foreign != nil {
		return foreign
	}
	w := wireKindOf(e.Kind)
	s := status.New(w.code, err.Error())
	detailed, detailErr := s.WithDetails(&errdetails.ErrorInfo{Reason: w.reason, Domain: domain, Metadata: e.details()})
	if detailErr != nil { // only an OK status cannot carry details
		return s
	}
	return detailed
}

// Info takes err, which is not nil, apart for a message that tells of it where there is no
// status to carry it. FromInfo puts it together again.
func Info(err error) (reason, message string, details map[string]string) {
	e, foreign := kinded(err)
	if foreign != nil {
		e, _ = errors.AsType[*Error](FromStatus(foreign.Err()))
	}
	return wireKindOf(e.Kind).reason, err.Error(), e.details()
}

// FromInfo puts together again what Info took apart. A reason that is not known is Internal.
func FromInfo(reason, message string, details map[string]string) *Error {
	e := &Error{
		Object: details[keyObject], ID: details[keyID], Field: details[keyField], Max: details[keyMax],
		Hint: details[keyHint], Msg: details[keyMsg],
	}
	if e.Msg == "" {
		e.Msg = message
	}
	// A revision that does not parse is left out: it is for people, and may be of a later form.
	e.Seen, _ = strconv.ParseUint(details[keySeen], 10, 64)
	e.Now, _ = strconv.ParseUint(details[keyNow], 10, 64)
	for _, k := range wireKinds() {
		if k.reason == reason {
			e.Kind = k.kind
		}
	}
	return e
}

// kinded gives err as an Error, or else the foreign status that it is.
func kinded(err error) (e *Error, foreign *status.Status) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e, nil
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &Error{Kind: Canceled, Msg: err.Error()}, nil
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: DeadlineReached, Msg: err.Error()}, nil
	}
	if s, ok := status.FromError(err); ok {
		return nil, s
	}
	return &Error{Kind: Internal, Msg: err.Error()}, nil
}

func wireKindOf(kind Kind) wireKind {
	for _, k := range wireKinds() {
		if k.kind == kind {
			return k
		}
	}
	return wireKinds()[0]
}

// details gives what an ErrorInfo has beside its reason.
func (e *Error) details() map[string]string {
	details := make(map[string]string)
	for key, value := range map[string]string{
		keyObject: e.Object, keyID: e.ID, keyField: e.Field, keyMax: e.Max,
		keySeen: revision(e.Seen), keyNow: revision(e.Now), keyHint: e.Hint, keyMsg: e.Msg,
	} {
		if value != "" {
			details[key] = value
		}
	}
	return details
}

func revision(r uint64) string {
	if r == 0 {
		return ""
	}
	return strconv.FormatUint(r, 10)
}

// FromStatus turns an error of a gRPC call back into an Error. Codes that came without our
// details, such as gRPC's own Unavailable, keep a kind that is safe: what is not known to
// have been refused before it began is UnknownOutcome.
func FromStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range s.Details() {
		info, isInfo := d.(*errdetails.ErrorInfo)
		if !isInfo || info.GetDomain() != domain {
			continue
		}
		return FromInfo(info.GetReason(), s.Message(), info.GetMetadata())
	}
	e := &Error{Kind: UnknownOutcome, Msg: s.Message(), Err: err}
	for _, k := range wireKinds() {
		if k.code == s.Code() && s.Code() != codes.Unavailable {
			e.Kind = k.kind
		}
	}
	return e
}
