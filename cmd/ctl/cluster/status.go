package cluster

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/member"
	"holdfast/internal/cli"
)

// status is what -o json prints, with all its keys, whatever their values.
type status struct {
	ClusterID string         `json:"clusterId"`
	Leader    uint64         `json:"leader,string"`
	Term      uint64         `json:"term,string"`
	Revision  uint64         `json:"revision,string"`
	Floor     uint64         `json:"floor,string"`
	Hash      string         `json:"hash"`
	Members   []memberStatus `json:"members"`
}

type memberStatus struct {
	member.JSON
	MatchIndex uint64 `json:"matchIndex,string"`
	State      string `json:"state"`
	StateHash  string `json:"stateHash"`
}

func newStatus(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "status [flags]",
		Short: "Show the leader, the revision and how far each member is",
		Args:  command.NoArgs,
		RunE: env.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			return runStatus(ctx, env, c)
		}),
	}
}

func runStatus(ctx context.Context, env *command.Env, c *client.Client) error {
	r, err := c.Cluster().Status(ctx, &holdfast.StatusRequest{})
	if err != nil {
		return err
	}
	p := env.Printer()
	switch p.Format {
	case cli.JSON:
		return p.JSON(toJSON(r))
	case cli.ID, cli.Name:
		return env.Printf("%s", cli.Clean(r.ClusterID))
	}
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	err = cli.PrintTable(env.Streams.Out, []string{"CLUSTER ID", "LEADER", "TERM", "REVISION", "FLOOR"},
		[][]string{{r.ClusterID, number(r.Leader), number(r.Term), number(r.Revision), number(r.Floor)}})
	if err != nil {
		return err
	}
	if err := env.Printf(""); err != nil {
		return err
	}
	view := member.View()
	view.Columns = append(view.Columns,
		cli.Column[*holdfast.Member]{Title: "MATCH", Value: func(m *holdfast.Member) string { return number(m.MatchIndex) }},
		cli.Column[*holdfast.Member]{Title: "STATE", Value: (*holdfast.Member).GetState},
		cli.Column[*holdfast.Member]{Title: "HASH", Value: (*holdfast.Member).GetStateHash})
	return cli.PrintList(p, view, r.Members)
}

func toJSON(r *holdfast.StatusResponse) status {
	s := status{
		ClusterID: r.ClusterID, Leader: r.Leader, Term: r.Term, Revision: r.Revision, Floor: r.Floor, Hash: r.Hash,
		Members: []memberStatus{},
	}
	for _, m := range r.Members {
		s.Members = append(s.Members, memberStatus{JSON: member.ToJSON(m), MatchIndex: m.MatchIndex, State: m.State, StateHash: m.StateHash})
	}
	return s
}
