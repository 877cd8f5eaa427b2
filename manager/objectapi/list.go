package objectapi

import (
	"context"

	"google.golang.org/grpc"

	"holdfast/api/holdfast"
	"holdfast/manager/kinds"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// Bounds of a page. An object has at most 1 MiB, so a page never comes near the 64 MiB that a
// reply may have.
const (
	maxPage      = 10_000
	maxPageBytes = 32 << 20
)

// Bounds of a message of a Scan. With the largest object it stays below the 4 MiB that a gRPC
// client takes if it is not told otherwise.
const (
	scanPage      = 1000
	scanPageBytes = 2 << 20
)

// pageLimit returns how many objects a page has at most.
func pageLimit(asked uint32, most int) int {
	if asked > 0 && int64(asked) < int64(most) {
		return int(asked)
	}
	return most
}

// List returns a page of the objects of one kind that a selector selects, in the order that was
// asked for. All pages of a list show the revision of the first one.
func (s *Server) List(ctx context.Context, r *holdfast.ListRequest) (*holdfast.ListResponse, error) {
	k, err := kinds.Of("kind", r.Kind)
	if err != nil {
		return nil, err
	}
	tx, after, err := s.begin(ctx, r.Continue)
	if err != nil {
		return nil, err
	}
	resp, _, err := page(tx, k, r, after, s.pageBytes)
	return resp, err
}

// begin returns what a page shows, and the ID that it begins after. A page that goes on where
// another ended shows the revision of that one.
func (s *Server) begin(ctx context.Context, continued string) (store.ReadTx, string, error) {
	if continued == "" {
		tx, err := s.reader.Read(ctx)
		return tx, "", err
	}
	token, err := objects.DecodeToken(continued)
	if err != nil {
		return nil, "", err
	}
	tx, err := s.at(ctx, token.Revision)
	return tx, token.After, err
}

// page makes one page of a list, and tells the bytes of its objects.
func page(tx store.ReadTx, k kinds.Kind, r *holdfast.ListRequest, after string, maxBytes int,
) (resp *holdfast.ListResponse, bytes int, err error) {
	order := objects.Order{Sort: r.Sort, Descending: r.Descending}
	resp = &holdfast.ListResponse{Revision: tx.Revision()}
	if r.CountOnly {
		resp.Remaining, err = k.Count(tx, &r.Selector, order, after)
		return resp, 0, err
	}
	p, err := k.ListIn(tx, &r.Selector, order, after, pageLimit(r.Limit, maxPage))
	if err != nil {
		return nil, 0, err
	}
	resp.Objects, bytes = shown(p.Objects, k, r.KeysOnly, maxBytes)
	resp.Remaining = p.Remaining + uint64(len(p.Objects)-len(resp.Objects))
	if n := len(resp.Objects); resp.Remaining > 0 {
		resp.Continue = objects.Token{Revision: tx.Revision(), After: p.Objects[n-1].GetID()}.Encode()
	}
	return resp, bytes, nil
}

// shown gives objects the form in which they are sent, and leaves out those over the bound, but
// for the first. It tells how many bytes they have.
func shown(all []state.Object, k kinds.Kind, keys bool, maxBytes int) (out []*holdfast.Object, bytes int) {
	out = make([]*holdfast.Object, 0, len(all))
	for _, o := range all {
		if keys {
			o = k.Keys(o)
		}
		o = objects.Redact(o)
		size := o.Size()
		if len(out) > 0 && bytes+size > maxBytes {
			break
		}
		out = append(out, objects.Wrap(o))
		bytes += size
	}
	return out, bytes
}

// Scan sends what all pages of a List would have. It holds the view until it is done, so a
// compaction meanwhile does not end it.
func (s *Server) Scan(r *holdfast.ListRequest, stream grpc.ServerStreamingServer[holdfast.ListResponse]) error {
	ctx := stream.Context()
	k, err := kinds.Of("kind", r.Kind)
	if err != nil {
		return err
	}
	tx, after, err := s.begin(ctx, r.Continue)
	if err != nil {
		return err
	}
	if r.CountOnly {
		resp, _, err := page(tx, k, r, after, s.pageBytes)
		if err != nil {
			return err
		}
		return stream.Send(resp)
	}
	all, remaining, err := k.Scan(tx, &r.Selector, objects.Order{Sort: r.Sort, Descending: r.Descending}, after)
	if err != nil {
		return err
	}
	m := scan{stream: stream, revision: tx.Revision(), remaining: remaining}
	most, maxBytes := pageLimit(r.Limit, scanPage), min(s.pageBytes, scanPageBytes)
	for o := range all {
		if err := ctx.Err(); err != nil { // Send does not always tell
			return err
		}
		if r.KeysOnly {
			o = k.Keys(o)
		}
		if err := m.add(objects.Redact(o), most, maxBytes); err != nil {
			return err
		}
	}
	return m.send()
}

// scan is a Scan under way: the message that it is at.
type scan struct {
	stream    grpc.ServerStreamingServer[holdfast.ListResponse]
	revision  uint64
	remaining uint64 // objects that were not sent yet
	objects   []*holdfast.Object
	bytes     int
}

// add adds an object to the message, which is sent first if it would be over a bound.
func (m *scan) add(o state.Object, most, maxBytes int) error {
	size := o.Size()
	if n := len(m.objects); n == most || n > 0 && m.bytes+size > maxBytes {
		if err := m.send(); err != nil {
			return err
		}
	}
	m.objects = append(m.objects, objects.Wrap(o))
	m.bytes += size
	return nil
}

// send sends the message. The last one is sent even if it is empty: it tells the revision.
func (m *scan) send() error {
	n := len(m.objects)
	m.remaining -= uint64(n)
	resp := &holdfast.ListResponse{Objects: m.objects, Revision: m.revision, Remaining: m.remaining}
	if m.remaining > 0 {
		last := objects.Unwrap(m.objects[n-1]).GetID()
		resp.Continue = objects.Token{Revision: m.revision, After: last}.Encode()
	}
	m.objects, m.bytes = nil, 0
	return m.stream.Send(resp)
}
