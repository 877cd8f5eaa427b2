package cluster

import (
	"context"
	"time"

	"github.com/gogo/protobuf/types"
	"github.com/spf13/cobra"

	"holdfast/api"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/cmd/ctl/internal/values"
	"holdfast/internal/cli"
)

type updateOptions struct {
	// The flags, and which of them were given.
	revisions, interval, entries uint64
	bytes                        string
	age                          time.Duration
	labelAdd, labelRm            []string
	given                        func(flag string) bool
}

// The flags of settings, which are left as they are unless they are given.
const (
	flagRevisions = "history-revisions"
	flagBytes     = "history-bytes"
	flagAge       = "history-age"
	flagInterval  = "snapshot-interval"
	flagEntries   = "log-entries-for-slow-followers"
)

// edit is what the flags ask for, once they are read.
type edit struct {
	settings []func(*api.ClusterSpec)
	add      map[string]string
	remove   []string
}

func newUpdate(env *command.Env) *cobra.Command {
	o := &updateOptions{}
	cmd := &cobra.Command{
		Use:   "update [flags]",
		Short: "Change how much history the cluster keeps, its raft settings or its labels",
		Args:  command.NoArgs,
	}
	fs := cmd.Flags()
	fs.Uint64Var(&o.revisions, flagRevisions, 0, "revisions to keep; 0 for the default, 10,000")
	fs.StringVar(&o.bytes, flagBytes, "", "`SIZE` of changes to keep, such as 32m; 0 for the default, 64m")
	fs.DurationVar(&o.age, flagAge, 0, "age up to which changes are kept; 0 for any")
	fs.Uint64Var(&o.interval, flagInterval, 0, "log entries between two snapshots; 0 for the default, 10,000")
	fs.Uint64Var(&o.entries, flagEntries, 0, "log entries to keep behind a snapshot; 0 for the default, 500")
	fs.StringArrayVar(&o.labelAdd, "label-add", nil, "label to set, `KEY[=VALUE]`")
	fs.StringArrayVar(&o.labelRm, "label-rm", nil, "label to remove, by `KEY`")
	o.given = fs.Changed
	cmd.RunE = env.Run(func(ctx context.Context, c *client.Client, _ []string) error {
		return runUpdate(ctx, env, c, o)
	})
	return cmd
}

func runUpdate(ctx context.Context, env *command.Env, c *client.Client, o *updateOptions) error {
	e, err := o.parse()
	if err != nil {
		return err
	}
	updated, err := command.Retry(func() (*api.Cluster, error) {
		found, err := find(ctx, c)
		if err != nil {
			return nil, err
		}
		spec := found.Spec.Copy()
		e.apply(spec)
		r, err := c.Control().UpdateCluster(ctx, &api.UpdateClusterRequest{
			ClusterID: found.ID, ClusterVersion: found.Meta.Version.Copy(), Spec: spec,
		})
		return r.GetCluster(), err
	})
	if err != nil {
		return err
	}
	return cli.PrintCreated(env.Printer(), kinds.Clusters().View, updated)
}

func (o *updateOptions) parse() (edit, error) {
	e := edit{remove: o.labelRm}
	var size int64
	var err error
	if o.given(flagBytes) {
		if size, err = values.ParseBytes(o.bytes); err != nil {
			return e, cli.Usagef("--%s: %v", flagBytes, err)
		}
	}
	if o.age < 0 {
		return e, cli.Usagef("--%s: %v is negative", flagAge, o.age)
	}
	if e.add, err = values.ParseLabels(o.labelAdd); err != nil {
		return e, cli.Usagef("--label-add: %v", err)
	}
	for _, s := range []struct {
		flag string
		set  func(*api.ClusterSpec)
	}{
		{flagRevisions, func(s *api.ClusterSpec) { s.History.Revisions = o.revisions }},
		{flagBytes, func(s *api.ClusterSpec) { s.History.Bytes = uint64(size) }},
		{flagAge, func(s *api.ClusterSpec) { s.History.Age = protoAge(o.age) }},
		{flagInterval, func(s *api.ClusterSpec) { s.Raft.SnapshotInterval = o.interval }},
		{flagEntries, func(s *api.ClusterSpec) { s.Raft.LogEntriesForSlowFollowers = o.entries }},
	} {
		if o.given(s.flag) {
			e.settings = append(e.settings, s.set)
		}
	}
	return e, nil
}

// protoAge gives an age as the API has it, where any age is none.
func protoAge(age time.Duration) *types.Duration {
	if age == 0 {
		return nil
	}
	return types.DurationProto(age)
}

func (e edit) apply(spec *api.ClusterSpec) {
	for _, set := range e.settings {
		set(spec)
	}
	spec.Annotations.Labels = values.EditLabels(spec.Annotations.Labels, e.remove, e.add)
}
