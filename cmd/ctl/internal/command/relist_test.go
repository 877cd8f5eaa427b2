package command_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
)

// changing begins a watcher at revision 7, and tells of changes of a node from then on, one a
// minute.
type changing struct {
	holdfast.UnimplementedWatchServer
}

func (changing) Watch(stream holdfast.Watch_WatchServer) error {
	r, err := stream.Recv()
	if err != nil {
		return err
	}
	if k := r.GetCreate().GetKinds(); len(k) != 1 || k[0] != holdfast.Kind_KIND_NODE {
		return fmt.Errorf("asked for %v", k)
	}
	send := func(m *holdfast.WatchResponse) {
		m.WatcherID = 1
		if err == nil {
			err = stream.Send(m)
		}
	}
	send(&holdfast.WatchResponse{Revision: 7, Message: &holdfast.WatchResponse_Created{Created: &holdfast.WatcherCreated{}}})
	send(&holdfast.WatchResponse{Revision: 7, Message: &holdfast.WatchResponse_Synced{Synced: &holdfast.WatcherSynced{}}})
	for revision := uint64(8); err == nil && revision < 12; revision++ {
		time.Sleep(time.Minute)
		node := &holdfast.Object{Target: &holdfast.Object_Node{Node: &api.Node{ID: "n"}}}
		event := &holdfast.Event{Action: holdfast.Action_ACTION_UPDATE, Object: node}
		send(&holdfast.WatchResponse{Revision: revision, Message: &holdfast.WatchResponse_Events{
			Events: &holdfast.WatcherEvents{Events: []*holdfast.Event{event, event}},
		}})
	}
	<-stream.Context().Done()
	return err
}

// What is listed again is printed when it has changed, once for each revision.
func TestRelist(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "N\n1\n\nN\n2\n\nN\n3\n"},
		{[]string{"-o", "json"}, "[1]\n[2]\n[3]\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			env := &command.Env{Streams: cli.Streams{Out: &out, Err: &out}}
			lists := 0
			cl := serve(t, changing{})
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			env.AddFlags(flags)
			if err := flags.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err := command.Relist{
				Kinds: []holdfast.Kind{holdfast.Kind_KIND_NODE},
				List: func(_ context.Context, env *command.Env, _ *client.Client) error {
					lists++
					n := min(lists, 3) // what is changed then does not show
					if env.Printer().Format == cli.JSON {
						return env.Printf("[\n  %d\n]", n)
					}
					return env.Printf("N\n%d", n)
				},
			}.Watch(ctx, env, cl)
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want || lists != 5 {
				t.Errorf("after %d lists: %q, want %q", lists, out.String(), c.want)
			}
		})
	}
}
