package transport

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc"

	"holdfast/api/holdfast"
)

func TestMessagesComeInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.end(1, "a"), w.end(2, "b").listen()
		a.SetPeers(peers(a, b))
		var want []string
		for i := range uint64(200) {
			size := 10
			if i%50 == 3 { // an entry of a whole transaction
				size = 4<<20 + 1<<10
			}
			a.Send([]*pb.Message{message(1, 2, i, size)})
			want = append(want, fmt.Sprint("MsgApp ", i))
		}
		time.Sleep(time.Second)
		got, _, _ := b.node.look()
		if _, unreachable, _ := a.node.look(); !slices.Equal(got, want) || unreachable > 0 {
			t.Errorf("got %d messages, %d were dropped", len(got), unreachable)
		}
		h, ok := b.Heard(1)
		if !ok || h.Revision != 7 || string(h.Hash) != "h" || h.Process != 101 || b.Process(1) != 101 || h.Format != Format {
			t.Errorf("heard %+v", h)
		}
		if b.Process(9) != 0 {
			t.Error("heard of one that never spoke")
		}
	})
}

// What waits for one peer has a bound; what goes over it is dropped, and reported.
func TestQueueIsBounded(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
		n    int
		most int
	}{{"by number", 1, maxQueued + 100, maxQueued}, {"by bytes", 1 << 20, 100, maxQueuedBytes >> 20}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				a, b := w.end(1, "a"), w.end(2, "b")
				p := newPeer(a.Transport, 2, "b") // nobody sends from it
				a.peers[2] = p
				_ = b
				for i := range c.n {
					a.Send([]*pb.Message{message(1, 2, uint64(i), c.size)})
				}
				_, unreachable, _ := a.node.look()
				if len(p.queue) > c.most || unreachable != c.n-len(p.queue) || p.bytes > maxQueuedBytes {
					t.Errorf("%d wait, %d are reported, of %d", len(p.queue), unreachable, c.n)
				}
				for len(p.queue) > 0 {
					if batch, _ := p.take(); len(batch) > 1 && len(batch)*c.size > maxBatchBytes {
						t.Fatalf("a batch of %d", len(batch))
					}
				}
				if p.bytes != 0 {
					t.Errorf("%d bytes are counted in an empty queue", p.bytes)
				}
				a.Send([]*pb.Message{message(1, 2, 0, maxQueuedBytes)})
				if len(p.queue) != 1 {
					t.Error("a message larger than the bound never goes")
				}
			})
		})
	}
}

// A receiver that does not read holds up its own peer only, and what waits for it is bounded.
func TestSlowReceiver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.end(1, "a"), w.end(2, "b").listen(), w.end(3, "c").listen()
		goOn := make(chan struct{})
		b.node.receive = func() { <-goOn }
		a.SetPeers(peers(a, b, c))
		for i := range uint64(200) {
			a.Send([]*pb.Message{message(1, 2, i, 1<<20), message(1, 3, i, 10)})
		}
		time.Sleep(time.Second)
		if got, _, _ := c.node.look(); len(got) != 200 {
			t.Errorf("the other peer got %d", len(got))
		}
		if _, unreachable, _ := a.node.look(); unreachable < 50 {
			t.Errorf("%d were dropped", unreachable)
		}
		close(goOn)
	})
}

func TestPeerComesBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.end(1, "a"), w.end(2, "b")
		a.SetPeers(peers(a, b))
		a.Send([]*pb.Message{message(1, 2, 1, 10)})
		time.Sleep(time.Minute)
		if n := w.dialed("b"); n < 30 || n > 200 {
			t.Errorf("%d attempts in a minute", n)
		}
		if _, unreachable, _ := a.node.look(); unreachable == 0 {
			t.Error("nothing was reported")
		}
		b.listen()
		time.Sleep(2 * time.Second)
		a.Send([]*pb.Message{message(1, 2, 2, 10)})
		time.Sleep(time.Second)
		if got, _, _ := b.node.look(); !slices.Equal(got, []string{"MsgApp 2"}) {
			t.Errorf("got %v", got)
		}
		b.stop()
		time.Sleep(5 * time.Second) // it is noticed without anything to send
		b.listen()
		time.Sleep(2 * time.Second)
		a.Send([]*pb.Message{message(1, 2, 3, 10)})
		time.Sleep(time.Second)
		if got, _, _ := b.node.look(); !slices.Equal(got, []string{"MsgApp 2", "MsgApp 3"}) {
			t.Errorf("after a restart: got %v", got)
		}
	})
}

