package transport

import (
	"bytes"
	"io"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"holdfast/api/holdfast"
)

func encode(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzBatch decodes what comes over the wire: it is refused, or is what the batch says.
func FuzzBatch(f *testing.F) {
	good := holdfast.Batch{ClusterID: "c", From: 1, To: 2, Messages: [][]byte{encode(f, message(1, 2, 3, 4))}}
	data, err := good.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var b holdfast.Batch
		if b.Unmarshal(data) != nil {
			return
		}
		messages, err := decodeBatch(&b)
		if err != nil {
			return
		}
		for _, m := range messages {
			if m.GetFrom() != b.From || m.GetTo() != b.To || m.GetType() == pb.MsgSnap {
				t.Errorf("taken: %v", m)
			}
		}
	})
}

// FuzzChunks reads a snapshot from chunks as they come over the wire: what is read to the end
// has the length that the first chunk told.
func FuzzChunks(f *testing.F) {
	for _, c := range chunks(f, 10, 20) {
		data, err := c.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, data)
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		var rest []*holdfast.SnapshotChunk
		for _, data := range [][]byte{one, two} {
			c := &holdfast.SnapshotChunk{}
			if c.Unmarshal(data) != nil {
				return
			}
			rest = append(rest, c)
		}
		first := rest[0]
		rest = rest[1:]
		if m, err := decodeSnapshot(first); err == nil && m.GetType() != pb.MsgSnap {
			t.Errorf("taken: %v", m)
		}
		r := &chunkReader{chunk: first, size: first.SizeBytes, recv: func() (*holdfast.SnapshotChunk, error) {
			if len(rest) == 0 {
				return nil, io.EOF
			}
			c := rest[0]
			rest = rest[1:]
			return c, nil
		}}
		got, err := io.ReadAll(r)
		if err == nil && uint64(len(got)) != first.SizeBytes {
			t.Errorf("read %d bytes of %d", len(got), first.SizeBytes)
		}
		if err == nil && !bytes.HasPrefix(got, first.Data) {
			t.Error("another content")
		}
	})
}
