package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"holdfast/internal/codec"
	"holdfast/internal/errkind"
	"holdfast/manager/call"
	"holdfast/manager/proxy"
	"holdfast/manager/state"
)

// The methods of the simulation's service.
const (
	methodWrite   = "/sim/write"
	methodRead    = "/sim/read"
	methodChanges = "/sim/changes"
)

func classes() map[string]call.Class {
	return map[string]call.Class{methodWrite: call.Writing, methodRead: call.Reading, methodChanges: call.Local}
}

func unaryInfo(method string) *grpc.UnaryServerInfo { return &grpc.UnaryServerInfo{FullMethod: method} }

// request is an encoded operation.
type request struct{ data []byte }

// Marshal and Size are what the interceptor asks of a message.
func (r *request) Marshal() ([]byte, error) { return r.data, nil }

// Size is the length of the encoding.
func (r *request) Size() int { return len(r.data) }

// rpc is one call over the network.
type rpc struct {
	c       *cluster
	caller  *group
	outcome *state.Outcome
	data    []byte
	trailer metadata.MD
}

// answered gives the caller an answer, after a time; a second one is not heard.
func (r *rpc) answered(d time.Duration, data []byte, trailer metadata.MD, err error) {
	r.c.after(d, func() {
		if _, known := r.outcome.Known(); known {
			return
		}
		r.data, r.trailer = data, trailer
		r.outcome.Set(err)
		r.caller.poll()
	})
}

// broken tells the caller that its connection broke.
func (r *rpc) broken(d time.Duration) {
	r.answered(d, nil, nil, status.Error(codes.Unavailable, "the connection broke"))
}

// call makes a call to a member and waits for the answer, or for ctx. from is 0 for a client.
func (c *cluster) call(ctx context.Context, caller *group, from, to uint64, method string, data []byte, md metadata.MD,
) ([]byte, metadata.MD, error) {
	r := &rpc{c: c, caller: caller, outcome: state.NewOutcome()}
	c.after(c.delay(), func() {
		m := c.machineOf(to)
		switch {
		case m == nil || m.proc == nil:
			r.broken(c.upTo(20 * time.Millisecond))
		case c.cut[link{from, to}] || !c.calm && c.chance(c.profile.loseCall):
			r.broken(c.upTo(2 * time.Second))
		default:
			m.proc.accept(ctx, r, from, method, data, md)
		}
	})
	wait(ctx, r.outcome.Done(), nil)
	err, known := r.outcome.Known()
	if !known {
		return nil, nil, status.Error(codes.Canceled, "the caller gave up")
	}
	return r.data, r.trailer, err
}

// trailers takes the trailers of a call, as grpc's transport does.
type trailers struct{ md metadata.MD }

// Method implements grpc.ServerTransportStream.
func (*trailers) Method() string { return "" }

// SetHeader implements grpc.ServerTransportStream.
func (*trailers) SetHeader(metadata.MD) error { return nil }

// SendHeader implements grpc.ServerTransportStream.
func (*trailers) SendHeader(metadata.MD) error { return nil }

// SetTrailer implements grpc.ServerTransportStream.
func (t *trailers) SetTrailer(md metadata.MD) error {
	t.md = metadata.Join(t.md, md)
	return nil
}

// scope is a context that ends as an event, and with it those of the calls that were made in
// it: after a time, since the network is between them.
type scope struct {
	cancel context.CancelFunc
	within []func()
	ended  bool
}

type scopeKey struct{}

func newScope(parent context.Context) (context.Context, *scope) {
	ctx, cancel := context.WithCancel(parent)
	s := &scope{cancel: cancel}
	return context.WithValue(ctx, scopeKey{}, s), s
}

// end ends the scope now.
func (s *scope) end() {
	s.cancel()
	s.ended = true
	for _, end := range s.within {
		end()
	}
	s.within = nil
}

// holds has something done when the scope ends, or now if it has ended.
func (s *scope) holds(end func()) {
	if s.ended {
		end()
		return
	}
	s.within = append(s.within, end)
}

// accept takes a call, and answers it in a task of its own.
func (p *process) accept(caller context.Context, r *rpc, from uint64, method string, data []byte, md metadata.MD) {
	p.waiting = append(p.waiting, r)
	ctx, sc := newScope(context.Background())
	if outer, ok := caller.Value(scopeKey{}).(*scope); ok {
		outer.holds(func() {
			p.do(p.delay(), func() {
				sc.end()
				p.calls.poll()
			})
		})
	}
	p.do(0, func() { p.serve(ctx, sc, r, from, method, data, md) })
}

func (p *process) serve(ctx context.Context, sc *scope, r *rpc, from uint64, method string, data []byte, md metadata.MD) {
	t := &trailers{}
	ctx = grpc.NewContextWithServerTransportStream(metadata.NewIncomingContext(ctx, md), t)
	p.calls.start(ctx, fmt.Sprintf("%s %s from n%d since %v", method, data, from, p.now), func(ctx context.Context) {
		defer sc.cancel()
		reply, err := p.handle(ctx, method, &request{data})
		p.waiting = slices.DeleteFunc(p.waiting, func(o *rpc) bool { return o == r })
		out := p.encode(reply)
		if p.cut[link{p.id, from}] || !p.calm && p.chance(p.profile.loseCall) {
			r.broken(p.upTo(2 * time.Second))
			return
		}
		if p.dead { // the interceptor made a fault of the death, and nobody is there to tell it
			r.broken(p.delay())
			return
		}
		r.answered(p.delay(), out, t.md, err)
	})
}

// encode gives a reply as bytes.
func (c *cluster) encode(reply any) []byte {
	if raw, ok := reply.(*codec.Raw); ok {
		return *raw
	}
	data, err := json.Marshal(reply)
	if err != nil {
		c.fail("replies can be encoded", "%v", err)
	}
	return data
}

// conn is a connection from one manager to another, for the proxy.
type conn struct {
	from *process
	to   uint64
}

func (p *process) dial(addr string) (proxy.Conn, error) {
	for _, m := range p.machines {
		if peer(m.id).Addr[1:] == addr[1:] { // wherever it has moved to
			return &conn{p, m.id}, nil
		}
	}
	return nil, errors.New("nobody is there")
}

// Invoke implements grpc.ClientConnInterface.
func (c *conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	r, ok := args.(*request)
	if !ok {
		return errkind.New(errkind.Internal, "a request of type %T", args)
	}
	md, _ := metadata.FromOutgoingContext(ctx)
	data, trailer, err := c.from.call(ctx, &c.from.calls, c.from.id, c.to, method, r.data, md)
	for _, o := range opts {
		if t, isTrailer := o.(grpc.TrailerCallOption); isTrailer {
			*t.TrailerAddr = trailer
		}
	}
	if raw, isRaw := reply.(*codec.Raw); isRaw {
		*raw = data
	}
	return err
}

// NewStream implements grpc.ClientConnInterface; nothing streams here.
func (c *conn) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errkind.New(errkind.Internal, "no streams")
}

// Close implements proxy.Conn.
func (c *conn) Close() error { return nil }
