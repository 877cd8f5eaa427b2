package transport

import (
	"context"
	"errors"
	"fmt"
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

// Times between two attempts to reach a peer.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Second
)

// endWait bounds how long it is waited for why a stream ended.
const endWait = time.Second

// peer is one other member, at one address.
type peer struct {
	transport *Transport
	id        uint64
	addr      string
	met       bool // it made itself known; the membership does not name it

	ctx    context.Context //nolint:containedctx // of the peer's goroutine
	cancel context.CancelFunc

	mu       sync.Mutex
	queue    []*pb.Message
	bytes    int
	snapshot *pb.Message // to be sent next
	sending  bool        // another snapshot is on its way
	left     bool        // nothing is sent any more
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
	full := p.left || len(p.queue) >= maxQueued || len(p.queue) > 0 && p.bytes+size > maxQueuedBytes
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
	if p.left {
		old = m
	} else {
		p.snapshot = m
	}
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

// take returns the next batch of messages, and the snapshot if one waits and no other is on
// its way.
func (p *peer) take() (batch []*pb.Message, snapshot *pb.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size, n := 0, 0
	for n < len(p.queue) {
		add := proto.Size(p.queue[n])
		if n > 0 && size+add > maxBatchBytes {
			break
		}
		size += add
		n++
	}
	batch = p.queue[:n:n]
	p.queue = p.queue[n:]
	p.bytes -= size
	if !p.sending {
		snapshot, p.snapshot = p.snapshot, nil
		p.sending = snapshot != nil
	}
	return batch, snapshot
}

// sent tells that a snapshot is not on its way any more, and looks for the next one.
func (p *peer) sent() {
	p.mu.Lock()
	p.sending = false
	p.mu.Unlock()
	p.signal()
}

// run sends what is queued until the peer leaves.
func (p *peer) run() {
	defer p.leave()
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = minBackoff, maxBackoff
	for {
		began := time.Now()
		err := p.connect()
		if p.ctx.Err() != nil {
			return
		}
		if errkind.Is(err, errkind.Refused) && errkind.Hint(err) == hintRemoved {
			p.transport.node.Removed()
			return
		}
		p.transport.cfg.Logger.Debug("raft stream to peer broke", "peer", p.id, "addr", p.addr, "err", err)
		p.drop()
		p.transport.node.ReportUnreachable(p.id)
		if time.Since(began) > maxBackoff { // that something was sent does not tell that it was taken
			wait.Reset()
		}
		select {
		case <-time.After(wait.NextBackOff()):
		case <-p.ctx.Done():
			return
		}
	}
}

// leave gives up what waits, and whatever comes yet.
func (p *peer) leave() {
	p.cancel()
	p.mu.Lock()
	p.left = true
	p.mu.Unlock()
	p.drop()
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

// connect opens a stream and sends over it until it breaks, or the peer leaves.
func (p *peer) connect() error {
	conn, err := p.transport.cfg.Dial(p.addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(p.ctx)
	var group sync.WaitGroup // of those that use conn
	defer func() {
		cancel()
		group.Wait()
		conn.Close() //nolint:errcheck,gosec // nothing is lost with it
	}()
	client := holdfast.NewRaftClient(conn)
	stream, err := client.Messages(ctx)
	if err != nil {
		return errkind.FromStatus(err)
	}
	ended := make(chan error, 1)
	group.Go(func() { ended <- end(stream) })
	for {
		batch, snapshot := p.take()
		if snapshot != nil {
			group.Go(func() {
				p.stream(ctx, client, snapshot)
				p.sent()
			})
		}
		if len(batch) > 0 {
			switch err := p.send(stream, batch); {
			case errors.Is(err, io.EOF): // it only says that the peer ended the stream
				return whyEnded(ended)
			case err != nil:
				return err
			}
			continue
		}
		select {
		case <-p.wake:
		case err := <-ended:
			return err
		}
	}
}

// whyEnded returns why a stream ended, if that comes. It does not if gRPC opened the stream anew,
// by itself, at the moment in which it told the sender that the old one is over: then it must be
// given up, or nothing would be sent to the peer any more.
func whyEnded(ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-time.After(endWait):
		return errors.New("the stream ended, and nobody said why")
	}
}

// end waits until the peer ends a stream, which it does with an error only.
func end(stream grpc.ClientStream) error {
	if err := stream.RecvMsg(&holdfast.BatchEnd{}); err != nil {
		return errkind.FromStatus(err)
	}
	return errors.New("the peer ended the stream")
}

func (p *peer) send(stream grpc.ClientStreamingClient[holdfast.Batch, holdfast.BatchEnd], batch []*pb.Message) error {
	at := p.transport.cfg.Position()
	b := &holdfast.Batch{
		ClusterID: p.transport.cfg.ClusterID, From: p.transport.cfg.RaftID, To: p.id,
		Revision: at.Revision, Hash: at.Hash, Checkpoint: at.Checkpoint, CheckpointHash: at.CheckpointHash, Process: p.transport.cfg.Process, Format: Format,
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
	return stream.Send(b)
}
