package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"holdfast/api/holdfast"
	"holdfast/internal/codec"
	"holdfast/internal/errkind"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeNode notes what a transport tells it.
type fakeNode struct {
	mu          sync.Mutex
	received    []*pb.Message
	unreachable map[uint64]int
	snapshots   []string // "peer ok"
	file        []byte   // that is sent
	got         []byte   // that was received
	removed     bool

	receive  func() // called by Receive
	reading  func() // called before a snapshot is read
	readFail error  // of the file that is sent
}

func (n *fakeNode) Receive(messages []*pb.Message) {
	if n.receive != nil {
		n.receive()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.received = append(n.received, messages...)
}

func (n *fakeNode) ReceiveSnapshot(m *pb.Message, file io.Reader) error {
	if n.reading != nil {
		n.reading()
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.got = data
	n.received = append(n.received, m)
	return nil
}

func (n *fakeNode) ReportUnreachable(id uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unreachable == nil {
		n.unreachable = map[uint64]int{}
	}
	n.unreachable[id]++
}

func (n *fakeNode) ReportSnapshot(id uint64, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.snapshots = append(n.snapshots, fmt.Sprint(id, " ", ok))
}

func (n *fakeNode) SnapshotFile(*pb.Message) (io.ReadCloser, int64, error) {
	r := io.Reader(bytes.NewReader(n.file))
	if n.readFail != nil {
		r = io.MultiReader(r, errReader{n.readFail})
	}
	return io.NopCloser(r), int64(len(n.file)), nil
}

func (n *fakeNode) Removed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.removed = true
}

// look returns what was received, as "type index", and what was told.
func (n *fakeNode) look() (received []string, unreachable int, snapshots []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.received {
		received = append(received, fmt.Sprint(m.GetType(), " ", m.GetIndex()))
	}
	for _, count := range n.unreachable {
		unreachable += count
	}
	return received, unreachable, slices.Clone(n.snapshots)
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// world is a network in memory.
type world struct {
	t         *testing.T
	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
	dials     map[string]int
	removed   []uint64
	options   []grpc.DialOption // beside those that each connection has
}

func newWorld(t *testing.T) *world {
	return &world{t: t, listeners: map[string]*bufconn.Listener{}, dials: map[string]int{}}
}

// at is one end: a node, its transport, and its server once it listens.
type at struct {
	*Transport
	world *world
	node  *fakeNode
	addr  string
	stop  func()
}

func (w *world) end(id uint64, addr string) *at {
	node := &fakeNode{}
	t := New(Config{
		ClusterID: "c", NodeID: fmt.Sprint("n", id), RaftID: id, Addr: addr, Process: 100 + id,
		Dial: w.dial, Position: func() Position { return Position{Revision: 7, Hash: []byte("h")} },
		IsRemoved: func(id uint64) bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Contains(w.removed, id)
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	t.Attach(node)
	a := &at{Transport: t, world: w, node: node, addr: addr, stop: func() {}}
	w.t.Cleanup(func() {
		t.Stop()
		a.stop()
	})
	return a
}

// listen begins to serve.
func (a *at) listen() *at {
	l := bufconn.Listen(1 << 20)
	s := grpc.NewServer(grpc.ForceServerCodecV2(codec.New()), grpc.MaxRecvMsgSize(16<<20), grpc.WaitForHandlers(true),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			if err := h(srv, ss); err != nil {
				return errkind.Status(err).Err()
			}
			return nil
		}))
	holdfast.RegisterRaftServer(s, NewServer(a.Transport))
	a.world.mu.Lock()
	a.world.listeners[a.addr] = l
	a.world.mu.Unlock()
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := s.Serve(l); err != nil {
			a.world.t.Error(err)
		}
	}()
	var once sync.Once
	a.stop = func() {
		once.Do(func() {
			a.world.mu.Lock()
			delete(a.world.listeners, a.addr)
			a.world.mu.Unlock()
			s.Stop()
			<-served
		})
	}
	return a
}

func (w *world) dial(addr string) (*grpc.ClientConn, error) {
	w.mu.Lock()
	w.dials[addr]++
	w.mu.Unlock()
	return grpc.NewClient("passthrough:///"+addr, append(w.options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.New()), grpc.MaxCallSendMsgSize(math.MaxInt32)),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			w.mu.Lock()
			l := w.listeners[addr]
			w.mu.Unlock()
			if l == nil {
				return nil, errors.New("nobody listens")
			}
			return l.DialContext(ctx)
		}))...)
}

func (w *world) dialed(addr string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dials[addr]
}

func message(from, to, index uint64, data int) *pb.Message {
	return &pb.Message{
		Type: pb.MsgApp.Enum(), From: &from, To: &to, Term: new(uint64(1)), Index: &index,
		Entries: []*pb.Entry{{Data: make([]byte, data)}},
	}
}

func snapshotMessage(from, to, index uint64) *pb.Message {
	return &pb.Message{
		Type: pb.MsgSnap.Enum(), From: &from, To: &to, Term: new(uint64(1)), Index: new(index),
		Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: &index, Term: new(uint64(1))}},
	}
}

func peers(of ...*at) []holdfast.Peer {
	var ps []holdfast.Peer
	for _, a := range of {
		ps = append(ps, holdfast.Peer{RaftID: a.cfg.RaftID, Addr: a.addr})
	}
	return ps
}

func bubble(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { fn(t, newWorld(t)) })
}
