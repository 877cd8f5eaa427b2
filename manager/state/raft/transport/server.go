package transport

import (
	"context"
	"errors"
	"fmt"
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
	case from == 0 || from == cfg.RaftID:
		return errkind.New(errkind.Invalid, "message from member %d to member %d", from, to)
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
		messages, err := decodeBatch(b)
		if err != nil {
			return err
		}
		s.t.meet(b)
		s.t.node.Receive(messages)
	}
}

// decodeBatch returns the messages in a batch. A snapshot comes on a stream of its own.
func decodeBatch(b *holdfast.Batch) ([]*pb.Message, error) {
	messages := make([]*pb.Message, 0, len(b.Messages))
	for _, data := range b.Messages {
		m := &pb.Message{}
		if err := proto.Unmarshal(data, m); err != nil {
			return nil, errkind.Field("messages", "not a raft message: %v", err)
		}
		if m.GetFrom() != b.From || m.GetTo() != b.To || m.GetType() == pb.MsgSnap {
			return nil, errkind.Field("messages", "message of type %v from %d to %d in a batch from %d to %d",
				m.GetType(), m.GetFrom(), m.GetTo(), b.From, b.To)
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// Hello implements holdfast.RaftServer.
func (s *Server) Hello(context.Context, *holdfast.HelloRequest) (*holdfast.HelloResponse, error) {
	c := s.t.cfg
	return &holdfast.HelloResponse{ClusterID: c.ClusterID, NodeID: c.NodeID, RaftID: c.RaftID}, nil
}
