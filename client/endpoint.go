package client

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"

	"holdfast/internal/codec"
	"holdfast/internal/errkind"
)

const (
	unixScheme = "unix://"

	// A manager that does not answer for keepaliveTime is asked whether it still is there,
	// and given up after keepaliveTimeout.
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 5 * time.Second

	// connectTimeout bounds one attempt to connect.
	connectTimeout = 3 * time.Second
	// maxDialBackoff is how long an endpoint that is back may wait to be noticed. (gRPC could
	// be told to try at once, with ResetConnectBackoff, but in v1.85.0 that goes through a map
	// that other goroutines of the connection change meanwhile.)
	maxDialBackoff = 500 * time.Millisecond
)

// endpoint is a manager that can be called.
type endpoint struct {
	name string
	conn *grpc.ClientConn
}

func newEndpoint(name string, dial func(context.Context, string) (net.Conn, error)) (*endpoint, error) {
	if err := checkEndpoint(name); err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///"+name,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx, name) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"), // a path is no authority
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(), // retries are made here, with a request ID
		grpc.WithStatsHandler(sentTracker{}),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(codec.New()), grpc.MaxCallRecvMsgSize(maxReply)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: keepaliveTime, Timeout: keepaliveTimeout,
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: firstDelay, Multiplier: backoff.DefaultConfig.Multiplier,
				Jitter: backoff.DefaultConfig.Jitter, MaxDelay: maxDialBackoff,
			},
			MinConnectTimeout: connectTimeout,
		}),
	)
	if err != nil {
		return nil, errkind.Field("endpoints", "%q: %v", name, err)
	}
	return &endpoint{name: name, conn: conn}, nil
}

// checkEndpoint tells what is wrong with the name of an endpoint.
func checkEndpoint(name string) error {
	if path, ok := strings.CutPrefix(name, unixScheme); ok {
		if !filepath.IsAbs(path) {
			return errkind.Field("endpoints", "%q: the path of a socket must be absolute", name)
		}
		return nil
	}
	host, port, err := net.SplitHostPort(name)
	if err != nil || port == "" || host == "" || strings.Contains(name, "/") {
		return errkind.Field("endpoints", "%q is neither unix://PATH nor HOST:PORT", name)
	}
	if host != "localhost" && !isLoopback(host) {
		return errkind.Field("endpoints", "%q is not a loopback address: remote access needs TLS, which is not there yet", name).
			WithHint("use a manager's unix socket, or an address within 127.0.0.0/8 or [::1]")
	}
	return nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// dial connects to an endpoint. The address that a name resolved to is checked as well.
func dial(ctx context.Context, name string) (net.Conn, error) {
	if path, ok := strings.CutPrefix(name, unixScheme); ok {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err == nil && isLoopback(host) {
			return nil
		}
		return errkind.Field("endpoints", "%q is not a loopback address: remote access needs TLS, which is not there yet", address)
	}}
	return d.DialContext(ctx, "tcp", name)
}

type sentKey struct{}

// withSent returns a context for one attempt of a call, and what tells whether any of it
// was given to a connection. An attempt that was not sent was not done.
func withSent(ctx context.Context) (context.Context, *atomic.Bool) {
	sent := new(atomic.Bool)
	return context.WithValue(ctx, sentKey{}, sent), sent
}

// sentTracker sets what withSent returned.
type sentTracker struct{}

var _ stats.Handler = sentTracker{}

func (sentTracker) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutHeader); !ok {
		return
	}
	if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		sent.Store(true)
	}
}

func (sentTracker) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (sentTracker) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (sentTracker) HandleConn(context.Context, stats.ConnStats)                       {}
