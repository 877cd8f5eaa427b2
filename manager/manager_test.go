package manager_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
	"holdfast/internal/wire"
	"holdfast/manager"
	"holdfast/manager/state/raft"
)

func serviceSpec(name string) *api.ServiceSpec {
	return &api.ServiceSpec{
		Annotations: api.Annotations{Name: name},
		Task:        api.TaskSpec{Runtime: &api.TaskSpec_Container{Container: &api.ContainerSpec{Image: "nginx"}}},
		Mode:        &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: 1}},
	}
}

// A write goes through any manager, a retry of it through another gets the first outcome, and
// a read anywhere shows it.
func TestAnyManagerServes(t *testing.T) {
	managers := three(t, manager.Config{})
	request := wire.FormatRequestID(0, id.New())
	var made *api.Service
	for i, m := range managers {
		ctx := metadata.AppendToOutgoingContext(t.Context(), wire.RequestID, request)
		resp, err := api.NewControlClient(dial(t, m.ready.Remote)).CreateService(ctx, &api.CreateServiceRequest{Spec: serviceSpec("web")})
		if err != nil {
			t.Fatalf("through manager %d: %v", i+1, err)
		}
		if made == nil {
			made = resp.Service
		}
		if resp.Service.ID != made.ID || resp.Service.Meta.Version.Index != made.Meta.Version.Index {
			t.Errorf("through manager %d: %s at %v; the first outcome is %s at %v",
				i+1, resp.Service.ID, resp.Service.Meta.Version, made.ID, made.Meta.Version)
		}
		got, err := api.NewControlClient(dial(t, "unix://"+m.ready.Control)).GetService(t.Context(), &api.GetServiceRequest{ServiceID: made.ID})
		if err != nil || !got.Service.Equal(made) {
			t.Errorf("read from manager %d: %v, %v", i+1, got, err)
		}
		members, err := holdfast.NewClusterClient(dial(t, m.ready.Remote)).Members(t.Context(), &holdfast.MembersRequest{})
		if err != nil || len(members.Members) != 3 {
			t.Fatalf("members from manager %d: %v, %v", i+1, members, err)
		}
		for _, member := range members.Members {
			if !member.Reachable {
				t.Errorf("manager %d says that %s cannot be reached", i+1, member.Hostname)
			}
		}
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), wire.RequestID, request)
	_, err := api.NewControlClient(dial(t, managers[1].ready.Remote)).CreateService(ctx, &api.CreateServiceRequest{Spec: serviceSpec("other")})
	if !errkind.Is(errkind.FromStatus(err), errkind.Invalid) {
		t.Errorf("the ID of another request: %v", err)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	m := three(t, manager.Config{})[0]
	control := api.NewControlClient(dial(t, m.ready.Remote))
	spec := serviceSpec("big")
	spec.Annotations.Labels = map[string]string{"x": strings.Repeat("x", 5<<20)}
	_, err := control.CreateService(t.Context(), &api.CreateServiceRequest{Spec: spec})
	if err := errkind.FromStatus(err); !errkind.Is(err, errkind.Limit) || !strings.Contains(err.Error(), "4 MiB") {
		t.Errorf("a request of 5 MiB: %v", err)
	}
	for header, bad := range map[string]string{
		wire.RequestID: "7", wire.Read: "stale", wire.Message: strings.Repeat("m", 2000),
	} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), header, bad)
		var err error
		if header == wire.Read {
			_, err = control.ListServices(ctx, &api.ListServicesRequest{})
		} else {
			_, err = control.CreateService(ctx, &api.CreateServiceRequest{Spec: serviceSpec("web")})
		}
		if err := errkind.FromStatus(err); !errkind.Is(err, errkind.Invalid) || !strings.Contains(err.Error(), header) {
			t.Errorf("%s %q: %v", header, bad, err)
		}
	}
}

const electionTimeout = raft.DefaultElectionTicks * raft.DefaultTick

// eventually waits until ok returns true, and fails the test if it does not within a minute.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	timeout := time.After(time.Minute)
	for !ok() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-timeout:
			t.Fatal("did not come about within a minute")
		}
	}
}

// A cluster that nobody uses does not write.
func TestIdleClusterIsStill(t *testing.T) {
	managers := three(t, manager.Config{})
	cluster := holdfast.NewClusterClient(dial(t, managers[0].ready.Remote))
	settled := func() uint64 {
		nodes, err := api.NewControlClient(dial(t, managers[0].ready.Remote)).ListNodes(t.Context(), &api.ListNodesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		reachable := 0
		for _, n := range nodes.Nodes {
			if n.ManagerStatus.GetReachability() == api.RaftMemberStatus_REACHABLE {
				reachable++
			}
		}
		if reachable < 3 {
			return 0
		}
		st, err := cluster.Status(t.Context(), &holdfast.StatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return st.Revision
	}
	var first uint64
	eventually(t, func() bool { first = settled(); return first > 0 })
	began := time.Now()
	eventually(t, func() bool { return time.Since(began) > 3*electionTimeout })
	if now := settled(); now != first {
		t.Errorf("revision %d became %d", first, now)
	}
}

// Every method that is served has a class, and every class is of a method that is served.
func TestEveryMethodHasAClass(t *testing.T) {
	m := three(t, manager.Config{})[0]
	served := map[string]bool{}
	for _, s := range m.Services() {
		for name, info := range s.GetServiceInfo() {
			for _, method := range info.Methods {
				served[fmt.Sprintf("/%s/%s", name, method.Name)] = true
			}
		}
	}
	classified := manager.Classified()
	for method := range served {
		if !classified[method] {
			t.Errorf("%s is served and has no class", method)
		}
	}
	for method := range classified {
		if !served[method] {
			t.Errorf("%s has a class and is not served", method)
		}
	}
}
