package clusterapi

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/token"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/membership"
	"holdfast/manager/state/store"
)

// maxHostname is the longest hostname that is taken, as DNS has it.
const maxHostname = 253

// Membership implements the RaftMembership service.
type Membership struct {
	api.UnimplementedRaftMembershipServer
	cfg Config
}

// NewMembership makes the RaftMembership service.
func NewMembership(cfg Config) *Membership { return &Membership{cfg: cfg} }

// Join implements api.RaftMembershipServer. The node is called back at its address before
// anything is changed, and joins as a learner: it gets a vote once it has caught up. A node
// that is a member already, and says so, only notes its address.
func (m *Membership) Join(ctx context.Context, r *api.JoinRequest) (*api.JoinResponse, error) {
	if err := m.checkToken(r); err != nil {
		return nil, err
	}
	if err := checkJoin(r); err != nil {
		return nil, err
	}
	if err := m.cfg.Node.ReadIndex(ctx); err != nil {
		return nil, err
	}
	if err := m.callBack(ctx, r); err != nil {
		return nil, err
	}
	at := m.cfg.Store.Applied()
	plan, peer, err := membership.CheckJoin(membership.Join{
		NodeID: r.NodeID, Addr: r.Addr, Hostname: r.Hostname, HasState: r.ClusterID != "",
	}, at.Peers)
	if err != nil {
		return nil, err
	}
	switch plan {
	case membership.Keep:
	case membership.Update:
		err = m.cfg.Node.Change(ctx, state.UpdatePeer, peer)
	case membership.Replace:
		if err = m.cfg.Node.Change(ctx, state.RemovePeer, peer); err == nil {
			peer, err = m.add(ctx, r)
		}
	case membership.Add:
		peer, err = m.add(ctx, r)
	}
	if err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	return m.response(peer.RaftID), nil
}

func (m *Membership) add(ctx context.Context, r *api.JoinRequest) (holdfast.Peer, error) {
	if m.cfg.Alone != nil {
		return holdfast.Peer{}, m.cfg.Alone
	}
	at := m.cfg.Store.Applied()
	peer := holdfast.Peer{
		RaftID: membership.NewRaftID(m.cfg.RandomID, at.Peers, at.Removed),
		NodeID: r.NodeID, Addr: r.Addr, Hostname: r.Hostname,
	}
	return peer, m.cfg.Node.Change(ctx, state.AddLearner, peer)
}

func (m *Membership) response(raftID uint64) *api.JoinResponse {
	at := m.cfg.Store.Applied()
	resp := &api.JoinResponse{RaftID: raftID, ClusterID: m.cfg.ClusterID, RemovedMembers: at.Removed}
	leader := m.cfg.Node.Leader()
	for _, p := range at.Peers {
		resp.Members = append(resp.Members, &api.RaftMember{
			RaftID: p.RaftID, NodeID: p.NodeID, Addr: p.Addr,
			Status: api.RaftMemberStatus{Leader: p.RaftID == leader},
		})
	}
	return resp
}

func (m *Membership) checkToken(r *api.JoinRequest) error {
	if r.ClusterID != "" && r.ClusterID != m.cfg.ClusterID {
		return errkind.Field("cluster_id", "the node's state is of cluster %s, this is %s", r.ClusterID, m.cfg.ClusterID).
			WithHint("empty its state folder to let it join this cluster")
	}
	c := store.Clusters.Get(m.cfg.Store.Root(), m.cfg.ClusterID)
	if c == nil {
		return errkind.New(errkind.NoLeader, "the cluster is starting and has no join token yet").WithHint("try again")
	}
	if !token.Equal(c.RootCA.JoinTokens.Manager, r.Token) {
		return errkind.New(errkind.NotAllowed, "the join token is not this cluster's token for managers").
			WithHint("get it on a manager with: ctl cluster token manager -q")
	}
	return nil
}

func checkJoin(r *api.JoinRequest) error {
	if r.NodeID == "" || len(r.NodeID) > 64 {
		return errkind.Field("node_id", "must have 1 to 64 characters")
	}
	if len(r.Hostname) > maxHostname {
		return errkind.Field("hostname", "is longer than %d characters", maxHostname)
	}
	host, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		return errkind.Field("addr", "is not HOST:PORT: %v", err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" {
		return errkind.Field("addr", "%q is not HOST:PORT with a port from 1 to 65535", r.Addr)
	}
	return nil
}

// callBack makes sure that the node can be reached where it says it is.
func (m *Membership) callBack(ctx context.Context, r *api.JoinRequest) error {
	who, err := m.cfg.Hello(ctx, r.Addr)
	switch {
	case err != nil:
		return &errkind.Error{
			Kind: errkind.Refused, Field: "addr", Err: err,
			Msg:  fmt.Sprintf("nobody answers at %s: %v", r.Addr, err),
			Hint: "the other managers must reach it there: see --advertise-remote-api",
		}
	case who.NodeID != r.NodeID:
		return errkind.New(errkind.Refused, "node %s answers at %s, not %s", who.NodeID, r.Addr, r.NodeID).
			WithHint("give each manager an address of its own: see --advertise-remote-api")
	}
	return nil
}

// Leave implements api.RaftMembershipServer.
func (m *Membership) Leave(ctx context.Context, r *api.LeaveRequest) (*api.LeaveResponse, error) {
	if r.Node == nil || r.Node.RaftID == 0 {
		return nil, errkind.Field("node.raft_id", "is empty")
	}
	if err := m.cfg.Node.Remove(ctx, r.Node.RaftID); err != nil {
		return nil, fmt.Errorf("leave: %w", err)
	}
	return &api.LeaveResponse{}, nil
}