// halfEnded is a stream whose sender is told, once, that it is over, while its receiver is not.
type halfEnded struct {
	grpc.ClientStream
	told *atomic.Bool
}

func (s halfEnded) SendMsg(m any) error {
	if err := s.ClientStream.SendMsg(m); err != nil || s.told.Swap(true) {
		return err
	}
	return io.EOF
}

// gRPC can tell a sender that its stream is over, and open it anew by itself, so that the receiver
// is told nothing. The peer is not lost for that.
func TestStreamThatHalfEnds(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		told := new(atomic.Bool)
		w.options = append(w.options, grpc.WithStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				s, err := streamer(ctx, desc, cc, method, opts...)
				return halfEnded{s, told}, err
			}))
		a, b := w.end(1, "a"), w.end(2, "b").listen()
		a.SetPeers(peers(a, b))
		a.Send([]*pb.Message{message(1, 2, 1, 10)})
		time.Sleep(time.Minute)
		if _, unreachable, _ := a.node.look(); unreachable != 1 || !told.Load() {
			t.Errorf("reported unreachable %d times", unreachable)
		}
		a.Send([]*pb.Message{message(1, 2, 2, 10)})
		time.Sleep(time.Second)
		if got, _, _ := b.node.look(); !slices.Equal(got, []string{"MsgApp 1", "MsgApp 2"}) {
			t.Errorf("got %v", got)
		}
	})
}

// A peer that refuses is not asked over and over: what it took before it refused does not tell
// that it is well.
func TestRefusalBacksOff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.end(1, "a"), w.end(2, "b").listen()
		b.cfg.ClusterID = "other"
		a.SetPeers(peers(a, b))
		for range 600 {
			a.Send([]*pb.Message{message(1, 2, 1, 10)})
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.dialed("b"); n > 150 {
			t.Errorf("%d attempts in a minute", n)
		}
		if got, _, _ := b.node.look(); len(got) > 0 {
			t.Errorf("a message of another cluster was taken: %v", got)
		}
	})
}

func TestServerRefuses(t *testing.T) {
	good := func() *holdfast.Batch { return &holdfast.Batch{ClusterID: "c", From: 1, To: 2, Addr: "a"} }
	for _, c := range []struct {
		name   string
		change func(b *holdfast.Batch)
		want   string
	}{
		{"another cluster", func(b *holdfast.Batch) { b.ClusterID = "x" }, "cluster x"},
		{"another member", func(b *holdfast.Batch) { b.To = 3 }, "for member 3"},
		{"oneself", func(b *holdfast.Batch) { b.From = 2 }, "from member 2"},
		{"nobody", func(b *holdfast.Batch) { b.From = 0 }, "from member 0"},
		{"removed", func(b *holdfast.Batch) { b.From = 9 }, "removed from the cluster"},
		{"garbage", func(b *holdfast.Batch) { b.Messages = [][]byte{{0xff}} }, "not a raft message"},
		{"of another sender", func(b *holdfast.Batch) { b.Messages = [][]byte{encode(t, message(4, 2, 1, 1))} }, "from 4"},
		{"to another member", func(b *holdfast.Batch) { b.Messages = [][]byte{encode(t, message(1, 4, 1, 1))} }, "to 4"},
		{"snapshot", func(b *holdfast.Batch) { b.Messages = [][]byte{encode(t, snapshotMessage(1, 2, 1))} }, "MsgSnap"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.removed = []uint64{9}
				b := w.end(2, "b").listen()
				conn, err := w.dial("b")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				stream, err := holdfast.NewRaftClient(conn).Messages(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				batch := good()
				c.change(batch)
				if err := stream.Send(batch); err != nil {
					t.Fatal(err)
				}
				if err := end(stream); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v", err)
				}
				if got, _, _ := b.node.look(); len(got) > 0 {
					t.Errorf("taken: %v", got)
				}
			})
		})
	}
}

