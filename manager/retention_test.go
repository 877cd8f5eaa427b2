package manager_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gogo/protobuf/types"
	"google.golang.org/grpc/metadata"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/wire"
	"holdfast/manager"
	"holdfast/manager/state/store"
)

func TestRetention(t *testing.T) {
	for name, c := range map[string]struct {
		spec api.HistoryConfig
		want store.Retention
	}{
		"the defaults": {want: store.Retention{Revisions: 10_000, Bytes: 64 << 20}},
		"revisions":    {api.HistoryConfig{Revisions: 5}, store.Retention{Revisions: 5, Bytes: 64 << 20}},
		"bytes":        {api.HistoryConfig{Bytes: 7}, store.Retention{Revisions: 10_000, Bytes: 7}},
		"age": {
			api.HistoryConfig{Age: &types.Duration{Seconds: 2, Nanos: 1}},
			store.Retention{Revisions: 10_000, Bytes: 64 << 20, Age: 2*time.Second + 1},
		},
	} {
		if got, err := manager.Retention(&c.spec); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := manager.Retention(&api.HistoryConfig{Age: &types.Duration{Nanos: -1, Seconds: 1}}); err == nil {
		t.Error("an age that is none")
	}
}

// The leader compacts what is more than the cluster's spec allows, and all members have the same
// floor.
func TestHistoryIsBounded(t *testing.T) {
	managers := three(t, manager.Config{})
	control := api.NewControlClient(dial(t, managers[1].ready.Remote))
	create := func(name string) uint64 {
		resp, err := control.CreateService(t.Context(), &api.CreateServiceRequest{Spec: serviceSpec(name)})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Service.Meta.Version.Index
	}
	for i := range 12 {
		create(fmt.Sprint("s", i))
	}
	for i, m := range managers {
		if floor := m.Counters().Store.Floor; floor != 0 {
			t.Errorf("floor %d of manager %d: so few revisions are no excess", floor, i+1)
		}
	}
	keep := func(h api.HistoryConfig) uint64 {
		found, err := control.ListClusters(t.Context(), &api.ListClustersRequest{})
		if err != nil {
			t.Fatal(err)
		}
		c := found.Clusters[0]
		c.Spec.History = h
		resp, err := control.UpdateCluster(t.Context(), &api.UpdateClusterRequest{
			ClusterID: c.ID, ClusterVersion: &c.Meta.Version, Spec: &c.Spec,
		})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Cluster.Meta.Version.Index
	}
	// Node objects may change by themselves meanwhile: a floor may be higher than what is written
	// here alone would make it.
	settled := func(least, most uint64) bool {
		for _, m := range managers {
			st := m.Counters().Store
			if st.Floor < least || st.Floor != managers[0].Counters().Store.Floor || st.Revision-st.Floor > most {
				return false
			}
		}
		return true
	}
	at := keep(api.HistoryConfig{Revisions: 5})
	eventually(t, func() bool { return settled(at-5, 5) })
	for i := range 12 {
		at = create(fmt.Sprint("more", i))
	}
	eventually(t, func() bool { return settled(at-5, 5) })
	at = keep(api.HistoryConfig{Age: &types.Duration{Nanos: 1}})
	eventually(t, func() bool { return settled(at, 0) })

	for i, m := range managers {
		ctx := metadata.AppendToOutgoingContext(t.Context(), wire.Read, fmt.Sprintf("at=%d", at-1))
		_, err := api.NewControlClient(dial(t, m.ready.Remote)).ListServices(ctx, &api.ListServicesRequest{})
		if !errkind.Is(errkind.FromStatus(err), errkind.OutOfRange) {
			t.Errorf("below the floor of manager %d: %v", i+1, err)
		}
	}
}

// Any manager compacts when it is asked to.
func TestCompactThroughAFollower(t *testing.T) {
	managers := three(t, manager.Config{})
	asked := managers[2]
	client := holdfast.NewClusterClient(dial(t, asked.ready.Remote))
	for _, revision := range []uint64{2, 0} {
		now := asked.Counters().Store.Revision
		r, err := client.Compact(t.Context(), &holdfast.CompactRequest{Revision: revision})
		if err != nil || revision > 0 && r.Floor != revision || revision == 0 && r.Floor < now {
			t.Fatalf("compact %d: %v, %v", revision, r, err)
		}
		eventually(t, func() bool {
			for _, m := range managers {
				if m.Counters().Store.Floor != r.Floor {
					return false
				}
			}
			return true
		})
	}
	_, err := client.Compact(t.Context(), &holdfast.CompactRequest{Revision: 1 << 40})
	if !errkind.Is(errkind.FromStatus(err), errkind.OutOfRange) {
		t.Errorf("a revision to come: %v", err)
	}
}
