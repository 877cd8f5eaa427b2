package transport

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
)

func TestSnapshotIsStreamed(t *testing.T) {
	for _, size := range []int{0, 1, chunkBytes, chunkBytes + 1, 9<<20 + 7} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				a, b := w.end(1, "a"), w.end(2, "b").listen()
				a.SetPeers(peers(a, b))
				a.node.file = bytes.Repeat([]byte("0123456"), size/7+1)[:size]
				a.Send([]*pb.Message{snapshotMessage(1, 2, 9), message(1, 2, 3, 10)})
				time.Sleep(time.Second)
				got, _, _ := b.node.look()
				_, _, told := a.node.look()
				if slices.Sort(got); !slices.Equal(got, []string{"MsgApp 3", "MsgSnap 9"}) || !slices.Equal(told, []string{"2 true"}) {
					t.Errorf("got %v, told %v", got, told)
				}
				if !bytes.Equal(b.node.got, a.node.file) {
					t.Error("the file is another")
				}
			})
		})
	}
}

// Each snapshot is reported, however it ends: raft sends nothing else to that peer before.
func TestSnapshotIsAlwaysReported(t *testing.T) {
	one := []string{"2 false"}
	for _, c := range []struct {
		name string
		do   func(w *world, a, b *at)
		want []string
	}{
		{"unknown peer", func(_ *world, a, _ *at) { a.SetPeers(peers(a)); a.Send([]*pb.Message{snapshotMessage(1, 2, 9)}) }, one},
		{"nobody there", func(_ *world, a, b *at) { b.stop(); a.Send([]*pb.Message{snapshotMessage(1, 2, 9)}) }, one},
		{"peer leaves while it waits", func(_ *world, a, b *at) {
			p := newPeer(a.Transport, 2, "b")
			p.sendSnapshot(snapshotMessage(1, 2, 9))
			p.cancel()
			a.group.Go(p.run)
		}, one},
		{"peer moves while it is sent", func(_ *world, a, b *at) {
			b.node.reading = func() { time.Sleep(time.Second) }
			a.Send([]*pb.Message{snapshotMessage(1, 2, 9)})
			time.Sleep(100 * time.Millisecond)
			a.SetPeers([]holdfast.Peer{{RaftID: 1}, {RaftID: 2, Addr: "elsewhere"}})
		}, one},
		{"peer has left", func(_ *world, a, _ *at) {
			p := newPeer(a.Transport, 2, "b")
			p.leave()
			p.sendSnapshot(snapshotMessage(1, 2, 9))
		}, one},
		{"two wait", func(_ *world, a, _ *at) {
			p := newPeer(a.Transport, 2, "b")
			p.sendSnapshot(snapshotMessage(1, 2, 8))
			p.sendSnapshot(snapshotMessage(1, 2, 9))
			a.group.Go(p.run)
			time.Sleep(time.Second)
			p.cancel()
		}, []string{"2 false", "2 true"}},
		{"two at once", func(_ *world, a, b *at) {
			var busy atomic.Int32
			b.node.reading = func() {
				if busy.Add(1) > 1 {
					t.Error("two are on their way")
				}
				time.Sleep(time.Second)
				busy.Add(-1)
			}
			a.Send([]*pb.Message{snapshotMessage(1, 2, 8)})
			time.Sleep(100 * time.Millisecond)
			a.Send([]*pb.Message{snapshotMessage(1, 2, 9)})
		}, []string{"2 true", "2 true"}},
		{"receiver refuses", func(w *world, a, _ *at) {
			w.mu.Lock()
			w.removed = []uint64{1}
			w.mu.Unlock()
			a.Send([]*pb.Message{snapshotMessage(1, 2, 9)})
		}, one},
		{"receiver hangs", func(_ *world, a, b *at) {
			b.node.reading = func() { time.Sleep(time.Hour) }
			a.Send([]*pb.Message{snapshotMessage(1, 2, 9)})
			time.Sleep(3 * stallLimit)
		}, one},
		{"receiver is slow", func(_ *world, a, b *at) {
			b.node.reading = func() { time.Sleep(stallLimit - time.Second) }
			a.Send([]*pb.Message{snapshotMessage(1, 2, 9)})
			time.Sleep(3 * stallLimit)
		}, []string{"2 true"}},
		{"receiver stops", func(_ *world, a, b *at) {
			b.node.reading = func() { time.Sleep(time.Second) }
			a.Send([]*pb.Message{snapshotMessage(1, 2, 9)})
			time.Sleep(100 * time.Millisecond)
			b.stop()
		}, one},
		{"file cannot be read", func(_ *world, a, _ *at) {
			a.node.readFail = errors.New("bad sector")
			a.Send([]*pb.Message{snapshotMessage(1, 2, 9)})
		}, one},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				a, b := w.end(1, "a"), w.end(2, "b").listen()
				a.node.file = make([]byte, 3<<20)
				a.SetPeers(peers(a, b))
				time.Sleep(time.Second)
				c.do(w, a, b)
				time.Sleep(10 * time.Second)
				if _, _, told := a.node.look(); !slices.Equal(told, c.want) {
					t.Errorf("told %v, want %v", told, c.want)
				}
			})
		})
	}
}