// A removed member is told, also when it has nothing to send right then.
func TestRemovedMemberIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.end(1, "a"), w.end(2, "b").listen()
		a.SetPeers(peers(a, b))
		a.Send([]*pb.Message{message(1, 2, 1, 10)})
		time.Sleep(time.Second)
		w.mu.Lock()
		w.removed = []uint64{1}
		w.mu.Unlock()
		a.Send([]*pb.Message{message(1, 2, 2, 10)})
		time.Sleep(time.Second)
		a.node.mu.Lock()
		if !a.node.removed {
			t.Error("it does not know")
		}
		a.node.mu.Unlock()
		if got, _, _ := b.node.look(); !slices.Equal(got, []string{"MsgApp 1"}) {
			t.Errorf("taken: %v", got)
		}
	})
}

// A member that joins knows nobody, and answers whoever speaks to it, within a bound.
func TestMeet(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		lead, joiner := w.end(1, "a").listen(), w.end(2, "b").listen()
		lead.SetPeers(peers(lead, joiner))
		lead.Send([]*pb.Message{message(1, 2, 1, 10)})
		time.Sleep(time.Second)
		joiner.Send([]*pb.Message{message(2, 1, 5, 10)})
		time.Sleep(time.Second)
		if got, _, _ := lead.node.look(); !slices.Equal(got, []string{"MsgApp 5"}) {
			t.Errorf("the leader got %v", got)
		}
		for i := range uint64(100) {
			joiner.meet(&holdfast.Batch{From: 10 + i, Addr: "x"})
		}
		joiner.mu.Lock()
		known := len(joiner.peers)
		joiner.mu.Unlock()
		if known > maxMet+1 || len(joiner.heard.peers) > maxMet+1 {
			t.Errorf("%d peers, heard of %d", known, len(joiner.heard.peers))
		}
		joiner.SetPeers(peers(lead, joiner)) // now it knows
		joiner.mu.Lock()
		known = len(joiner.peers)
		joiner.mu.Unlock()
		if known != 1 || len(joiner.heard.peers) > 1 {
			t.Errorf("%d peers after the membership is known, heard of %d", known, len(joiner.heard.peers))
		}
	})
}

// Stop ends everything, whatever is under way. (goleak and the bubble look for what is left.)
func TestStop(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.end(1, "a"), w.end(2, "b").listen()
		b.node.reading = func() { time.Sleep(time.Hour) }
		a.SetPeers(append(peers(a, b), holdfast.Peer{RaftID: 3, Addr: "away"}))
		a.Send([]*pb.Message{snapshotMessage(1, 2, 9), message(1, 2, 1, 10), message(1, 3, 1, 10)})
		time.Sleep(time.Second)
		began := time.Now()
		a.Stop()
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("it took %v", waited)
		}
		a.Send([]*pb.Message{snapshotMessage(1, 2, 9), message(1, 2, 1, 10)})
		a.SetPeers(peers(a, b))
		a.meet(&holdfast.Batch{From: 7, Addr: "x"})
		if _, _, told := a.node.look(); len(told) != 2 {
			t.Errorf("told %v", told)
		}
	})
}

func TestHello(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.end(2, "b").listen()
		conn, err := w.dial("b")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		got, err := holdfast.NewRaftClient(conn).Hello(t.Context(), &holdfast.HelloRequest{})
		if err != nil || got.ClusterID != "c" || got.NodeID != "n2" || got.RaftID != 2 {
			t.Errorf("got %v, %v", got, err)
		}
	})
}
