// Package proxy passes a call on to the leader, unchanged and once: the request's bytes, its
// metadata and its deadline go as they came, and the reply comes back as it is.
package proxy

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"holdfast/internal/codec"
	"holdfast/internal/errkind"
	"holdfast/internal/mutant"
	"holdfast/internal/wire"
)

// Config is what a proxy is made of.
type Config struct {
	// Leader returns the leader's address; empty if this manager knows none.
	Leader func() string
	Dial   func(addr string) (Conn, error)
	Self   string // names this manager to the leader
	// NewRequestID makes a request ID for a call that has none, so that the leader can tell
	// this manager's own retries apart from new requests.
	NewRequestID func() string
	Planted      mutant.Set // a fault planted on purpose, by the simulator; zero: none
}

// Conn is a connection to another manager: a *grpc.ClientConn.
type Conn interface {
	grpc.ClientConnInterface
	Close() error
}

// Proxy keeps a connection to each leader that it has passed calls on to.
type Proxy struct {
	cfg Config

	mu    sync.Mutex
	conns map[string]Conn
}

// New makes a proxy.
func New(cfg Config) *Proxy { return &Proxy{cfg: cfg, conns: map[string]Conn{}} }

// Forward passes a call on and returns the reply for the codec to send as it is. It fails with
// errkind.NoLeader if nothing was sent, and with errkind.UnknownOutcome if the leader's answer
// did not come.
func (p *Proxy) Forward(ctx context.Context, method string, request any) (any, error) {
	reply, err := p.forward(ctx, method, request)
	if p.cfg.Planted.Has(mutant.ForwardedTwice) && errkind.Is(err, errkind.UnknownOutcome) {
		return p.forward(withoutRequestID(ctx), method, request)
	}
	return reply, err
}

// withoutRequestID makes a call one that came without a request ID. It is what a planted fault
// does, and does not run in the product.
func withoutRequestID(ctx context.Context) context.Context {
	md, _ := metadata.FromIncomingContext(ctx) // a copy
	md.Delete(wire.RequestID)
	return metadata.NewIncomingContext(ctx, md)
}

func (p *Proxy) forward(ctx context.Context, method string, request any) (any, error) {
	if by := wire.Incoming(ctx, wire.Forwarded); by != "" {
		return nil, errkind.New(errkind.NoLeader, "manager %s took this one for the leader, which it is not", by).
			WithHint("an election is under way: try again")
	}
	addr := p.cfg.Leader()
	if addr == "" {
		return nil, errkind.New(errkind.NoLeader, "there is no leader: too few managers are online, or an election is under way").
			WithHint("nothing was done: try again; see which managers cannot be reached with: ctl member ls")
	}
	conn, err := p.conn(addr)
	if err != nil {
		return nil, &errkind.Error{
			Kind: errkind.NoLeader, Msg: "cannot connect to the leader at " + addr + ": " + err.Error(), Err: err,
			Hint: "nothing was done: try again",
		}
	}
	var reply codec.Raw
	var trailer metadata.MD
	err = conn.Invoke(p.outgoing(ctx), method, request, &reply, grpc.Trailer(&trailer))
	if revision := trailer.Get(wire.Revision); len(revision) > 0 {
		if trailerErr := grpc.SetTrailer(ctx, metadata.Pairs(wire.Revision, revision[0])); trailerErr != nil {
			return nil, trailerErr
		}
	}
	if err != nil {
		return nil, errkind.FromStatus(err)
	}
	return &reply, nil
}

// outgoing copies what belongs to the call.
func (p *Proxy) outgoing(ctx context.Context) context.Context {
	out := metadata.MD{}
	for _, key := range []string{wire.Read, wire.RequestID, wire.Message} {
		if value := wire.Incoming(ctx, key); value != "" {
			out.Set(key, value)
		}
	}
	if len(out.Get(wire.RequestID)) == 0 {
		out.Set(wire.RequestID, p.cfg.NewRequestID())
	}
	out.Set(wire.Forwarded, p.cfg.Self)
	return metadata.NewOutgoingContext(ctx, out)
}

func (p *Proxy) conn(addr string) (Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if conn, ok := p.conns[addr]; ok {
		return conn, nil
	}
	conn, err := p.cfg.Dial(addr)
	if err != nil {
		return nil, err
	}
	p.conns[addr] = conn
	return conn, nil
}

// Close closes the connections.
func (p *Proxy) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first error
	for addr, conn := range p.conns {
		if err := conn.Close(); err != nil && first == nil {
			first = err
		}
		delete(p.conns, addr)
	}
	return first
}
