package objects

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

const (
	// clusterName is the name of the cluster object.
	clusterName = "default"
	// minCertExpiry is the shortest life of a node's certificate.
	minCertExpiry = time.Hour
	// maxRaftEntries bounds how many entries of the raft log are between two snapshots, and kept
	// behind one.
	maxRaftEntries = 10_000_000
	// The most history that can be asked for is half of what the store keeps at most, so that
	// it is the leader who compacts, and as the cluster's settings say.
	maxHistoryRevisions = 100_000
	maxHistoryBytes     = 256 << 20
)

// UpdateCluster replaces the spec of the cluster, which must not have changed since version,
// and makes the keys that rotation asks for anew. Rotation may be nil.
func UpdateCluster(
	tx *store.Tx, id string, version *api.Version, spec *api.ClusterSpec, rotation *api.KeyRotation,
) (*api.Cluster, error) {
	old, err := forUpdate(tx, store.Clusters, id, version)
	if err != nil {
		return nil, err
	}
	noun, name := store.Clusters.Noun(), old.Spec.Annotations.Name
	if spec == nil {
		return nil, errkind.Field("spec", "is empty").On(noun, name)
	}
	if err := checkClusterSpec(&old.Spec, spec); err != nil {
		return nil, on(err, noun, name)
	}
	c := *old
	c.Spec = *spec
	if err := rotate(tx, &c, rotation); err != nil {
		return nil, on(err, noun, name)
	}
	return store.Clusters.Update(tx, &c)
}

// rotate makes new join tokens. The first part of a token, the digest, tells the cluster and
// stays.
func rotate(tx *store.Tx, c *api.Cluster, r *api.KeyRotation) error {
	if r.GetManagerUnlockKey() {
		e := errkind.New(errkind.Refused, "there are no unlock keys yet")
		e.Field = "rotation.manager_unlock_key"
		return e
	}
	tokens := &c.RootCA.JoinTokens
	for _, t := range []struct {
		asked bool
		token *string
		field string
	}{
		{r.GetWorkerJoinToken(), &tokens.Worker, "rotation.worker_join_token"},
		{r.GetManagerJoinToken(), &tokens.Manager, "rotation.manager_join_token"},
	} {
		if !t.asked {
			continue
		}
		digest := strings.LastIndexByte(*t.token, '-')
		if digest < 0 {
			e := errkind.New(errkind.Refused, "the cluster has no such token")
			e.Field = t.field
			return e
		}
		*t.token = (*t.token)[:digest+1] + tx.NewID()
	}
	return nil
}

func checkClusterSpec(old, s *api.ClusterSpec) error {
	if s.Annotations.Name != clusterName {
		return errkind.Field("spec.annotations.name", "must be %s, is %q", clusterName, s.Annotations.Name)
	}
	if n := s.Orchestration.TaskHistoryRetentionLimit; n < 0 {
		return errkind.Field("spec.orchestration.task_history_retention_limit", "is %d, must not be negative", n)
	}
	return first(
		func() error { return checkText("spec", s) },
		func() error { return checkLabels("spec.annotations", &s.Annotations) },
		func() error { return checkAcceptance("spec.acceptance_policy", &s.AcceptancePolicy) },
		func() error { return checkDuration("spec.dispatcher.heartbeat_period", s.Dispatcher.HeartbeatPeriod) },
		func() error { return checkRaft("spec.raft", &s.Raft) },
		func() error { return checkHistory("spec.history", &s.History) },
		func() error { return checkCA("spec.ca_config", &old.CAConfig, &s.CAConfig) },
		func() error {
			if s.EncryptionConfig.AutoLockManagers && !old.EncryptionConfig.AutoLockManagers {
				return notYet("spec.encryption_config.auto_lock_managers", "managers cannot be locked yet")
			}
			return nil
		},
	)
}

func checkAcceptance(at string, p *api.AcceptancePolicy) error {
	for i, policy := range p.Policies {
		at := fmt.Sprintf("%s.policies[%d]", at, i)
		if err := checkEnum(at+".role", policy.GetRole(), api.NodeRole_name); err != nil {
			return err
		}
		if s := policy.GetSecret(); s != nil && !strings.EqualFold(s.Alg, "bcrypt") {
			return errkind.Field(at+".secret.alg", "%q is not supported", s.Alg).WithHint("use bcrypt")
		}
	}
	return nil
}

// checkRaft checks the ticks, and that there are snapshots: without one the log only grows.
func checkRaft(at string, r *api.RaftConfig) error {
	switch {
	case r.SnapshotInterval > maxRaftEntries:
		return errkind.Field(at+".snapshot_interval", "is %d, must be at most %d", r.SnapshotInterval, maxRaftEntries)
	case r.LogEntriesForSlowFollowers > maxRaftEntries:
		return errkind.Field(at+".log_entries_for_slow_followers", "is %d, must be at most %d",
			r.LogEntriesForSlowFollowers, maxRaftEntries)
	}
	if r.ElectionTick != 0 && r.ElectionTick <= max(r.HeartbeatTick, 1) {
		return errkind.Field(at+".election_tick", "is %d, must be greater than heartbeat_tick", r.ElectionTick)
	}
	return nil
}

func checkHistory(at string, h *api.HistoryConfig) error {
	switch {
	case h.Revisions > maxHistoryRevisions:
		return errkind.Field(at+".revisions", "is %d, must be at most %d", h.Revisions, maxHistoryRevisions)
	case h.Bytes > maxHistoryBytes:
		return errkind.Field(at+".bytes", "is %d, must be at most %d (%d MiB)", h.Bytes, maxHistoryBytes, maxHistoryBytes>>20)
	}
	return checkDuration(at+".age", h.Age)
}

func checkCA(at string, old, c *api.CAConfig) error {
	expiry, err := duration(at+".node_cert_expiry", c.NodeCertExpiry)
	if err != nil {
		return err
	}
	if c.NodeCertExpiry != nil && expiry < minCertExpiry {
		return errkind.Field(at+".node_cert_expiry", "is %v, must be at least %v", expiry, minCertExpiry)
	}
	for i, ca := range c.ExternalCAs {
		at := fmt.Sprintf("%s.external_cas[%d]", at, i)
		if err := checkEnum(at+".protocol", ca.GetProtocol(), api.ExternalCA_CAProtocol_name); err != nil {
			return err
		}
		if u, err := url.Parse(ca.GetURL()); err != nil || u.Scheme != "https" || u.Host == "" {
			return errkind.Field(at+".url", "%q is not an https URL", ca.GetURL())
		}
	}
	if c.ForceRotate != old.ForceRotate || len(c.SigningCACert) > 0 || len(c.SigningCAKey) > 0 {
		return notYet(at, "the certificate authority cannot be rotated yet")
	}
	return nil
}

func notYet(field, msg string) error {
	e := errkind.New(errkind.Refused, "%s", msg)
	e.Field = field
	return e
}
