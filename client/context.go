package client

import (
	"context"

	"google.golang.org/grpc/metadata"

	"holdfast/internal/wire"
)

type requestIDKey struct{}

// WithRequestID returns a context whose one write is named by id, which was made by an
// earlier NewRequestID: to ask again, from another process too, for the outcome of a write
// whose answer was lost.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

func requestIDFrom(ctx context.Context) string {
	id, ok := ctx.Value(requestIDKey{}).(string)
	if !ok {
		return ""
	}
	return id
}

// NewRequestID makes an ID for WithRequestID. Its beginning is the newest revision that the
// client has seen, so read something first: a cluster does not take up a request that is
// older than all that it remembers.
func (c *Client) NewRequestID() string {
	return wire.FormatRequestID(c.seen.Load(), c.opts.Random())
}

// WithMessage returns a context whose writes are kept with a reason, for the history.
func WithMessage(ctx context.Context, message string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, wire.Message, wire.EscapeText(message))
}

// ReadLocal returns a context whose reads are answered by the manager that is asked, at
// once, from what it has.
func ReadLocal(ctx context.Context) context.Context {
	return withFreshness(ctx, wire.Freshness{Mode: wire.Local})
}

// ReadAtLeast returns a context whose reads wait until the manager that is asked has the
// given revision. With Revision, a client reads what it wrote, through any manager.
func ReadAtLeast(ctx context.Context, revision uint64) context.Context {
	return withFreshness(ctx, wire.Freshness{Mode: wire.Min, Revision: revision})
}

// ReadAt returns a context whose reads are of a past revision.
func ReadAt(ctx context.Context, revision uint64) context.Context {
	return withFreshness(ctx, wire.Freshness{Mode: wire.At, Revision: revision})
}

func withFreshness(ctx context.Context, f wire.Freshness) context.Context {
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	if !ok {
		md = metadata.MD{}
	}
	md.Set(wire.Read, f.String())
	return metadata.NewOutgoingContext(ctx, md)
}
