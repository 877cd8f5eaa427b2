package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"holdfast/api/holdfast"
	"holdfast/client"
)

// maxSocket is the longest path that a unix socket may have, and one for its end.
const maxSocket = 108

// Cluster is managers that belong together.
type Cluster struct {
	Members []*Member

	t   testing.TB
	dir string
}

// Member is one manager and its files, whether it runs or not.
type Member struct {
	Name     string
	StateDir string
	Socket   string // path
	Remote   string // HOST:PORT, the same for each start
	NodeID   string // since it was ready last
	// Args are flags beside those that every manager has.
	Args []string
	// Process is the present one, or the last.
	Process *Process

	cluster *Cluster
	paused  bool
	patient *client.Client
	hasty   *client.Client
}

// New starts a cluster of n managers, and returns when all are ready.
func New(t testing.TB, n int) *Cluster {
	t.Helper()
	c := Empty(t)
	for range n {
		m := c.Add()
		m.Start()
	}
	return c
}

// Empty makes a cluster without a manager.
func Empty(t testing.TB) *Cluster {
	t.Helper()
	return &Cluster{t: t, dir: ShortDir(t)}
}

// ShortDir makes a folder for the test whose path is short enough for unix sockets in it.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf")
	if err == nil && len(dir) > maxSocket/2 {
		os.Remove(dir) //nolint:errcheck,gosec // it is empty and does no harm
		dir, err = os.MkdirTemp("/tmp", "hf")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Add makes a manager that does not run yet. Start it, and it joins those that run; the first
// one begins the cluster.
func (c *Cluster) Add() *Member {
	c.t.Helper()
	name := fmt.Sprint("m", len(c.Members)+1)
	m := &Member{
		Name: name, cluster: c, Remote: ReservePort(c.t),
		StateDir: filepath.Join(c.dir, name), Socket: filepath.Join(c.dir, name+".sock"),
	}
	m.patient = c.connect(client.Options{Endpoints: []string{m.Endpoint()}})
	m.hasty = c.connect(client.Options{Endpoints: []string{m.Endpoint()}, RetryFor: 1})
	c.Members = append(c.Members, m)
	return m
}

func (c *Cluster) connect(o client.Options) *client.Client {
	c.t.Helper()
	cl, err := client.New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			c.t.Error(err)
		}
	})
	return cl
}

// Client returns a client of some members; of all, if none is named.
func (c *Cluster) Client(members ...*Member) *client.Client {
	c.t.Helper()
	if len(members) == 0 {
		members = c.Members
	}
	var endpoints []string
	for _, m := range members {
		endpoints = append(endpoints, m.Endpoint())
	}
	return c.connect(client.Options{Endpoints: endpoints})
}

// Running returns the members whose process runs.
func (c *Cluster) Running() []*Member {
	var all []*Member
	for _, m := range c.Members {
		if m.Running() {
			all = append(all, m)
		}
	}
	return all
}

// Leader waits until a leader is known that leads now, and returns it.
func (c *Cluster) Leader() *Member {
	c.t.Helper()
	var lead *Member
	Wait(c.t, "a leader", func(ctx context.Context) error {
		var errs []error
		for _, m := range c.Running() {
			st, err := m.Once().Cluster().Status(ctx, &holdfast.StatusRequest{})
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if lead = c.leaderOf(st); lead != nil {
				return nil
			}
		}
		return errors.Join(append(errs, errors.New("nobody leads"))...)
	})
	return lead
}

func (c *Cluster) leaderOf(st *holdfast.StatusResponse) *Member {
	for _, p := range st.Members {
		for _, m := range c.Members {
			if p.RaftID == st.Leader && p.NodeID == m.NodeID && m.Running() {
				return m
			}
		}
	}
	return nil
}

// Followers returns the members that run and do not lead.
func (c *Cluster) Followers() []*Member {
	c.t.Helper()
	lead := c.Leader()
	var all []*Member
	for _, m := range c.Running() {
		if m != lead {
			all = append(all, m)
		}
	}
	return all
}

// Endpoint returns the address of the member's socket for clients.
func (m *Member) Endpoint() string { return "unix://" + m.Socket }

// Client returns a client of this member alone, which tries until its context ends.
func (m *Member) Client() *client.Client { return m.patient }

// Once returns a client of this member alone, which tries each call once.
func (m *Member) Once() *client.Client { return m.hasty }

// Running tells whether the member's process runs, and is not paused.
func (m *Member) Running() bool { return m.Process != nil && !m.Process.Exited() && !m.paused }

// flags are those that every start has.
func (m *Member) flags() []string {
	return append([]string{
		"--state-dir", m.StateDir, "--hostname", m.Name,
		"--listen-control-api", m.Endpoint(), "--listen-remote-api", m.Remote,
	}, m.Args...)
}

// JoinFlags returns the flags to join the cluster with, through a member that runs.
func (c *Cluster) JoinFlags() []string {
	c.t.Helper()
	through := c.Running()[0]
	return []string{"--join-addr", through.Remote, "--join-token", c.Token()}
}

// Token returns the token to join the cluster with.
func (c *Cluster) Token() string {
	c.t.Helper()
	token := c.Ctl("cluster", "token", "manager", "-q")
	if token.Code != 0 {
		c.t.Fatalf("ctl cluster token: %+v", token)
	}
	return strings.TrimSpace(token.Out)
}

// Start starts the member and waits until it is ready. If it has no state yet, and another
// member runs, it joins the cluster.
func (m *Member) Start() {
	m.cluster.t.Helper()
	m.Launch()
	m.WaitReady()
}

// Launch starts the member and does not wait.
func (m *Member) Launch() {
	m.cluster.t.Helper()
	args := m.flags()
	if _, err := os.Stat(filepath.Join(m.StateDir, "raft")); err != nil && len(m.cluster.Running()) > 0 {
		args = append(args, m.cluster.JoinFlags()...)
	}
	m.Process = Start(m.cluster.t, m.Name, args...)
}

// WaitReady waits until the member has said that it is ready.
func (m *Member) WaitReady() {
	m.cluster.t.Helper()
	line, err := m.Process.waitReady(Bound)
	if err != nil {
		m.cluster.t.Fatal(err)
	}
	parts := regexp.MustCompile(`^managerd: ready node=(\S+) control=unix://(\S+) remote=(\S+)$`).FindStringSubmatch(line)
	if parts == nil || parts[2] != m.Socket || parts[3] != m.Remote {
		m.cluster.t.Fatalf("%s said %q", m.Name, line)
	}
	m.NodeID = parts[1]
}
