package watch

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/test/testcluster"
)

// TestManyWatchers has 10,000 watchers on ten streams, and then 1,000 streams: every one of
// them gets the change that is for it, and nothing else.
func TestManyWatchers(t *testing.T) {
	c := testcluster.New(t, 1)
	for _, many := range []struct{ streams, each int }{{10, 1000}, {1000, 1}} {
		t.Run(fmt.Sprintf("streams=%d,watchers=%d", many.streams, many.streams*many.each), func(t *testing.T) {
			ctx, cancel := context.WithCancel(testcluster.Context(t, 3*time.Minute))
			defer cancel()
			streams := make([]*manyStream, many.streams)
			var opening, reading errgroup.Group
			opening.SetLimit(32)
			conns := []*client.Client{c.Client(), c.Client()} // each carries a thousand streams
			for n := range streams {
				opening.Go(func() (err error) {
					streams[n], err = openMany(ctx, conns[n%2], n*many.each, many.each)
					return err
				})
			}
			if err := opening.Wait(); err != nil {
				t.Fatal(err)
			}
			for _, s := range streams {
				reading.Go(s.read)
			}
			for n := 0; n < many.streams*many.each; n += 256 {
				changeMany(ctx, t, c.Client(), n, min(256, many.streams*many.each-n))
			}
			if err := reading.Wait(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func manyName(n int) string { return fmt.Sprint("many-", n) }

// changeMany creates configs, and removes them again.
func changeMany(ctx context.Context, t *testing.T, c *client.Client, first, count int) {
	t.Helper()
	request := &holdfast.TxnRequest{}
	for n := range count {
		request.Operations = append(request.Operations,
			create(holdfast.Kind_KIND_CONFIG, api.Annotations{Name: manyName(first + n)}))
	}
	got, err := c.Objects().Txn(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	request = &holdfast.TxnRequest{}
	for _, o := range got.Objects {
		request.Operations = append(request.Operations, remove(holdfast.Kind_KIND_CONFIG, idOf(o)))
	}
	if _, err := c.Objects().Txn(ctx, request); err != nil {
		t.Fatal(err)
	}
}

// manyStream is a stream with a watcher for each of some names.
type manyStream struct {
	stream holdfast.Watch_WatchClient
	first  int
	each   int
}

// openMany opens a stream, and returns when all its watchers are synced.
func openMany(ctx context.Context, c *client.Client, first, each int) (*manyStream, error) {
	stream, err := holdfast.NewWatchClient(c.Conn()).Watch(ctx)
	if err != nil {
		return nil, err
	}
	go func() {
		for n := range each {
			err := stream.Send(&holdfast.WatchRequest{Request: &holdfast.WatchRequest_Create{Create: &holdfast.CreateWatcher{
				WatcherID: uint64(n + 1), Kinds: []holdfast.Kind{holdfast.Kind_KIND_CONFIG},
				Selector: holdfast.Selector{Names: []string{manyName(first + n)}},
			}}})
			if err != nil {
				return // Recv tells why
			}
		}
	}()
	for synced := 0; synced < each; {
		m, err := stream.Recv()
		switch {
		case err != nil:
			return nil, err
		case m.GetSynced() != nil:
			synced++
		case m.GetCreated() == nil:
			return nil, fmt.Errorf("got %v", m)
		}
	}
	return &manyStream{stream, first, each}, nil
}

// read reads until each watcher has seen its config come and go.
func (s *manyStream) read() error {
	seen := map[uint64]int{}
	for gone := 0; gone < s.each; {
		m, err := s.stream.Recv()
		if err != nil {
			return err
		}
		events := m.GetEvents().GetEvents()
		if len(events) != 1 {
			return fmt.Errorf("got %v", m)
		}
		want := holdfast.Action_ACTION_CREATE
		if seen[m.WatcherID]++; seen[m.WatcherID] == 2 {
			want = holdfast.Action_ACTION_REMOVE
			gone++
		}
		name := events[0].Object.GetConfig().GetSpec().Annotations.Name
		if events[0].Action != want || name != manyName(s.first+int(m.WatcherID)-1) {
			return fmt.Errorf("watcher %d got %v of %s", m.WatcherID, events[0].Action, name)
		}
	}
	return nil
}
