package watchapi_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/codec"
	"holdfast/internal/errkind"
	"holdfast/internal/wire"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
	"holdfast/manager/watchapi"
)

// reader reads the newest state.
type reader struct{ store *store.MemoryStore }

func (r reader) Read(context.Context) (store.ReadTx, error) { return r.store.Root(), nil }

// fixture is a store, and a server over it that is reached by a connection in memory.
type fixture struct {
	t      testing.TB
	store  *store.MemoryStore
	loop   *storetest.Loop
	server *watchapi.Server
	conn   *grpc.ClientConn
	leader atomic.Bool
}

// holdfastCreate is short for what most requests are.
type holdfastCreate = holdfast.CreateWatcher

func newFixture(t testing.TB, cfg watchapi.Config) *fixture {
	t.Helper()
	loop := storetest.NewLoop(t, store.Options{})
	f := &fixture{t: t, store: loop.Store, loop: loop}
	f.leader.Store(true)
	cfg.Store, cfg.Reader, cfg.HasLeader = f.store, reader{f.store}, f.leader.Load
	f.server = watchapi.New(cfg)
	s := grpc.NewServer(grpc.ForceServerCodecV2(codec.New()), grpc.MaxSendMsgSize(64<<20),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if err := handle(srv, stream); err != nil {
				return errkind.Status(err).Err()
			}
			return nil
		}))
	holdfast.RegisterWatchServer(s, f.server)
	api.RegisterWatchServer(s, watchapi.NewSwarm(f.server))
	l := bufconn.Listen(1 << 16)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///memory",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.New()), grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	f.conn = conn
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return f
}

// bubble runs a test in a bubble of its own, where waiting costs no time.
func bubble(t *testing.T, test func(*testing.T)) { t.Helper(); synctest.Test(t, test) }

// update does one transaction.
func (f *fixture) update(fn func(*store.Tx) error) uint64 {
	f.t.Helper()
	result, err := f.store.Update(f.t.Context(), fn)
	if err != nil {
		f.t.Fatal(err)
	}
	return result.Revision
}

func (f *fixture) compact() uint64 {
	f.t.Helper()
	floor, err := f.store.Compact(f.t.Context(), 0)
	if err != nil {
		f.t.Fatal(err)
	}
	return floor
}

// put creates or updates services and networks, each given as "KIND NAME[ LABEL]".
func (f *fixture) put(objects ...string) uint64 {
	f.t.Helper()
	return f.update(func(tx *store.Tx) error {
		for _, text := range objects {
			if err := put(tx, strings.Fields(text)); err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
		}
		return nil
	})
}

func put(tx *store.Tx, words []string) error {
	a := api.Annotations{Name: words[1]}
	if len(words) > 2 {
		key, value, _ := strings.Cut(words[2], "=")
		a.Labels = map[string]string{key: value}
	}
	id := words[1] + "-id"
	switch words[0] {
	case "service":
		return replace(tx, store.Services, &api.Service{ID: id, Spec: api.ServiceSpec{Annotations: a}},
			func(o, old *api.Service) { o.Meta = old.Meta })
	case "network":
		return replace(tx, store.Networks, &api.Network{ID: id, Spec: api.NetworkSpec{Annotations: a}},
			func(o, old *api.Network) { o.Meta = old.Meta })
	case "secret":
		return replace(tx, store.Secrets, &api.Secret{ID: id, Spec: api.SecretSpec{Annotations: a, Data: []byte("canary")}},
			func(o, old *api.Secret) { o.Meta = old.Meta })
	case "task":
		return replace(tx, store.Tasks, &api.Task{ID: id, Annotations: a, ServiceID: "s" + words[2], NodeID: "n" + words[2]},
			func(o, old *api.Task) { o.Meta = old.Meta })
	}
	return fmt.Errorf("no such kind")
}

// table is what put and drop ask of a table.
type table[T any] interface {
	Get(tx store.ReadTx, id string) T
	Create(tx *store.Tx, o T) (T, error)
	Update(tx *store.Tx, o T) (T, error)
}

func replace[T interface {
	comparable
	state.Object
}](tx *store.Tx, t table[T], o T, take func(o, old T)) error {
	var zero T
	old := t.Get(tx, o.GetID())
	if old == zero {
		_, err := t.Create(tx, o)
		return err
	}
	take(o, old)
	_, err := t.Update(tx, o)
	return err
}

func (f *fixture) drop(text string) uint64 {
	f.t.Helper()
	kind, name, _ := strings.Cut(text, " ")
	return f.update(func(tx *store.Tx) error {
		var err error
		switch kind {
		case "service":
			_, err = store.Services.Delete(tx, name+"-id")
		case "network":
			_, err = store.Networks.Delete(tx, name+"-id")
		case "secret":
			_, err = store.Secrets.Delete(tx, name+"-id")
		case "task":
			_, err = store.Tasks.Delete(tx, name+"-id")
		}
		return err
	})
}

