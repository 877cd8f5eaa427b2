package transport

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
)

// hintRemoved is how a member that was removed is told.
const hintRemoved = "empty its state folder to let the machine join again"

var errRemoved = errors.New("the sender was removed from the cluster")

// Server is the receiving end, for all peers.
type Server struct {
	holdfast.UnimplementedRaftServer
	t *Transport
}

// NewServer makes the receiving end of a transport.
func NewServer(t *Transport) *Server { return &Server{t: t} }

// check refuses a call that is not meant for this member, or comes from one that was removed.
func (s *Server) check(clusterID string, from, to uint64) error {
	cfg := s.t.cfg
	switch {
	case clusterID != cfg.ClusterID:
		return errkind.New(errkind.Invalid, "message of cluster %s, this is %s", clusterID, cfg.ClusterID)
	case to != cfg.RaftID:
		return errkind.New(errkind.Invalid, "message for member %d, this is %d", to, cfg.RaftID)
	case cfg.IsRemoved(from):
		return (&errkind.Error{
			Kind: errkind.Refused, Msg: errRemoved.Error(), Hint: hintRemoved, Err: errRemoved,
		}).On("member", fmt.Sprint(from))
	}
	return nil
}

// Messages implements holdfast.RaftServer.
func (s *Server) Messages(stream grpc.ClientStreamingServer[holdfast.Batch, holdfast.BatchEnd]) error {
	for {
		b, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&holdfast.BatchEnd{})
		}
		if err != nil {
			return err
		}
		if err := s.check(b.ClusterID, b.From, b.To); err != nil {
			return err
		}
		messages := make([]*pb.Message, 0, len(b.Messages))
		for _, data := range b.Messages {
			m := &pb.Message{}
			if err := proto.Unmarshal(data, m); err != nil {
				return errkind.Field("messages", "not a raft message: %v", err)
			}
			if m.GetFrom() != b.From || m.GetType() == pb.MsgSnap {
				return errkind.Field("messages", "message of type %v from %d in a batch from %d", m.GetType(), m.GetFrom(), b.From)
			}
			messages = append(messages, m)
		}
		s.t.heard.note(b)
		s.t.meet(b.From, b.Addr)
		s.t.node.Receive(messages)
	}
}

// Snapshot implements holdfast.RaftServer.
func (s *Server) Snapshot(stream grpc.ClientStreamingServer[holdfast.SnapshotChunk, holdfast.SnapshotEnd]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if err := s.check(first.ClusterID, first.From, first.To); err != nil {
		return err
	}
	m := &pb.Message{}
	if err := proto.Unmarshal(first.Message, m); err != nil {
		return errkind.Field("message", "not a raft message: %v", err)
	}
	if m.GetType() != pb.MsgSnap || m.GetFrom() != first.From {
		return errkind.Field("message", "message of type %v from %d with a snapshot from %d", m.GetType(), m.GetFrom(), first.From)
	}
	r := &chunkReader{stream: stream, chunk: first, size: first.SizeBytes}
	s.t.cfg.Logger.Info("receiving snapshot", "peer", first.From,
		"index", m.GetSnapshot().GetMetadata().GetIndex(), "bytes", first.SizeBytes)
	if err := s.t.node.ReceiveSnapshot(m, r); err != nil {
		return err
	}
	return stream.SendAndClose(&holdfast.SnapshotEnd{})
}

// chunkReader reads the file that a stream of chunks holds, and checks each.
type chunkReader struct {
	stream grpc.ClientStreamingServer[holdfast.SnapshotChunk, holdfast.SnapshotEnd]
	chunk  *holdfast.SnapshotChunk // not looked at yet, or nil
	data   []byte                  // of a chunk that was checked
	offset uint64
	size   uint64
}

// Read implements io.Reader.
func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.data) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

func (r *chunkReader) next() error {
	c := r.chunk
	r.chunk = nil
	if c == nil {
		var err error
		if c, err = r.stream.Recv(); errors.Is(err, io.EOF) {
			if r.offset != r.size {
				return fmt.Errorf("snapshot ended after %d of %d bytes: %w", r.offset, r.size, io.ErrUnexpectedEOF)
			}
			return io.EOF
		} else if err != nil {
			return err
		}
	}
	if c.Offset != r.offset {
		return errkind.Field("offset", "chunk at %d follows %d bytes", c.Offset, r.offset)
	}
	if crc32.Checksum(c.Data, crc32.MakeTable(crc32.Castagnoli)) != c.Crc {
		return errkind.Field("crc", "chunk at %d is damaged", c.Offset)
	}
	r.offset += uint64(len(c.Data))
	r.data = c.Data
	return nil
}

// Hello implements holdfast.RaftServer.
func (s *Server) Hello(context.Context, *holdfast.HelloRequest) (*holdfast.HelloResponse, error) {
	c := s.t.cfg
	return &holdfast.HelloResponse{ClusterID: c.ClusterID, NodeID: c.NodeID, RaftID: c.RaftID}, nil
}
