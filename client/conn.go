package client

import (
	"context"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/internal/wire"
)

// conn makes the calls of the generated clients, with all that the package promises.
type conn struct{ c *Client }

var _ grpc.ClientConnInterface = conn{}

// Invoke makes one call, at as many endpoints and as often as it takes.
func (c conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	call := newCall(c.c, isWrite(method), requestIDFrom(ctx))
	return call.run(ctx, func(ctx context.Context, e *endpoint) error {
		if r, ok := reply.(interface{ Reset() }); ok {
			r.Reset() // of what a failed attempt left
		}
		var trailer metadata.MD
		err := e.conn.Invoke(ctx, method, args, reply, append(opts[:len(opts):len(opts)], grpc.Trailer(&trailer))...)
		c.c.saw(trailer.Get(wire.Revision))
		return err
	})
}

// NewStream opens a stream at the first endpoint that can be reached. A stream that breaks
// is not opened again: what was seen of it is the caller's to know.
func (c conn) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	var s grpc.ClientStream
	call := newCall(c.c, isWrite(method), requestIDFrom(ctx))
	err := call.run(ctx, func(ctx context.Context, e *endpoint) error {
		var err error
		s, err = e.conn.NewStream(ctx, desc, method, opts...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return stream{s, c.c}, nil
}

// stream gives the errors of a stream their kinds.
type stream struct {
	grpc.ClientStream
	c *Client
}

func (s stream) SendMsg(m any) error { return streamError(s.ClientStream.SendMsg(m)) }

func (s stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil {
		s.c.saw(s.Trailer().Get(wire.Revision))
	}
	return streamError(err)
}

func streamError(err error) error {
	if err == io.EOF { //nolint:errorlint // gRPC returns it bare, and callers compare it bare
		return err
	}
	return errkind.FromStatus(err)
}

// isWrite tells whether a method changes anything: all but those that are known to read.
func isWrite(method string) bool {
	name := method[strings.LastIndexByte(method, '/')+1:]
	switch name {
	case "Status", "Members", "Check", "Watch", "Scan", "Read", "History", "Diff", "Compare":
		return false
	}
	return !strings.HasPrefix(name, "Get") && !strings.HasPrefix(name, "List")
}

// learn asks a manager for its revision, once, so that the first request ID does not look
// older than all that the cluster remembers.
func (c *Client) learn(ctx context.Context, e *endpoint) error {
	if c.seen.Load() != 0 || c.asked.Load() {
		return nil
	}
	var trailer metadata.MD
	ctx = metadata.AppendToOutgoingContext(ctx, wire.Read, wire.Freshness{Mode: wire.Local}.String())
	err := e.conn.Invoke(ctx, api.Health_Check_FullMethodName,
		&api.HealthCheckRequest{}, &api.HealthCheckResponse{}, grpc.Trailer(&trailer))
	c.saw(trailer.Get(wire.Revision))
	if isUnavailable(err) {
		return err
	}
	c.asked.Store(true) // even if the answer was no: then there is nothing to learn
	return nil
}