// watching is a client's stream.
type watching struct {
	t      testing.TB
	stream grpc.BidiStreamingClient[holdfast.WatchRequest, holdfast.WatchResponse]
	cancel context.CancelFunc
}

func (f *fixture) watch() *watching { f.t.Helper(); return f.watchIn(f.t.Context()) }

func (f *fixture) localWatch() *watching {
	f.t.Helper()
	return f.watchIn(metadata.AppendToOutgoingContext(f.t.Context(), wire.Read, "local"))
}

func (f *fixture) watchIn(ctx context.Context) *watching {
	f.t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	stream, err := holdfast.NewWatchClient(f.conn).Watch(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(cancel)
	return &watching{f.t, stream, cancel}
}

func (w *watching) send(r *holdfast.WatchRequest) {
	w.t.Helper()
	if err := w.stream.Send(r); err != nil {
		w.t.Fatal(err)
	}
}

// create asks for a watcher; nil is one of all there is.
func (w *watching) create(c *holdfast.CreateWatcher) {
	w.t.Helper()
	if c == nil {
		c = &holdfast.CreateWatcher{}
	}
	w.send(&holdfast.WatchRequest{Request: &holdfast.WatchRequest_Create{Create: c}})
}

func (w *watching) cancelWatcher(id uint64) {
	w.t.Helper()
	w.send(&holdfast.WatchRequest{Request: &holdfast.WatchRequest_Cancel{Cancel: &holdfast.CancelWatcher{WatcherID: id}}})
}

func (w *watching) progress(id uint64) {
	w.t.Helper()
	w.send(&holdfast.WatchRequest{Request: &holdfast.WatchRequest_Progress{Progress: &holdfast.AskProgress{WatcherID: id}}})
}

func (w *watching) next() *holdfast.WatchResponse {
	w.t.Helper()
	m, err := w.stream.Recv()
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// want reads as many messages as there are lines, and compares them.
func (w *watching) want(lines ...string) {
	w.t.Helper()
	for _, line := range lines {
		if got := format(w.next()); got != line {
			w.t.Fatalf("got  %s\nwant %s", got, line)
		}
	}
}

// format shows a message: WATCHER@REVISION WHAT.
func format(m *holdfast.WatchResponse) string {
	s := fmt.Sprintf("%d@%d ", m.WatcherID, m.Revision)
	switch m := m.Message.(type) {
	case *holdfast.WatchResponse_Created:
		return s + "created"
	case *holdfast.WatchResponse_Synced:
		return s + "synced"
	case *holdfast.WatchResponse_Progress:
		return s + "progress"
	case *holdfast.WatchResponse_Canceled:
		if m.Canceled.Reason == "" {
			return s + "canceled"
		}
		return s + "canceled " + m.Canceled.Reason + ": " + m.Canceled.Message
	case *holdfast.WatchResponse_Objects:
		s += "objects"
		for _, o := range m.Objects.Objects {
			s += " " + name(o)
		}
		return s
	case *holdfast.WatchResponse_Events:
		s += "events"
		for _, e := range m.Events.Events {
			s += fmt.Sprintf(" %c%s", "?+~-"[e.Action], name(e.Object))
			if e.Left {
				s += "(left)"
			}
			if e.Previous != nil {
				s += "(was " + name(e.Previous) + ")"
			}
		}
		if m.Events.More {
			s += " …"
		}
		return s
	}
	return s + "nothing"
}

// name shows an object: its name, and its labels.
func name(o *holdfast.Object) string {
	var a *api.Annotations
	switch o := o.GetTarget().(type) {
	case *holdfast.Object_Service:
		a = &o.Service.Spec.Annotations
	case *holdfast.Object_Network:
		a = &o.Network.Spec.Annotations
	case *holdfast.Object_Secret:
		if a = &o.Secret.Spec.Annotations; len(o.Secret.Spec.Data) > 0 {
			return "SECRET DATA"
		}
	case *holdfast.Object_Task:
		a = &o.Task.Annotations
	default:
		return "nothing"
	}
	s := a.Name
	for k, v := range a.Labels {
		s += "[" + k + "=" + v + "]"
	}
	return s
}

// wantEnd checks how a stream ends.
func wantEnd(t testing.TB, err error, kind errkind.Kind, text string) {
	t.Helper()
	e, ok := errors.AsType[*errkind.Error](errkind.FromStatus(err))
	if !ok || e.Kind != kind || !strings.Contains(e.Error(), text) {
		t.Fatalf("got %v; want kind %d with %q", err, kind, text)
	}
}
