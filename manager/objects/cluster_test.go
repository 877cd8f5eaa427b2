package objects_test

import (
	"strings"
	"testing"

	"github.com/gogo/protobuf/types"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// manager makes the node of a manager, as managers do.
func (w *world) manager(hostname string) *api.Node {
	w.t.Helper()
	var n *api.Node
	w.must(func(tx *store.Tx) (err error) {
		n, err = store.Nodes.Create(tx, &api.Node{
			Role: api.NodeRole_MANAGER, Spec: api.NodeSpec{DesiredRole: api.NodeRole_MANAGER},
			Description:   &api.NodeDescription{Hostname: hostname},
			ManagerStatus: &api.ManagerStatus{RaftID: 1},
			Status:        api.NodeStatus{State: api.NodeStatus_READY},
		})
		return err
	})
	return n
}

func (w *world) cluster() *api.Cluster {
	w.t.Helper()
	var c *api.Cluster
	w.must(func(tx *store.Tx) (err error) {
		c, err = store.Clusters.Create(tx, &api.Cluster{
			Spec: api.ClusterSpec{Annotations: named("default")},
			RootCA: api.RootCA{
				CAKey:        []byte("canary-ca-key"),
				RootRotation: &api.RootRotation{CAKey: []byte("canary-rotation-key")},
				JoinTokens:   api.JoinTokens{Worker: "SWMTKN-1-d-w", Manager: "SWMTKN-1-d-m"},
			},
			UnlockKeys:           []*api.EncryptionKey{{Key: []byte("canary-unlock-key")}},
			NetworkBootstrapKeys: []*api.EncryptionKey{{Key: []byte("canary-network-key")}},
		})
		return err
	})
	return c
}

func TestNodeRules(t *testing.T) {
	w := newWorld(t)
	m := w.manager("m1")
	update := func(n *api.Node, change func(*api.NodeSpec)) error {
		spec := n.Spec.Copy()
		change(spec)
		return w.try(func(tx *store.Tx) error {
			_, err := objects.UpdateNode(tx, n.ID, &n.Meta.Version, spec)
			return err
		})
	}
	err := update(m, func(s *api.NodeSpec) { s.DesiredRole = api.NodeRole_WORKER })
	want(t, err, errkind.Refused, "spec.desired_role")
	if !strings.Contains(errkind.Hint(err), "ctl member rm m1") {
		t.Errorf("hint %q", errkind.Hint(err))
	}
	want(t, update(m, func(s *api.NodeSpec) { s.Availability = 9 }), errkind.Invalid, "spec.availability")
	want(t, update(m, func(s *api.NodeSpec) { s.Membership = 9 }), errkind.Invalid, "spec.membership")
	want(t, update(m, func(s *api.NodeSpec) {
		s.Annotations.Labels = map[string]string{"": ""}
	}), errkind.Invalid, "spec.annotations.labels")
	if err := update(m, func(s *api.NodeSpec) { s.Availability = api.NodeSpec_DRAIN }); err != nil {
		t.Error(err)
	}
	for _, force := range []bool{false, true} {
		want(t, w.try(func(tx *store.Tx) error {
			_, err := objects.RemoveNode(tx, m.ID, force)
			return err
		}), errkind.Refused, "")
	}
	for _, n := range []*api.Node{
		{Role: api.NodeRole_MANAGER},
		{Spec: api.NodeSpec{DesiredRole: api.NodeRole_MANAGER}},
		{ManagerStatus: &api.ManagerStatus{}},
	} {
		want(t, w.try(func(tx *store.Tx) error { _, err := objects.CreateNode(tx, n); return err }), errkind.Refused, "")
	}
}

func TestRemoveNodeOrphansTasks(t *testing.T) {
	w := newWorld(t)
	s := w.service(serviceSpec("web"))
	var node *api.Node
	states := []api.TaskState{api.TaskState_NEW, api.TaskState_RUNNING, api.TaskState_COMPLETE, api.TaskState_FAILED}
	tasks := make([]*api.Task, len(states))
	w.must(func(tx *store.Tx) (err error) {
		node, err = objects.CreateNode(tx, &api.Node{Status: api.NodeStatus{State: api.NodeStatus_READY}})
		if err != nil {
			return err
		}
		for i, state := range states {
			tasks[i], err = objects.CreateTask(tx, &api.Task{
				Spec: s.Spec.Task, ServiceID: s.ID, NodeID: node.ID, Status: api.TaskStatus{State: state},
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	remove := func(force bool) error {
		return w.try(func(tx *store.Tx) error { _, err := objects.RemoveNode(tx, node.ID, force); return err })
	}
	want(t, remove(false), errkind.Refused, "")
	if err := remove(true); err != nil {
		t.Fatal(err)
	}
	tx := w.Root()
	for i, state := range states {
		got := store.Tasks.Get(tx, tasks[i].ID)
		wanted := state
		if state < api.TaskState_COMPLETE {
			wanted = api.TaskState_ORPHANED
			if got.Meta.Version.Index != tx.Revision() {
				t.Errorf("task %d was orphaned at revision %d, not %d", i, got.Meta.Version.Index, tx.Revision())
			}
		}
		if got.Status.State != wanted {
			t.Errorf("a task that was %v is %v", state, got.Status.State)
		}
	}
}

func TestClusterRules(t *testing.T) {
	w := newWorld(t)
	c := w.cluster()
	update := func(r *api.KeyRotation, change func(*api.ClusterSpec)) (out *api.Cluster, err error) {
		spec := c.Spec.Copy()
		change(spec)
		err = w.try(func(tx *store.Tx) (err error) {
			out, err = objects.UpdateCluster(tx, c.ID, &c.Meta.Version, spec, r)
			return err
		})
		return out, err
	}
	for _, r := range []struct {
		field  string
		kind   errkind.Kind
		change func(*api.ClusterSpec)
	}{
		{"spec.annotations.name", errkind.Invalid, func(s *api.ClusterSpec) { s.Annotations.Name = "x" }},
		{"spec.annotations.labels", errkind.Invalid, func(s *api.ClusterSpec) {
			s.Annotations.Labels = map[string]string{"": ""}
		}},
		{"spec.orchestration.task_history_retention_limit", errkind.Invalid, func(s *api.ClusterSpec) {
			s.Orchestration.TaskHistoryRetentionLimit = -1
		}},
		{"spec.dispatcher.heartbeat_period", errkind.Invalid, func(s *api.ClusterSpec) {
			s.Dispatcher.HeartbeatPeriod = nanos(-1)
		}},
		{"spec.ca_config.node_cert_expiry", errkind.Invalid, func(s *api.ClusterSpec) {
			s.CAConfig.NodeCertExpiry = &types.Duration{Seconds: 3599}
		}},
		{"spec.ca_config.external_cas[0].url", errkind.Invalid, func(s *api.ClusterSpec) {
			s.CAConfig.ExternalCAs = []*api.ExternalCA{{URL: "http://x"}}
		}},
		{"spec.ca_config", errkind.Refused, func(s *api.ClusterSpec) { s.CAConfig.ForceRotate++ }},
		{"spec.ca_config", errkind.Refused, func(s *api.ClusterSpec) { s.CAConfig.SigningCAKey = []byte("x") }},
		{"spec.encryption_config.auto_lock_managers", errkind.Refused, func(s *api.ClusterSpec) {
			s.EncryptionConfig.AutoLockManagers = true
		}},
		{"spec.raft.snapshot_interval", errkind.Invalid, func(s *api.ClusterSpec) { s.Raft.SnapshotInterval = 10_000_001 }},
		{"spec.raft.log_entries_for_slow_followers", errkind.Invalid, func(s *api.ClusterSpec) {
			s.Raft.LogEntriesForSlowFollowers = 10_000_001
		}},
		{"spec.raft.election_tick", errkind.Invalid, func(s *api.ClusterSpec) {
			s.Raft.HeartbeatTick, s.Raft.ElectionTick = 3, 3
		}},
		{"spec.acceptance_policy.policies[0].secret.alg", errkind.Invalid, func(s *api.ClusterSpec) {
			s.AcceptancePolicy.Policies = []*api.AcceptancePolicy_RoleAdmissionPolicy{{
				Secret: &api.AcceptancePolicy_RoleAdmissionPolicy_Secret{Alg: "plain"},
			}}
		}},
	} {
		_, err := update(nil, r.change)
		want(t, err, r.kind, r.field)
	}
	_, err := update(&api.KeyRotation{ManagerUnlockKey: true}, func(*api.ClusterSpec) {})
	want(t, err, errkind.Refused, "rotation.manager_unlock_key")

	out, err := update(&api.KeyRotation{WorkerJoinToken: true}, func(s *api.ClusterSpec) {
		s.CAConfig.NodeCertExpiry = &types.Duration{Seconds: 3600}
	})
	if err != nil {
		t.Fatal(err)
	}
	tokens := out.RootCA.JoinTokens
	if tokens.Manager != "SWMTKN-1-d-m" || tokens.Worker == "SWMTKN-1-d-w" ||
		!strings.HasPrefix(tokens.Worker, "SWMTKN-1-d-") || len(tokens.Worker) != len("SWMTKN-1-d-")+25 {
		t.Errorf("tokens %v", tokens)
	}
	if store.Clusters.Get(w.Root(), c.ID).RootCA.CAKey == nil {
		t.Error("the key is gone")
	}
}

func TestHistoryRules(t *testing.T) {
	w := newWorld(t)
	c := w.cluster()
	for name, r := range map[string]struct {
		history      api.HistoryConfig
		field, limit string // of the error; empty: there is none
	}{
		"the defaults":       {},
		"the least":          {history: api.HistoryConfig{Revisions: 1, Bytes: 1, Age: nanos(1)}},
		"the most":           {history: api.HistoryConfig{Revisions: 100_000, Bytes: 256 << 20, Age: nanos(0)}},
		"too many revisions": {api.HistoryConfig{Revisions: 100_001}, "spec.history.revisions", "100000"},
		"far too many":       {api.HistoryConfig{Revisions: 1<<64 - 1}, "spec.history.revisions", "100000"},
		"too many bytes":     {api.HistoryConfig{Bytes: 256<<20 + 1}, "spec.history.bytes", "256 MiB"},
		"negative age":       {api.HistoryConfig{Age: nanos(-1)}, "spec.history.age", "negative"},
		"no age":             {api.HistoryConfig{Age: &types.Duration{Nanos: 1e9}}, "spec.history.age", "not a duration"},
	} {
		t.Run(name, func(t *testing.T) {
			err := w.try(func(tx *store.Tx) error {
				now := store.Clusters.Get(tx, c.ID)
				spec := now.Spec.Copy()
				spec.History = r.history
				_, err := objects.UpdateCluster(tx, c.ID, &now.Meta.Version, spec, nil)
				return err
			})
			if r.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			want(t, err, errkind.Invalid, r.field)
			if !strings.Contains(err.Error(), r.limit) {
				t.Errorf("%v does not name %q", err, r.limit)
			}
		})
	}
}

func TestRedact(t *testing.T) {
	w := newWorld(t)
	c := w.cluster()
	before, secret := c.Copy(), w.secrets[0].Copy()
	for _, o := range []interface{ Marshal() ([]byte, error) }{
		objects.Redact(c), objects.Redact(w.secrets[0]),
	} {
		b, err := o.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "canary") || strings.Contains(string(b), "data of") {
			t.Errorf("%T holds what it must not: %q", o, b)
		}
	}
	if !c.Equal(before) || !w.secrets[0].Equal(secret) {
		t.Error("the stored object changed")
	}
	if objects.Redact((*api.Secret)(nil)) != nil || objects.RedactCluster(nil) != nil {
		t.Error("nil became something")
	}
}
