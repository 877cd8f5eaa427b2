// Package member holds the commands on managers as members of the raft group.
package member

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
	"holdfast/internal/errkind"
)

// New makes the command "member" with its verbs.
func New(env *command.Env) *cobra.Command {
	return command.Group("member", "Manage managers as members of the raft group", newLs(env), newRm(env))
}

// View says how members look. A member is named by its hostname; its raft ID is its ID.
func View() cli.View[*holdfast.Member] {
	column := func(title string, value func(*holdfast.Member) string) cli.Column[*holdfast.Member] {
		return cli.Column[*holdfast.Member]{Title: title, Value: value}
	}
	return cli.View[*holdfast.Member]{
		ID:   raftID,
		Name: (*holdfast.Member).GetHostname,
		Columns: []cli.Column[*holdfast.Member]{
			column("RAFT ID", raftID),
			column("NODE ID", (*holdfast.Member).GetNodeID),
			column("HOSTNAME", (*holdfast.Member).GetHostname),
			column("ADDRESS", (*holdfast.Member).GetAddr),
			column("ROLE", (*holdfast.Member).GetRole),
			column("LEADER", func(m *holdfast.Member) string { return yes(m.Leader) }),
			column("REACHABLE", func(m *holdfast.Member) string { return yes(m.Reachable) }),
			column("APPLIED", func(m *holdfast.Member) string { return strconv.FormatUint(m.AppliedRevision, 10) }),
		},
	}
}

func raftID(m *holdfast.Member) string { return strconv.FormatUint(m.RaftID, 10) }

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// JSON is a member with all its keys, whatever their values.
type JSON struct {
	RaftID          uint64 `json:"raftId,string"`
	NodeID          string `json:"nodeId"`
	Hostname        string `json:"hostname"`
	Addr            string `json:"addr"`
	Role            string `json:"role"`
	Leader          bool   `json:"leader"`
	Reachable       bool   `json:"reachable"`
	AppliedRevision uint64 `json:"appliedRevision,string"`
}

// ToJSON gives a member with all its keys.
func ToJSON(m *holdfast.Member) JSON {
	return JSON{
		RaftID: m.RaftID, NodeID: m.NodeID, Hostname: m.Hostname, Addr: m.Addr, Role: m.Role,
		Leader: m.Leader, Reachable: m.Reachable, AppliedRevision: m.AppliedRevision,
	}
}

// resolve finds the one member that a person means: by its raft ID, its node ID, its hostname
// or the beginning of its node ID.
func resolve(members []*holdfast.Member, arg string) (*holdfast.Member, error) {
	for _, matches := range []func(*holdfast.Member) bool{
		func(m *holdfast.Member) bool { return raftID(m) == arg },
		func(m *holdfast.Member) bool { return m.NodeID == arg },
		func(m *holdfast.Member) bool { return strings.EqualFold(m.Hostname, arg) },
		func(m *holdfast.Member) bool { return strings.HasPrefix(m.NodeID, arg) },
	} {
		var found []*holdfast.Member
		var ids []string
		for _, m := range members {
			if matches(m) {
				found, ids = append(found, m), append(ids, raftID(m))
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return nil, errkind.New(errkind.Invalid, "is ambiguous: raft IDs %s", strings.Join(ids, ", ")).
				On("member", arg).WithHint("name it by its raft ID")
		}
	}
	return nil, errkind.New(errkind.NotFound, "not found").On("member", arg)
}

func list(ctx context.Context, c *client.Client) ([]*holdfast.Member, error) {
	r, err := c.Cluster().Members(ctx, &holdfast.MembersRequest{})
	return r.GetMembers(), err
}
