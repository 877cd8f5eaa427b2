package faults

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/test/testcluster"
)

// badInput is something that is refused.
type badInput struct {
	name string
	// call makes the call through a member's own socket.
	call func(context.Context, *testcluster.Member) error
	kind errkind.Kind
	want []string // in the error: its text, field and limit
	// ctl does the same, if it can be said with ctl.
	ctl    []string
	code   int
	stderr []string
}

func createSpec(spec *api.ServiceSpec) func(context.Context, *testcluster.Member) error {
	return func(ctx context.Context, m *testcluster.Member) error {
		_, err := m.Client().Control().CreateService(ctx, &api.CreateServiceRequest{Spec: spec})
		return err
	}
}

func withNetwork(name string) *api.ServiceSpec {
	s := service("refused")
	s.Task.Networks = []*api.NetworkAttachmentConfig{{Target: name}}
	return s
}

func withPort(port uint32) *api.ServiceSpec {
	s := service("refused")
	s.Endpoint = &api.EndpointSpec{Ports: []*api.PortConfig{{
		PublishedPort: port, TargetPort: 80, Protocol: api.PortConfig_TCP, PublishMode: api.PortConfig_INGRESS,
	}}}
	return s
}

func withEnv(bytes int) *api.ServiceSpec {
	s := service("refused")
	s.Task.GetContainer().Env = []string{"BIG=" + strings.Repeat("x", bytes)}
	return s
}

// manyConfigs asks for several configs in one transaction.
func manyConfigs(n, bytesEach int) func(context.Context, *testcluster.Member) error {
	return func(ctx context.Context, m *testcluster.Member) error {
		r := &holdfast.TxnRequest{}
		for i := range n {
			r.Operations = append(r.Operations, &holdfast.Operation{Op: &holdfast.Operation_Create{
				Create: &holdfast.Object{Target: &holdfast.Object_Config{Config: &api.Config{Spec: api.ConfigSpec{
					Annotations: api.Annotations{Name: fmt.Sprint("refused-", i)}, Data: bytes.Repeat([]byte("x"), bytesEach),
				}}}},
			}})
		}
		_, err := m.Client().Objects().Txn(ctx, r)
		return err
	}
}

func badInputs(dir string) []badInput {
	big := filepath.Join(dir, "big")
	return []badInput{
		{
			name: "unknown network", call: createSpec(withNetwork("nope")), kind: errkind.Invalid,
			want: []string{"nope", "networks[0]"},
			ctl:  []string{"service", "create", "--name", "refused", "--network", "nope", "nginx"}, code: 1,
			stderr: []string{"network", "nope"},
		},
		{
			name: "bad name", call: createSpec(service("no spaces")), kind: errkind.Invalid,
			want: []string{"annotations.name", "no spaces"},
			ctl:  []string{"service", "create", "--name", "no spaces", "nginx"}, code: 1,
			stderr: []string{"name", "no spaces", "hint: "},
		},
		{
			name: "long name", call: createSpec(service(strings.Repeat("x", 64))), kind: errkind.Invalid,
			want: []string{"annotations.name", "63 characters"},
			ctl:  []string{"service", "create", "--name", strings.Repeat("x", 64), "nginx"}, code: 1,
			stderr: []string{"name", "63"},
		},
		{
			name: "taken name", call: createSpec(service("TAKEN")), kind: errkind.Exists, want: []string{"TAKEN"},
			ctl: []string{"service", "create", "--name", "TAKEN", "nginx"}, code: 6, stderr: []string{"TAKEN"},
		},
		{
			name: "taken port", call: createSpec(withPort(8080)), kind: errkind.Refused,
			want: []string{"8080", "taken", "ports[0]"},
			ctl:  []string{"service", "create", "--name", "refused", "--publish", "8080:80", "nginx"}, code: 6,
			stderr: []string{"8080", "taken"},
		},
		{
			name: "object of 2 MiB", call: createSpec(withEnv(2 << 20)), kind: errkind.Limit, want: []string{"1 MiB"},
		},
		{
			name: "config of 2 MiB", kind: errkind.Limit, want: []string{"spec.data", "1024000"},
			call: func(ctx context.Context, m *testcluster.Member) error {
				_, err := m.Client().Control().CreateConfig(ctx, &api.CreateConfigRequest{Spec: &api.ConfigSpec{
					Annotations: api.Annotations{Name: "refused"}, Data: make([]byte, 2<<20),
				}})
				return err
			},
			ctl: []string{"config", "create", "refused", big}, code: 1, stderr: []string{"spec.data", "1024000"},
		},
		{name: "request of 5 MiB", call: manyConfigs(6, 900<<10), kind: errkind.Limit, want: []string{"4 MiB"}},
		{name: "request of 5 MiB of services", call: createSpec(withEnv(5 << 20)), kind: errkind.Limit, want: []string{"4 MiB"}},
		{name: "request of 513 operations", call: manyConfigs(513, 1), kind: errkind.Limit, want: []string{"operations", "512"}},
		{name: "request of 20 MiB", call: createSpec(withEnv(20 << 20)), kind: errkind.Limit, want: nil},
	}
}

// TestBadInput asks the leader and a follower for what is refused. Nothing is changed.
func TestBadInput(t *testing.T) {
	c := testcluster.New(t, 2)
	settled(t, c)
	ctx := testcluster.Context(t, testcluster.Bound)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big"), make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	taken := withPort(8080)
	taken.Annotations.Name = "taken"
	if err := createSpec(taken)(ctx, c.Members[0]); err != nil {
		t.Fatal(err)
	}
	before := c.Same()
	for _, in := range badInputs(dir) {
		t.Run(in.name, func(t *testing.T) {
			for _, m := range c.Members {
				refused(t, in.call(ctx, m), in.kind, in.want...)
			}
			if in.ctl == nil {
				return
			}
			got := c.Ctl(in.ctl...)
			if got.Code != in.code || got.Out != "" || !strings.HasPrefix(got.Err, "error: ") {
				t.Errorf("ctl: %+v, want exit code %d", got, in.code)
			}
			for _, want := range in.stderr {
				if !strings.Contains(got.Err, want) {
					t.Errorf("ctl said %q, which does not tell %q", got.Err, want)
				}
			}
		})
	}
	after := c.Same()
	if diff := before.Diff(after); after.Revision != before.Revision || diff != "" {
		t.Errorf("the revision was %d and is %d; changed: %s", before.Revision, after.Revision, diff)
	}
}

// settled waits until the leader has written down what it knows of the members, after which
// it writes nothing by itself.
func settled(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	lead := c.Leader()
	testcluster.Wait(t, "node objects", func(ctx context.Context) error {
		r, err := lead.Client().Control().ListNodes(ctx, &api.ListNodesRequest{})
		if err != nil {
			return err
		}
		ready := 0
		for _, n := range r.Nodes {
			if n.ManagerStatus != nil && n.Status.State == api.NodeStatus_READY && n.ManagerStatus.Leader == (n.ID == lead.NodeID) {
				ready++
			}
		}
		if ready != len(c.Running()) {
			return fmt.Errorf("%d of %d nodes are ready", ready, len(c.Running()))
		}
		return nil
	})
}
