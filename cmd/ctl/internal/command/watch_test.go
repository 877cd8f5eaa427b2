package command_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
	"holdfast/internal/codec"
	"holdfast/internal/errkind"
)

// server begins watchers, and nothing comes of them; a silent one does not even begin them.
type server struct {
	holdfast.UnimplementedWatchServer
	silent bool
}

func (s server) Watch(stream holdfast.Watch_WatchServer) error {
	if !s.silent {
		if err := stream.Send(&holdfast.WatchResponse{
			WatcherID: 1, Revision: 7, Message: &holdfast.WatchResponse_Created{Created: &holdfast.WatcherCreated{}},
		}); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

// serve returns a client of a server that lives as long as the test.
func serve(t *testing.T, s holdfast.WatchServer) *client.Client {
	l := bufconn.Listen(1 << 16)
	g := grpc.NewServer(grpc.ForceServerCodecV2(codec.New()),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second})) // as managers do
	holdfast.RegisterWatchServer(g, s)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	c, err := client.New(client.Options{
		Endpoints: []string{"unix:///m"},
		Dial:      func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Stop()
		if err := errors.Join(c.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return c
}

// That a watch is interrupted, or that its time is over, is no failure; that it could not begin
// is one.
func TestWatchEnds(t *testing.T) {
	for name, c := range map[string]struct {
		silent    bool
		interrupt bool
		broken    error
		kind      errkind.Kind
		fails     bool
	}{
		"interrupted":                     {interrupt: true},
		"interrupted before it could":     {interrupt: true, silent: true},
		"over":                            {},
		"over before it could":            {silent: true, fails: true, kind: errkind.DeadlineReached},
		"what is printed cannot be":       {broken: errkind.New(errkind.Limit, "disk full"), fails: true, kind: errkind.Limit},
		"an error that looks like an end": {broken: errkind.New(errkind.Canceled, "odd"), fails: true, kind: errkind.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if c.interrupt {
					time.AfterFunc(time.Minute, cancel)
				}
				var errs bytes.Buffer
				env := &command.Env{Streams: cli.Streams{Err: &errs}}
				err := command.Watch(ctx, env, serve(t, server{silent: c.silent}), client.WatchOptions{},
					func(client.Event) error { return c.broken })
				if c.fails != (err != nil) || c.fails && !errkind.Is(err, c.kind) {
					t.Errorf("got %v", err)
				}
				if errs.Len() > 0 {
					t.Errorf("told %q", errs.String())
				}
			})
		})
	}
}

// What goes on until it is interrupted is not ended by the timeout of other commands.
func TestTimeouts(t *testing.T) {
	for _, c := range []struct {
		args        []string
		long, limit bool
	}{
		{nil, false, true},
		{nil, true, false},
		{[]string{"--timeout", "1m"}, true, true},
		{[]string{"--timeout", "0"}, true, false},
		{[]string{"--timeout", "0"}, false, false},
	} {
		env := &command.Env{}
		limited := false
		do := func(ctx context.Context, _ *client.Client, _ []string) error {
			_, limited = ctx.Deadline()
			return nil
		}
		cmd := &cobra.Command{RunE: env.Run(do)}
		if c.long {
			cmd.RunE = env.RunLong(do)
		}
		env.AddFlags(cmd.Flags())
		cmd.SetArgs(append([]string{}, c.args...))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if limited != c.limit {
			t.Errorf("%s, long %v: limited %v", strings.Join(c.args, " "), c.long, limited)
		}
	}
}