func chunks(t testing.TB, sizes ...int) []*holdfast.SnapshotChunk {
	var cs []*holdfast.SnapshotChunk
	offset := 0
	for i, n := range sizes {
		data := bytes.Repeat([]byte{byte(i + 1)}, n)
		cs = append(cs, &holdfast.SnapshotChunk{
			ClusterID: "c", From: 1, To: 2, Offset: uint64(offset), Data: data, Crc: crc32.Checksum(data, castagnoli()),
		})
		offset += n
	}
	cs[0].Message, cs[0].SizeBytes = encode(t, snapshotMessage(1, 2, 9)), uint64(offset)
	return cs
}

func TestDamagedSnapshotsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(cs []*holdfast.SnapshotChunk) []*holdfast.SnapshotChunk
		want   string
	}{
		{"none", func(cs []*holdfast.SnapshotChunk) []*holdfast.SnapshotChunk { return cs }, ""},
		{"flipped bit", func(cs []*holdfast.SnapshotChunk) []*holdfast.SnapshotChunk { cs[1].Data[3] ^= 4; return cs }, "damaged"},
		{"flipped bit in the first", func(cs []*holdfast.SnapshotChunk) []*holdfast.SnapshotChunk { cs[0].Data[3] ^= 4; return cs }, "damaged"},
		{"wrong checksum", func(cs []*holdfast.SnapshotChunk) []*holdfast.SnapshotChunk { cs[2].Crc++; return cs }, "damaged"},
		{"missing chunk", func(cs []*holdfast.SnapshotChunk) []*holdfast.SnapshotChunk { return slices.Delete(cs, 1, 2) }, "follows"},
		{"missing end", func(cs []*holdfast.SnapshotChunk) []*holdfast.SnapshotChunk { return cs[:2] }, "ended after"},
		{"twice", func(cs []*holdfast.SnapshotChunk) []*holdfast.SnapshotChunk { return append(cs, cs[2]) }, "follows"},
		{"too long", func(cs []*holdfast.SnapshotChunk) []*holdfast.SnapshotChunk { cs[0].SizeBytes--; return cs }, "goes beyond"},
		{"no message", func(cs []*holdfast.SnapshotChunk) []*holdfast.SnapshotChunk { cs[0].Message = nil; return cs }, "type"},
		{"garbage", func(cs []*holdfast.SnapshotChunk) []*holdfast.SnapshotChunk { cs[0].Message = []byte{0xff}; return cs }, "not a raft message"},
		{"of another sender", func(cs []*holdfast.SnapshotChunk) []*holdfast.SnapshotChunk {
			cs[0].Message = encode(t, snapshotMessage(3, 2, 9))
			return cs
		}, "from 3"},
		{"another cluster", func(cs []*holdfast.SnapshotChunk) []*holdfast.SnapshotChunk { cs[0].ClusterID = "x"; return cs }, "cluster x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				b := w.end(2, "b").listen()
				conn, err := w.dial("b")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				stream, err := holdfast.NewRaftClient(conn).Snapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, chunk := range c.change(chunks(t, 10, 10, 10)) {
					if err := stream.Send(chunk); err != nil && !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
				}
				_, err = stream.CloseAndRecv()
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(errkind.FromStatus(err).Error(), c.want) {
					t.Errorf("got %v", err)
				}
				if got, _, _ := b.node.look(); (len(got) > 0) != (c.want == "") {
					t.Errorf("taken: %v", got)
				}
			})
		})
	}
}
