package call

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"runtime/debug"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"holdfast/internal/errkind"
	"holdfast/internal/wire"
	"holdfast/manager/state"
)

// Bounds of a call.
const (
	maxRequestBytes = 4 << 20
	maxMessageText  = 1 << 10 // of the holdfast-message header
)

// operator is who calls, until certificates tell.
const operator = "operator"

// Class says who answers a call.
type Class int

// The classes.
const (
	Denied   Class = iota // nobody said who may call it
	Local                 // this manager answers for itself
	Reading               // any manager answers, as fresh as was asked for
	Writing               // the leader does it
	Leading               // the leader answers, and nothing is changed
	Asking                // the leader answers if there is one, else this manager for itself
	Internal              // between managers
)

// Forwarder passes a call on to the leader.
type Forwarder interface {
	Forward(ctx context.Context, method string, request any) (any, error)
}

// Interceptor is what every call goes through: who may call it, who answers it, how big it may
// be, how errors look, and which revision the reply tells.
type Interceptor struct {
	Classes  map[string]Class // of each method; one that is not there is Denied
	Leads    func() bool
	Forward  Forwarder
	Revision func() string // the Revision trailer
	Calls    *Drain
	Logger   *slog.Logger
}

// Unary is a grpc.UnaryServerInterceptor.
func (i *Interceptor) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (reply any, err error) {
	i.Calls.begin()
	defer i.Calls.end()
	defer func() {
		if p := recover(); p != nil {
			i.Logger.Error("call failed by a fault", "method", info.FullMethod, "panic", p, "stack", string(debug.Stack()))
			reply, err = nil, errkind.New(errkind.Internal, "a fault of this manager; its log has the details")
		}
		if err != nil {
			reply, err = nil, errkind.Status(err).Err()
		}
	}()
	class := i.Classes[info.FullMethod]
	if class == Denied {
		return nil, errkind.New(errkind.NotAllowed, "%s may not be called", info.FullMethod)
	}
	if err := checkSize(request); err != nil {
		return nil, err
	}
	if (class == Writing || class == Leading) && !i.Leads() {
		return i.Forward.Forward(ctx, info.FullMethod, request)
	}
	if class == Asking && !i.Leads() {
		reply, err := i.Forward.Forward(ctx, info.FullMethod, request)
		if !errkind.Is(err, errkind.NoLeader) && !errkind.Is(err, errkind.UnknownOutcome) {
			return reply, err
		}
	}
	if class == Writing {
		if ctx, err = withRequest(ctx, info.FullMethod, request); err != nil {
			return nil, err
		}
	}
	reply, err = handle(ctx, request)
	if class != Internal {
		if trailerErr := grpc.SetTrailer(ctx, metadata.Pairs(wire.Revision, i.Revision())); trailerErr != nil {
			return nil, trailerErr
		}
	}
	return reply, err
}

// Stream is a grpc.StreamServerInterceptor.
func (i *Interceptor) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler,
) (err error) {
	defer func() {
		if p := recover(); p != nil {
			i.Logger.Error("call failed by a fault", "method", info.FullMethod, "panic", p, "stack", string(debug.Stack()))
			err = errkind.New(errkind.Internal, "a fault of this manager; its log has the details")
		}
		if err != nil {
			err = errkind.Status(err).Err()
		}
	}()
	class := i.Classes[info.FullMethod]
	if class == Denied {
		return errkind.New(errkind.NotAllowed, "%s may not be called", info.FullMethod)
	}
	if class != Internal {
		defer func() { stream.SetTrailer(metadata.Pairs(wire.Revision, i.Revision())) }()
	}
	return handle(srv, stream)
}

func checkSize(request any) error {
	sized, ok := request.(interface{ Size() int })
	if !ok {
		return nil
	}
	if n := sized.Size(); n > maxRequestBytes {
		return &errkind.Error{
			Kind: errkind.Limit, Max: "4 MiB", Msg: fmt.Sprintf("request of %d bytes is over the limit of 4 MiB", n),
			Hint: "split it into several",
		}
	}
	return nil
}

// withRequest puts what the transaction is stamped with into the context.
func withRequest(ctx context.Context, method string, request any) (context.Context, error) {
	r := state.Request{
		ID: wire.Incoming(ctx, wire.RequestID), Caller: operator,
		Message: wire.UnescapeText(wire.Incoming(ctx, wire.Message)),
	}
	switch {
	case len(r.Message) > maxMessageText:
		return nil, errkind.Field(wire.Message, "is longer than %d bytes", maxMessageText)
	case !utf8.ValidString(r.Message):
		return nil, errkind.Field(wire.Message, "is not UTF-8")
	}
	if r.ID != "" {
		if _, err := wire.ParseRequestID(r.ID); err != nil {
			return nil, err
		}
		m, ok := request.(interface{ Marshal() ([]byte, error) })
		if !ok {
			return nil, fmt.Errorf("request of type %T cannot be told from others", request)
		}
		data, err := m.Marshal()
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		h := sha256.New()
		h.Write([]byte(method))
		h.Write([]byte{0})
		h.Write(data)
		r.Digest = h.Sum(nil)
	}
	return state.WithRequest(ctx, r), nil
}
