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
	e, ok := errors.AsType[*Error](err)
	if !ok {
		switch {
		case errors.Is(err, context.Canceled):
			e = &Error{Kind: Canceled, Msg: err.Error()}
		case errors.Is(err, context.DeadlineExceeded):
			e = &Error{Kind: DeadlineReached, Msg: err.Error()}
		default:
			if s, isStatus := status.FromError(err); isStatus {
				return s
			}
			e = &Error{Kind: Internal, Msg: err.Error()}
		}
	}
	w := wireOf(e.Kind)
	info := &errdetails.ErrorInfo{Reason: w.reason, Domain: domain, Metadata: e.details()}
	s := status.New(w.code, err.Error())
	detailed, detailErr := s.WithDetails(info)
	if detailErr != nil { // only an OK status cannot carry details
		return s
	}
	return detailed
}

func wireOf(k Kind) wireKind {
	for _, w := range wireKinds() {
		if w.kind == k {
			return w
		}
	}
	return wireKinds()[0]
}

func (e *Error) details() map[string]string {
	all := map[string]string{}
	for key, value := range map[string]string{
		keyObject: e.Object, keyID: e.ID, keyField: e.Field, keyMax: e.Max,
		keySeen: revision(e.Seen), keyNow: revision(e.Now), keyHint: e.Hint, keyMsg: e.Msg,
	} {
		if value != "" {
			all[key] = value
		}
	}
	return all
}

// Info gives the parts of an error for a message that tells of it, where no call ends by it.
// An error without a kind is Internal.
func Info(err error) (reason, message string, details map[string]string) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Kind: Internal, Msg: err.Error()}
	}
	return wireOf(e.Kind).reason, err.Error(), e.details()
}

// FromInfo makes the Error again that Info was given.
func FromInfo(reason, message string, details map[string]string) *Error {
	return fromInfo(&errdetails.ErrorInfo{Reason: reason, Metadata: details}, message)
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
		return fromInfo(info, s.Message())
	}
	e := &Error{Kind: UnknownOutcome, Msg: s.Message(), Err: err}
	for _, k := range wireKinds() {
		if k.code == s.Code() && s.Code() != codes.Unavailable {
			e.Kind = k.kind
		}
	}
	return e
}

func fromInfo(info *errdetails.ErrorInfo, message string) *Error {
	m := info.GetMetadata()
	e := &Error{
		Object: m[keyObject], ID: m[keyID], Field: m[keyField], Max: m[keyMax],
		Hint: m[keyHint], Msg: m[keyMsg],
	}
	if e.Msg == "" {
		e.Msg = message
	}
	// A revision that does not parse is left out: it is for people, and may be of a later form.
	e.Seen, _ = strconv.ParseUint(m[keySeen], 10, 64)
	e.Now, _ = strconv.ParseUint(m[keyNow], 10, 64)
	for _, k := range wireKinds() {
		if k.reason == info.GetReason() {
			e.Kind = k.kind
		}
	}
	return e
}
