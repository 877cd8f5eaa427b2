// Package transport carries raft messages and snapshots between managers, over gRPC.
//
// Each peer has a queue, a goroutine that sends what is in it as batches over one stream, and
// at most one snapshot on its way on a stream of its own, so that neither waits for the other.
// Nothing here blocks raft: a full queue or a broken stream drops messages and reports the
// peer as unreachable, and raft sends again. The Server is the other end.
package transport

import (
	"context"
	"io"
	"log/slog"
	"sync"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc"

	"holdfast/api/holdfast"
)

// Bounds of what waits for one peer.
const (
	maxQueued      = 4096
	maxQueuedBytes = 64 << 20
	maxBatchBytes  = 2 << 20
	chunkBytes     = 256 << 10
	maxMet         = 16 // peers that made themselves known and that the membership does not name
)

// Format is the version of the entry format that this program reads.
const Format = 1

// Node is the raft node, as what is sent and received needs it.
type Node interface {
	Receive(messages []*pb.Message)
	ReceiveSnapshot(m *pb.Message, file io.Reader) error
	ReportUnreachable(raftID uint64)
	ReportSnapshot(raftID uint64, ok bool)
	SnapshotFile(m *pb.Message) (io.ReadCloser, int64, error)
	Removed()
}

// Position is where a member is: its newest revision, and one at which all members tell their
// state hash.
type Position struct {
	Revision       uint64
	Hash           []byte
	Checkpoint     uint64
	CheckpointHash []byte
}

// Config is what a transport is made of.
type Config struct {
	ClusterID string
	NodeID    string
	RaftID    uint64
	Addr      string // at which the others reach this member
	Process   uint64 // differs from that of the process before
	Dial      func(addr string) (*grpc.ClientConn, error)
	Position  func() Position
	// IsRemoved tells whether a raft ID is one of a member that was removed.
	IsRemoved func(raftID uint64) bool
	Logger    *slog.Logger
}

// Transport sends to peers.
type Transport struct {
	cfg  Config
	node Node

	ctx    context.Context //nolint:containedctx // of the peers' goroutines, ended by Stop
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu    sync.Mutex
	peers map[uint64]*peer

	heard heard
}

// New makes a transport. Attach it to a node before the node runs.
func New(cfg Config) *Transport {
	t := &Transport{cfg: cfg, peers: map[uint64]*peer{}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// Attach tells which node it is of.
func (t *Transport) Attach(n Node) { t.node = n }

// Stop ends all sending and waits for it.
func (t *Transport) Stop() {
	t.cancel()
	t.group.Wait()
}

// SetPeers tells who the members are and where. It does not block.
func (t *Transport) SetPeers(members []holdfast.Peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return
	}
	now := make(map[uint64]*peer, len(members))
	joined := false
	for _, m := range members {
		if m.RaftID == t.cfg.RaftID {
			joined = true
			continue
		}
		if old, ok := t.peers[m.RaftID]; ok && old.addr == m.Addr {
			old.met = false
			now[m.RaftID] = old
			delete(t.peers, m.RaftID)
			continue
		}
		now[m.RaftID] = t.startLocked(m.RaftID, m.Addr)
	}
	for id, rest := range t.peers {
		if _, replaced := now[id]; joined || replaced {
			rest.cancel()
		} else {
			now[id] = rest // it made itself known, and the membership that is known is an old one
		}
	}
	t.peers = now
	t.heard.forget(now)
}

func (t *Transport) startLocked(id uint64, addr string) *peer {
	p := newPeer(t, id, addr)
	t.group.Go(p.run)
	return p
}

// meet notes what a peer says of itself, and where it is, if the membership does not tell: a
// member that joins knows nobody.
func (t *Transport) meet(b *holdfast.Batch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.peers[b.From]; !known {
		met := 0
		for _, p := range t.peers {
			if p.met {
				met++
			}
		}
		if b.Addr == "" || met >= maxMet || t.ctx.Err() != nil {
			return
		}
		p := t.startLocked(b.From, b.Addr)
		p.met = true
		t.peers[b.From] = p
	}
	t.heard.note(b)
}

// Send sends messages, in order for each peer. It does not block.
func (t *Transport) Send(messages []*pb.Message) {
	if len(messages) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range messages {
		p, ok := t.peers[m.GetTo()]
		switch {
		case !ok: // left, or not known yet
			if m.GetType() == pb.MsgSnap {
				t.node.ReportSnapshot(m.GetTo(), false)
			}
		case m.GetType() == pb.MsgSnap:
			p.sendSnapshot(m)
		default:
			p.put(m)
		}
	}
}

// heard is what the peers said last of themselves.
type heard struct {
	mu    sync.Mutex
	peers map[uint64]Heard
}

// Heard is what a peer said last of itself.
type Heard struct {
	Position
	Process uint64
	Format  uint32
}

func (h *heard) note(b *holdfast.Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.peers == nil {
		h.peers = map[uint64]Heard{}
	}
	h.peers[b.From] = Heard{
		Position: Position{
			Revision: b.Revision, Hash: b.Hash, Checkpoint: b.Checkpoint, CheckpointHash: b.CheckpointHash,
		},
		Process: b.Process, Format: b.Format,
	}
}

// forget drops what was heard of those that are not peers any more.
func (h *heard) forget(peers map[uint64]*peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.peers {
		if _, ok := peers[id]; !ok {
			delete(h.peers, id)
		}
	}
}

// Process tells a peer's process from those before it, as far as the peer has said.
func (t *Transport) Process(raftID uint64) uint64 {
	h, _ := t.Heard(raftID)
	return h.Process
}

// Heard returns what a peer said last of itself; ok is false if nothing was heard of it.
func (t *Transport) Heard(raftID uint64) (h Heard, ok bool) {
	t.heard.mu.Lock()
	defer t.heard.mu.Unlock()
	h, ok = t.heard.peers[raftID]
	return h, ok
}
