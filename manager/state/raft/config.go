package raft

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"holdfast/api/holdfast"
	"holdfast/internal/mutant"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/storage"
)

// Defaults of Config and Settings.
const (
	DefaultTick             = 100 * time.Millisecond
	DefaultElectionTicks    = 10
	DefaultSnapshotInterval = 10_000
	DefaultKeepEntries      = 500
	DefaultKeepBytes        = 64 << 20
)

// Transport sends to peers. None of its methods blocks; what cannot be sent is dropped and
// reported to the node.
type Transport interface {
	// Send sends messages, in order for each peer.
	Send(messages []*pb.Message)
	// SetPeers tells who the peers are and where; the others are forgotten.
	SetPeers(peers []holdfast.Peer)
	// Process tells a peer's process from those before it, as far as the peer has said: 0 if
	// nothing was heard of it.
	Process(raftID uint64) uint64
}

// Settings can change while the node runs. The zero value means the defaults.
type Settings struct {
	SnapshotInterval uint64 // entries between two snapshots
	KeepEntries      uint64 // entries kept behind a snapshot, for slow followers
	KeepBytes        uint64 // and their bytes
}

func (s Settings) withDefaults() Settings {
	if s.SnapshotInterval == 0 {
		s.SnapshotInterval = DefaultSnapshotInterval
	}
	if s.KeepEntries == 0 {
		s.KeepEntries = DefaultKeepEntries
	}
	if s.KeepBytes == 0 {
		s.KeepBytes = DefaultKeepBytes
	}
	return s
}

// Config is what a node is made of. Tick, ElectionTicks, Settings and Wait have defaults.
type Config struct {
	FS     storage.FS
	Dir    string
	Logger *slog.Logger
	// Build makes the store and the transport of the member that the log is of. The node is
	// not open yet: it may be kept, and not called.
	Build func(n *Node, id storage.Identity) (state.Machine, Transport, error)

	Tick          time.Duration
	ElectionTicks int
	Settings      func() Settings // may be called from any goroutine
	Wait          state.Wait      // nil: state.Block
	SegmentSize   int64           // of the log; 0: storage.DefaultSegmentSize
	Planted       mutant.Set      // a fault planted on purpose, by the simulator; zero: none
}

func (c *Config) setDefaults() {
	if c.Tick == 0 {
		c.Tick = DefaultTick
	}
	if c.ElectionTicks == 0 {
		c.ElectionTicks = DefaultElectionTicks
	}
	if c.Wait == nil {
		c.Wait = state.Block
	}
	settings := c.Settings
	c.Settings = func() Settings {
		if settings == nil {
			return Settings{}.withDefaults()
		}
		return settings().withDefaults()
	}
}

// Bootstrap makes the log of a new cluster's first member: its first entry, already committed,
// is the member itself.
func Bootstrap(fsys storage.FS, dir string, id storage.Identity, addr, hostname string) error {
	change, err := newChange(randomID(), state.AddVoter, holdfast.Peer{
		RaftID: id.RaftID, NodeID: id.NodeID, Addr: addr, Hostname: hostname,
	})
	if err != nil {
		return err
	}
	data, err := proto.Marshal(change.cc)
	if err != nil {
		return fmt.Errorf("encode first member: %w", err)
	}
	return storage.Create(fsys, dir, id, storage.Batch{
		HardState: &pb.HardState{Term: new(uint64(1)), Vote: new(uint64(0)), Commit: new(uint64(1))},
		Entries: []*pb.Entry{{
			Term: new(uint64(1)), Index: new(uint64(1)), Type: pb.EntryConfChange.Enum(), Data: data,
		}},
	})
}

// Join makes the empty log of a member that joins a cluster; the leader sends it what it needs.
func Join(fsys storage.FS, dir string, id storage.Identity) error {
	return storage.Create(fsys, dir, id, storage.Batch{})
}

// randomID makes the ID of a change.
func randomID() []byte {
	b := make([]byte, 16)
	rand.Read(b)
	return b
}
