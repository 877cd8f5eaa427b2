package testcluster

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/manager/objects"
)

// Content is all objects that a member holds at one revision.
type Content struct {
	Revision uint64
	Services []*api.Service
	// digests are of the encoded objects, in the order of kinds and IDs.
	digests []digest
}

type digest struct {
	kind    holdfast.Kind
	id      string
	version uint64
	size    int
	sum     [sha256.Size]byte
}

func (d digest) compare(e digest) int {
	if d.kind != e.kind {
		return int(d.kind) - int(e.kind)
	}
	return strings.Compare(d.id, e.id)
}

func (d digest) String() string {
	return fmt.Sprintf("%v %s at revision %d, %d bytes, %x", d.kind, d.id, d.version, d.size, d.sum[:4])
}

// Revision asks for the newest revision, as fresh as can be.
func (m *Member) Revision(ctx context.Context) (uint64, error) {
	r, err := m.Client().Objects().List(ctx, &holdfast.ListRequest{Kind: holdfast.Kind_KIND_CLUSTER, Limit: 1})
	return r.GetRevision(), err
}

// Content reads everything from the member's own socket, as it was at a revision; it waits
// until the member has that.
func (m *Member) Content(ctx context.Context, revision uint64) (*Content, error) {
	_, err := m.Client().Objects().List(client.ReadAtLeast(ctx, revision),
		&holdfast.ListRequest{Kind: holdfast.Kind_KIND_CLUSTER, Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("%s, revision %d: %w", m.Name, revision, err)
	}
	c := &Content{Revision: revision}
	for kind := range holdfast.Kind_name {
		if holdfast.Kind(kind) == holdfast.Kind_KIND_UNSPECIFIED {
			continue
		}
		for o, err := range m.Client().List(client.ReadAt(ctx, revision), holdfast.Kind(kind), holdfast.Selector{}) {
			if err != nil {
				return nil, fmt.Errorf("%s, revision %d, %v: %w", m.Name, revision, holdfast.Kind(kind), err)
			}
			if err := c.add(holdfast.Kind(kind), o); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(c.digests, digest.compare)
	return c, nil
}

func (c *Content) add(kind holdfast.Kind, o *holdfast.Object) error {
	data, err := o.Marshal()
	if err != nil {
		return err
	}
	inner := objects.Unwrap(o)
	meta := inner.GetMeta()
	c.digests = append(c.digests, digest{
		kind: kind, id: inner.GetID(), version: meta.Version.Index, size: len(data), sum: sha256.Sum256(data),
	})
	if s := o.GetService(); s != nil {
		c.Services = append(c.Services, s)
	}
	return nil
}

// Len returns the number of objects.
func (c *Content) Len() int { return len(c.digests) }

// Diff tells what differs, or "".
func (c *Content) Diff(other *Content) string {
	if slices.Equal(c.digests, other.digests) {
		return ""
	}
	var out []string
	a, b := c.digests, other.digests
	for len(a)+len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].compare(b[0]) < 0:
			out = append(out, fmt.Sprintf("only the first has %v", a[0]))
			a = a[1:]
		case len(a) == 0 || a[0].compare(b[0]) > 0:
			out = append(out, fmt.Sprintf("only the second has %v", b[0]))
			b = b[1:]
		default:
			if a[0] != b[0] {
				out = append(out, fmt.Sprintf("%v, and %v", a[0], b[0]))
			}
			a, b = a[1:], b[1:]
		}
	}
	const most = 5
	if n := len(out); n > most {
		out = append(out[:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(out, "\n")
}

// Same checks that all members that run hold the same objects at one revision, the newest
// there is, and returns them.
func (c *Cluster) Same() *Content {
	c.t.Helper()
	members := c.Running()
	if len(members) == 0 {
		c.t.Fatal("no member runs")
	}
	ctx := Context(c.t, 2*Bound)
	revision, err := members[0].Revision(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.SameAt(revision)
}

// SameAt is Same at a given revision.
func (c *Cluster) SameAt(revision uint64) *Content {
	c.t.Helper()
	ctx := Context(c.t, 2*Bound)
	var first *Content
	for i, m := range c.Running() {
		content, err := m.Content(ctx, revision)
		if err != nil {
			c.t.Fatal(err)
		}
		if i == 0 {
			first = content
			continue
		}
		if diff := first.Diff(content); diff != "" {
			c.t.Errorf("%s and %s differ at revision %d:\n%s", c.Running()[0].Name, m.Name, revision, diff)
		}
	}
	return first
}
