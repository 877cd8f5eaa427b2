package transport

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
)

// stallLimit is how long the sending of a snapshot may make no progress. At its end the
// receiver reads and syncs the whole file, which counts as one step.
const stallLimit = 2 * time.Minute

var errStalled = fmt.Errorf("no progress in %v", stallLimit)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// stream sends a snapshot file, and reports how it went.
func (p *peer) stream(ctx context.Context, client holdfast.RaftClient, m *pb.Message) {
	index := m.GetSnapshot().GetMetadata().GetIndex()
	log := p.transport.cfg.Logger.With("peer", p.id, "addr", p.addr, "index", index)
	log.Info("sending snapshot")
	err := p.streamFile(ctx, client, m)
	if err != nil {
		log.Warn("sending snapshot failed", "err", err)
	}
	p.transport.node.ReportSnapshot(p.id, err == nil)
}

func (p *peer) streamFile(ctx context.Context, client holdfast.RaftClient, m *pb.Message) (err error) {
	file, size, err := p.transport.node.SnapshotFile(m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data, err := proto.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode raft message: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(stallLimit, func() { cancel(errStalled) })
	defer watchdog.Stop()
	stream, err := client.Snapshot(ctx)
	if err == nil {
		first := holdfast.SnapshotChunk{
			ClusterID: p.transport.cfg.ClusterID, From: p.transport.cfg.RaftID, To: p.id,
			Message: data, SizeBytes: uint64(size), //nolint:gosec // a file's size
		}
		err = sendChunks(stream, first, file, func() { watchdog.Reset(stallLimit) })
	}
	if err != nil && context.Cause(ctx) == errStalled { //nolint:errorlint // it is the very one
		return errStalled
	}
	return errkind.FromStatus(err)
}

// sendChunks sends a file in chunks, and waits until the peer has it all. The first chunk is
// sent even of an empty file.
func sendChunks(stream grpc.ClientStreamingClient[holdfast.SnapshotChunk, holdfast.SnapshotEnd],
	chunk holdfast.SnapshotChunk, file io.Reader, progress func(),
) error {
	buffer := make([]byte, chunkBytes)
	for last := false; !last; {
		n, err := io.ReadFull(file, buffer)
		last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return fmt.Errorf("read snapshot: %w", err)
		}
		chunk.Data, chunk.Crc = buffer[:n], crc32.Checksum(buffer[:n], castagnoli())
		if n == 0 && chunk.Offset > 0 {
			break
		}
		if err := stream.Send(&chunk); errors.Is(err, io.EOF) {
			break // the peer ended the stream: below it says why
		} else if err != nil {
			return err
		}
		progress()
		chunk.Offset += uint64(n) //nolint:gosec // at most a chunk
		chunk.Message, chunk.SizeBytes = nil, 0
	}
	_, err := stream.CloseAndRecv()
	return err
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
	m, err := decodeSnapshot(first)
	if err != nil {
		return err
	}
	s.t.cfg.Logger.Info("receiving snapshot", "peer", first.From,
		"index", m.GetSnapshot().GetMetadata().GetIndex(), "bytes", first.SizeBytes)
	r := &chunkReader{recv: stream.Recv, chunk: first, size: first.SizeBytes}
	if err := s.t.node.ReceiveSnapshot(m, r); err != nil {
		return err
	}
	return stream.SendAndClose(&holdfast.SnapshotEnd{})
}

// decodeSnapshot returns the message in the first chunk of a snapshot.
func decodeSnapshot(first *holdfast.SnapshotChunk) (*pb.Message, error) {
	m := &pb.Message{}
	if err := proto.Unmarshal(first.Message, m); err != nil {
		return nil, errkind.Field("message", "not a raft message: %v", err)
	}
	if m.GetType() != pb.MsgSnap || m.GetFrom() != first.From || m.GetTo() != first.To {
		return nil, errkind.Field("message", "message of type %v from %d to %d with a snapshot from %d to %d",
			m.GetType(), m.GetFrom(), m.GetTo(), first.From, first.To)
	}
	return m, nil
}

// chunkReader reads the file that a stream of chunks holds, and checks each.
type chunkReader struct {
	recv   func() (*holdfast.SnapshotChunk, error)
	chunk  *holdfast.SnapshotChunk // not looked at yet, or nil
	data   []byte                  // of a chunk that was checked
	offset uint64
	size   uint64 // of the whole
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
		if c, err = r.recv(); errors.Is(err, io.EOF) {
			if r.offset != r.size {
				return fmt.Errorf("snapshot ended after %d of %d bytes: %w", r.offset, r.size, io.ErrUnexpectedEOF)
			}
			return io.EOF
		} else if err != nil {
			return err
		}
	}
	switch {
	case c.Offset != r.offset:
		return errkind.Field("offset", "chunk at %d follows %d bytes", c.Offset, r.offset)
	case uint64(len(c.Data)) > r.size-r.offset:
		return errkind.Field("data", "chunk at %d goes beyond the %d bytes of the snapshot", c.Offset, r.size)
	case crc32.Checksum(c.Data, castagnoli()) != c.Crc:
		return errkind.Field("crc", "chunk at %d is damaged", c.Offset)
	}
	r.offset += uint64(len(c.Data))
	r.data = c.Data
	return nil
}
