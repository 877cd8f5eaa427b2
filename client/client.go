// Package client is the Go client of a Holdfast cluster, the one that ctl uses.
//
// A Client knows the endpoints of some managers and hands out the generated clients of the
// cluster's services. Under them lies one connection that
//
//   - goes on to the next endpoint when one cannot be reached or knows no leader, and stays
//     with the one that answered;
//   - names each write with a request ID and keeps it through all retries, so that a write
//     whose answer was lost gets its first outcome and is not done twice;
//   - turns every error into an *errkind.Error, whose kind says what can be done about it;
//     the error of a call that was retried names each endpoint and what it said.
//
// Watch tells of changes, and goes on through another manager when one is gone.
//
// Calls are retried until their context ends, so give them one with a deadline. A Client is
// safe for use by many goroutines. It starts none of its own but those of gRPC.
package client

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
	"holdfast/internal/wire"
)

const (
	// defaultConnectWait is how long a call goes on while no endpoint can be reached at all.
	defaultConnectWait = 2 * time.Second
	// maxReply is the largest reply that a manager sends.
	maxReply = 64 << 20
)

// Options say how to reach a cluster. The zero value of all but Endpoints works.
type Options struct {
	// Endpoints are managers: unix://PATH or HOST:PORT, in the order in which to try them.
	Endpoints []string
	// RetryFor bounds how long a call is tried again; 0 means until its context ends.
	RetryFor time.Duration
	// ConnectWait bounds how long a call is tried again while not one endpoint can be
	// reached and nothing of it was sent; 0 means two seconds.
	ConnectWait time.Duration
	// Dial replaces how an endpoint is connected to, for tests.
	Dial func(ctx context.Context, endpoint string) (net.Conn, error)
	// Random replaces how the random part of a request ID is made, for tests.
	Random func() string
}

// EnsureDefaults fills in what was not given.
func (o *Options) EnsureDefaults() {
	if o.ConnectWait == 0 {
		o.ConnectWait = defaultConnectWait
	}
	if o.Dial == nil {
		o.Dial = dial
	}
	if o.Random == nil {
		o.Random = id.New
	}
}

// Client reaches a cluster.
type Client struct {
	opts      Options
	endpoints []*endpoint

	preferred atomic.Int64  // index of the endpoint that answered last
	seen      atomic.Uint64 // newest revision in any reply
	asked     atomic.Bool   // a manager was asked for its revision
	closed    atomic.Bool
}

// New makes a client. It connects when the first call is made.
func New(opts Options) (*Client, error) {
	opts.EnsureDefaults()
	if len(opts.Endpoints) == 0 {
		return nil, errkind.Field("endpoints", "is empty")
	}
	c := &Client{opts: opts}
	for _, name := range opts.Endpoints {
		e, err := newEndpoint(name, opts.Dial)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.endpoints = append(c.endpoints, e)
	}
	return c, nil
}

// Close ends all connections. Calls that are under way fail.
func (c *Client) Close() error {
	c.closed.Store(true)
	var errs []error
	for _, e := range c.endpoints {
		// A second Close finds the connections closed.
		if e.conn.GetState() != connectivity.Shutdown {
			errs = append(errs, e.conn.Close())
		}
	}
	return errors.Join(errs...)
}

// Conn is the connection under the clients, for services that have no accessor here.
func (c *Client) Conn() grpc.ClientConnInterface { return conn{c} }

// Control returns SwarmKit's control service.
func (c *Client) Control() api.ControlClient { return api.NewControlClient(conn{c}) }

// Health returns the service that tells whether a manager serves.
func (c *Client) Health() api.HealthClient { return api.NewHealthClient(conn{c}) }

// Objects returns the service for objects of any kind.
func (c *Client) Objects() holdfast.ObjectsClient { return holdfast.NewObjectsClient(conn{c}) }

// Stacks returns the service for stacks.
func (c *Client) Stacks() holdfast.StacksClient { return holdfast.NewStacksClient(conn{c}) }

// Cluster returns the service for the managers themselves.
func (c *Client) Cluster() holdfast.ClusterClient { return holdfast.NewClusterClient(conn{c}) }

// Revision returns the newest revision that any reply told of, or 0.
func (c *Client) Revision() uint64 { return c.seen.Load() }

// saw takes in the revision that the trailer of a reply tells of.
func (c *Client) saw(values []string) {
	for _, v := range values {
		if _, revision, err := wire.ParseRevision(v); err == nil { // else of a form that is not known yet
			c.sawRevision(revision)
		}
	}
}

func (c *Client) sawRevision(revision uint64) {
	for {
		old := c.seen.Load()
		if revision <= old || c.seen.CompareAndSwap(old, revision) {
			return
		}
	}
}

// prefer makes an endpoint the first that calls try.
func (c *Client) prefer(e *endpoint) { c.preferred.Store(int64(slices.Index(c.endpoints, e))) }
