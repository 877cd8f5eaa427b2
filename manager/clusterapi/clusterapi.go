// Package clusterapi serves what is about the managers themselves: the Cluster service (who
// they are, how far each is, removing one, and compacting the history that they keep) and
// RaftMembership (joining and leaving).
//
// It is for the leader: the manager passes the calls on to it. Without a leader, Members is
// answered by any manager.
package clusterapi

import (
	"context"
	"encoding/hex"
	"fmt"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/raft"
	"holdfast/manager/state/store"
)

// Node is the raft node as this package needs it.
type Node interface {
	Status(ctx context.Context) (raft.Status, error)
	ReadIndex(ctx context.Context) error
	Leader() uint64
	Remove(ctx context.Context, raftID uint64) error
	Change(ctx context.Context, change state.ChangeType, peer holdfast.Peer) error
}

// Store is the store as this package needs it.
type Store interface {
	Applied() state.Applied
	Status() store.Status
	Root() store.ReadTx
	Compact(ctx context.Context, revision uint64) (floor uint64, err error)
}

// Config is what the services are made of.
type Config struct {
	Node      Node
	Store     Store
	ClusterID string
	RaftID    uint64
	// AppliedRevision tells the newest revision that a peer said it has applied.
	AppliedRevision func(raftID uint64) uint64
	// StateHash tells how a peer's state hash compares with this manager's: "equal", "differs",
	// or empty.
	StateHash func(raftID uint64) string
	// Hello asks who answers at an address.
	Hello func(ctx context.Context, addr string) (*holdfast.HelloResponse, error)
	// Alone is why no other manager may join; nil if others may.
	Alone error
	// RandomID gives random numbers for raft IDs.
	RandomID func() uint64
}

// Server implements the Cluster service.
type Server struct {
	holdfast.UnimplementedClusterServer
	cfg Config
}

// New makes the Cluster service.
func New(cfg Config) *Server { return &Server{cfg: cfg} }

// Status implements holdfast.ClusterServer.
func (s *Server) Status(ctx context.Context, _ *holdfast.StatusRequest) (*holdfast.StatusResponse, error) {
	if err := s.cfg.Node.ReadIndex(ctx); err != nil {
		return nil, err
	}
	st, err := s.cfg.Node.Status(ctx)
	if err != nil {
		return nil, err
	}
	if !st.Leading {
		return nil, errkind.New(errkind.NoLeader, "this manager does not lead any more").WithHint("try again")
	}
	at := s.cfg.Store.Status()
	return &holdfast.StatusResponse{
		ClusterID: s.cfg.ClusterID, Leader: st.Leader, Term: st.Term,
		Revision: at.Revision, Floor: at.Floor, Hash: hex.EncodeToString(at.Hash),
		Members: s.hashes(s.members(st)),
	}, nil
}

// hashes says of each member how its state hash compares with this leader's.
func (s *Server) hashes(members []*holdfast.Member) []*holdfast.Member {
	for _, m := range members {
		m.StateHash = "equal"
		if m.RaftID != s.cfg.RaftID {
			m.StateHash = s.cfg.StateHash(m.RaftID)
		}
	}
	return members
}

// Members implements holdfast.ClusterServer. The leader answers, since it knows who can be
// reached; without one, each manager tells who the members are, and only itself as reachable.
func (s *Server) Members(ctx context.Context, _ *holdfast.MembersRequest) (*holdfast.MembersResponse, error) {
	st, err := s.cfg.Node.Status(ctx)
	if err != nil {
		return nil, err
	}
	return &holdfast.MembersResponse{Members: s.members(st)}, nil
}

func (s *Server) members(st raft.Status) []*holdfast.Member {
	at := s.cfg.Store.Applied()
	members := make([]*holdfast.Member, 0, len(at.Peers))
	for _, p := range at.Peers {
		m := &holdfast.Member{
			RaftID: p.RaftID, NodeID: p.NodeID, Hostname: p.Hostname, Addr: p.Addr, Role: "voter",
			Leader: p.RaftID == st.Leader, Reachable: st.Reachable(p.RaftID),
			AppliedRevision: s.cfg.AppliedRevision(p.RaftID),
		}
		if p.Learner {
			m.Role = "learner"
		}
		if p.RaftID == s.cfg.RaftID {
			m.AppliedRevision = at.Revision
		}
		for _, f := range st.Followers {
			if f.RaftID == p.RaftID {
				m.MatchIndex, m.State = f.Match, f.State
			}
		}
		members = append(members, m)
	}
	return members
}

// RemoveMember implements holdfast.ClusterServer.
func (s *Server) RemoveMember(ctx context.Context, r *holdfast.RemoveMemberRequest) (*holdfast.RemoveMemberResponse, error) {
	if r.RaftID == 0 {
		return nil, errkind.Field("raft_id", "is empty")
	}
	if err := s.cfg.Node.Remove(ctx, r.RaftID); err != nil {
		return nil, fmt.Errorf("remove member: %w", err)
	}
	return &holdfast.RemoveMemberResponse{}, nil
}

// Compact implements holdfast.ClusterServer.
func (s *Server) Compact(ctx context.Context, r *holdfast.CompactRequest) (*holdfast.CompactResponse, error) {
	floor, err := s.cfg.Store.Compact(ctx, r.Revision)
	if err != nil {
		return nil, err
	}
	return &holdfast.CompactResponse{Floor: floor}, nil
}
