package transport

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
)

// peer is one other member, at one address.
type peer struct {
	transport *Transport
	id        uint64
	addr      string

	ctx    context.Context //nolint:containedctx // of the peer's goroutine
	cancel context.CancelFunc

	mu       sync.Mutex
	queue    []*pb.Message
	bytes    int
	snapshot *pb.Message // to be sent next
	wake     chan struct{}
}

func newPeer(t *Transport, id uint64, addr string) *peer {
	p := &peer{transport: t, id: id, addr: addr, wake: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(t.ctx)
	return p
}

// put queues a message, or drops it if too much waits.
func (p *peer) put(m *pb.Message) {
	p.mu.Lock()
	size := proto.Size(m)
	full := len(p.queue) >= maxQueued || len(p.queue) > 0 && p.bytes+size > maxQueuedBytes
	if !full {
		p.queue = append(p.queue, m)
		p.bytes += size
	}
	p.mu.Unlock()
	if full {
		p.transport.node.ReportUnreachable(p.id)
		return
	}
	p.signal()
}

// sendSnapshot queues a snapshot. One that waits already is given up for the newer one.
func (p *peer) sendSnapshot(m *pb.Message) {
	p.mu.Lock()
	old := p.snapshot
	p.snapshot = m
	p.mu.Unlock()
	if old != nil {
		p.transport.node.ReportSnapshot(p.id, false)
	}
	p.signal()
}

func (p *peer) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// take returns the next batch of messages, and the snapshot if one waits.
func (p *peer) take() (batch []*pb.Message, snapshot *pb.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size, n := 0, 0
	for n < len(p.queue) && (n == 0 || size < maxBatchBytes) {
		size += proto.Size(p.queue[n])
		n++
	}
	batch = p.queue[:n:n]
	p.queue = p.queue[n:]
	p.bytes -= size
	snapshot, p.snapshot = p.snapshot, nil
	return batch, snapshot
}

// run sends what is queued until the peer leaves.
func (p *peer) run() {
	defer p.cancel()
	var sending sync.WaitGroup
	defer sending.Wait()
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 50*time.Millisecond, time.Second
	for p.ctx.Err() == nil {
		err := p.connect(&sending, wait)
		if err == nil || p.ctx.Err() != nil {
			return
		}
		if errkind.Is(err, errkind.Refused) && errkind.Hint(err) == hintRemoved {
			p.transport.node.Removed()
			return
		}
		p.transport.cfg.Logger.Debug("raft stream to peer broke", "peer", p.id, "addr", p.addr, "err", err)
		p.drop()
		p.transport.node.ReportUnreachable(p.id)
		select {
		case <-time.After(wait.NextBackOff()):
		case <-p.ctx.Done():
		}
	}
}

// drop forgets what waits: it is old by the time the peer is back.
func (p *peer) drop() {
	p.mu.Lock()
	p.queue, p.bytes = nil, 0
	snapshot := p.snapshot
	p.snapshot = nil
	p.mu.Unlock()
	if snapshot != nil {
		p.transport.node.ReportSnapshot(p.id, false)
	}
}

// connect opens a stream and sends over it until it breaks. It returns nil if the peer left.
func (p *peer) connect(sending *sync.WaitGroup, wait *backoff.ExponentialBackOff) error {
	conn, err := p.transport.cfg.Dial(p.addr)
	if err != nil {
		return err
	}
	defer func() {
		sending.Wait()
		conn.Close() //nolint:errcheck,gosec // nothing is lost with it
	}()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	client := holdfast.NewRaftClient(conn)
	stream, err := client.Messages(ctx)
	if err != nil {
		return errkind.FromStatus(err)
	}
	for {
		batch, snapshot := p.take()
		if snapshot != nil {
			sending.Go(func() { p.stream(ctx, client, snapshot) })
		}
		if len(batch) > 0 {
			if err := p.send(stream, batch); err != nil {
				return err
			}
			wait.Reset()
			continue
		}
		select {
		case <-p.wake:
		case <-stream.Context().Done():
			if p.ctx.Err() != nil {
				return nil
			}
			return streamError(stream, stream.Context().Err())
		}
	}
}

func (p *peer) send(stream grpc.ClientStreamingClient[holdfast.Batch, holdfast.BatchEnd], batch []*pb.Message) error {
	at := p.transport.cfg.Position()
	b := &holdfast.Batch{
		ClusterID: p.transport.cfg.ClusterID, From: p.transport.cfg.RaftID, To: p.id,
		Revision: at.Revision, Hash: at.Hash, Process: p.transport.cfg.Process, Format: Format,
		Addr:     p.transport.cfg.Addr,
		Messages: make([][]byte, 0, len(batch)),
	}
	for _, m := range batch {
		data, err := proto.Marshal(m)
		if err != nil {
			return fmt.Errorf("encode raft message: %w", err)
		}
		b.Messages = append(b.Messages, data)
	}
	if err := stream.Send(b); err != nil {
		return streamError(stream, err)
	}
	return nil
}

// streamError returns why the peer ended the stream: Send itself only says that it did.
func streamError(stream grpc.ClientStreamingClient[holdfast.Batch, holdfast.BatchEnd], err error) error {
	if errors.Is(err, io.EOF) {
		if _, end := stream.CloseAndRecv(); end != nil {
			return errkind.FromStatus(end)
		}
	}
	return err
}

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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.Snapshot(ctx)
	if err != nil {
		return errkind.FromStatus(err)
	}
	chunk := &holdfast.SnapshotChunk{
		ClusterID: p.transport.cfg.ClusterID, From: p.transport.cfg.RaftID, To: p.id,
		Message: data, SizeBytes: uint64(size), //nolint:gosec // a file's size
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	buffer := make([]byte, chunkBytes)
	for {
		n, readErr := io.ReadFull(file, buffer)
		if readErr != nil && !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF) {
			return fmt.Errorf("read snapshot: %w", readErr)
		}
		chunk.Data, chunk.Crc = buffer[:n], crc32.Checksum(buffer[:n], table)
		if n > 0 {
			if err := stream.Send(chunk); err != nil {
				if _, end := stream.CloseAndRecv(); end != nil {
					err = errkind.FromStatus(end)
				}
				return err
			}
		}
		if readErr != nil {
			break
		}
		chunk.Offset += uint64(n) //nolint:gosec // at most a chunk
		chunk.Message, chunk.SizeBytes = nil, 0
	}
	_, err = stream.CloseAndRecv()
	return errkind.FromStatus(err)
}
