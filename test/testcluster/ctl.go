package testcluster

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"

	"holdfast/api"
	"holdfast/client"
)

// Result is what came of a command.
type Result struct {
	Code     int
	Out, Err string
}

// Ctl runs ctl on the members that run.
func (c *Cluster) Ctl(args ...string) Result {
	c.t.Helper()
	return c.CtlInput("", args...)
}

// CtlInput runs ctl on the members that run, with something on its standard input.
func (c *Cluster) CtlInput(stdin string, args ...string) Result {
	c.t.Helper()
	var sockets []string
	for _, m := range c.Running() {
		sockets = append(sockets, m.Endpoint())
	}
	ctx := Context(c.t, Bound)
	cmd := exec.CommandContext(ctx, program(c.t, "ctl"), append([]string{"--socket", strings.Join(sockets, ",")}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = strings.NewReader(stdin), &out, &errOut, environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		c.t.Fatalf("ctl %s: %v", strings.Join(args, " "), err)
	}
	return Result{Code: cmd.ProcessState.ExitCode(), Out: out.String(), Err: errOut.String()}
}

// Configure changes the cluster's settings.
func (c *Cluster) Configure(change func(*api.ClusterSpec)) {
	c.t.Helper()
	cl := c.Client(c.Running()...)
	Wait(c.t, "the cluster's settings", func(ctx context.Context) error {
		all, err := client.Collect(cl.Clusters(ctx, nil))
		if err != nil {
			return err
		}
		if len(all) != 1 {
			return errors.New("there is not one cluster object")
		}
		spec := all[0].Spec
		change(&spec)
		_, err = cl.Control().UpdateCluster(ctx, &api.UpdateClusterRequest{
			ClusterID: all[0].ID, ClusterVersion: &all[0].Meta.Version, Spec: &spec,
		})
		return err
	})
}
