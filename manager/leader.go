package manager

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/token"
	"holdfast/manager/state"
	"holdfast/manager/state/raft"
	"holdfast/manager/state/store"
)

// self is who changes what the leader changes by itself, for the history.
const self = "manager"

// reconcileInterval is how often the leader looks at which members it can reach.
const reconcileInterval = time.Second

// lead runs what a leader does, each time this manager leads, until ctx ends.
func (m *Manager) lead(ctx context.Context) error {
	for {
		if err := m.node.WaitFor(ctx, m.node.Leading); err != nil {
			return ignoreEnd(ctx, err)
		}
		m.cfg.Logger.Info("this manager leads")
		if err := m.leadOnce(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		m.cfg.Logger.Info("this manager does not lead any more")
	}
}

// leadOnce is one time of leadership.
func (m *Manager) leadOnce(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	term, end := context.WithCancel(ctx)
	group.Go(func() error {
		defer end()
		return ignoreEnd(ctx, m.node.WaitFor(ctx, func() bool { return !m.node.Leading() }))
	})
	group.Go(func() error { return m.reconcile(term) })
	group.Go(func() error { return m.retain(term) })
	group.Go(func() error { return m.settle(term) })
	group.Go(func() error { return newSweeper(m.store, m.cfg.clock, m.cfg.Logger).run(term) })
	return group.Wait()
}

// ignoreEnd drops an error that only says that ctx ended, or the node.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil || errkind.Is(err, errkind.NoLeader) {
		return nil
	}
	return err
}

// reconcile keeps the cluster object, and one node object for each member, until ctx ends.
// What fails is tried again.
func (m *Manager) reconcile(ctx context.Context) error {
	ticker := time.NewTicker(reconcileInterval)
	defer ticker.Stop()
	for {
		if err := m.reconcileOnce(ctx); err != nil && ctx.Err() == nil && !errkind.Is(err, errkind.NoLeader) {
			m.cfg.Logger.Warn("node objects could not be brought up to date; it is tried again", "err", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *Manager) reconcileOnce(ctx context.Context) error {
	st, err := m.node.Status(ctx)
	if err != nil {
		return err
	}
	peers := m.store.Applied().Peers
	// A look without a transaction first: most of the time nothing is to be done.
	if ok, err := m.reconciled(peers, st); err != nil || ok {
		return err
	}
	ctx = state.WithRequest(ctx, state.Request{Caller: self})
	_, err = m.store.Update(ctx, func(tx *store.Tx) error {
		if err := m.ensureCluster(tx); err != nil {
			return err
		}
		return ensureNodes(tx, peers, st)
	})
	return err
}

// reconciled tells whether the objects are as they should be.
func (m *Manager) reconciled(peers []holdfast.Peer, st raft.Status) (bool, error) {
	tx := m.store.Root()
	if store.Clusters.Get(tx, m.node.Identity().ClusterID) == nil {
		return false, nil
	}
	members := map[string]bool{}
	for _, p := range peers {
		members[p.NodeID] = true
		n := store.Nodes.Get(tx, p.NodeID)
		if n == nil || !n.Equal(asMember(n, p, st)) {
			return false, nil
		}
	}
	nodes, err := store.Nodes.Find(tx, store.All())
	if err != nil {
		return false, err
	}
	for n := range nodes {
		if n.ManagerStatus != nil && !members[n.ID] {
			return false, nil
		}
	}
	return true, nil
}

// ensureCluster makes the cluster object, with its join tokens, if it is not there.
func (m *Manager) ensureCluster(tx *store.Tx) error {
	clusterID := m.node.Identity().ClusterID
	if store.Clusters.Get(tx, clusterID) != nil {
		return nil
	}
	_, err := store.Clusters.Create(tx, &api.Cluster{
		ID: clusterID,
		Spec: api.ClusterSpec{
			Annotations: api.Annotations{Name: "default"},
			Raft: api.RaftConfig{
				SnapshotInterval: raft.DefaultSnapshotInterval, LogEntriesForSlowFollowers: raft.DefaultKeepEntries,
				HeartbeatTick: 1, ElectionTick: raft.DefaultElectionTicks,
			},
		},
		RootCA: api.RootCA{JoinTokens: api.JoinTokens{
			Worker:  token.Format(clusterID, tx.NewID()),
			Manager: token.Format(clusterID, tx.NewID()),
		}},
	})
	return err
}

// ensureNodes makes the node objects what the membership says.
func ensureNodes(tx *store.Tx, peers []holdfast.Peer, st raft.Status) error {
	members := map[string]bool{}
	for _, p := range peers {
		members[p.NodeID] = true
		if err := ensureNode(tx, p, st); err != nil {
			return fmt.Errorf("node %s: %w", p.NodeID, err)
		}
	}
	nodes, err := store.Nodes.FindAll(tx, store.All())
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.ManagerStatus == nil || members[n.ID] {
			continue
		}
		n = n.Copy()
		n.ManagerStatus, n.Role, n.Spec.DesiredRole = nil, api.NodeRole_WORKER, api.NodeRole_WORKER
		n.Status.State, n.Status.Message = api.NodeStatus_DOWN, "removed from the managers"
		if _, err := store.Nodes.Update(tx, n); err != nil {
			return err
		}
	}
	return nil
}

func ensureNode(tx *store.Tx, p holdfast.Peer, st raft.Status) error {
	old := store.Nodes.Get(tx, p.NodeID)
	if old != nil {
		_, err := store.Nodes.Update(tx, asMember(old, p, st))
		return err
	}
	_, err := store.Nodes.Create(tx, asMember(&api.Node{
		ID: p.NodeID,
		Spec: api.NodeSpec{
			Annotations: api.Annotations{Name: p.Hostname}, DesiredRole: api.NodeRole_MANAGER,
			Membership: api.NodeSpec_ACCEPTED,
		},
	}, p, st))
	return err
}

// asMember gives a node as the membership and the leader's view of it say it is.
func asMember(n *api.Node, p holdfast.Peer, st raft.Status) *api.Node {
	n = n.Copy()
	n.Role, n.Spec.DesiredRole = api.NodeRole_MANAGER, api.NodeRole_MANAGER
	if n.Description == nil {
		n.Description = &api.NodeDescription{}
	}
	n.Description.Hostname = p.Hostname
	n.Status.Addr = p.Addr
	reach := api.RaftMemberStatus_UNREACHABLE
	n.Status.State, n.Status.Message = api.NodeStatus_DOWN, "the leader does not hear of it"
	if st.Reachable(p.RaftID) {
		reach = api.RaftMemberStatus_REACHABLE
		n.Status.State, n.Status.Message = api.NodeStatus_READY, ""
	}
	n.ManagerStatus = &api.ManagerStatus{
		RaftID: p.RaftID, Addr: p.Addr, Leader: p.RaftID == st.Leader, Reachability: reach,
	}
	return n
}
