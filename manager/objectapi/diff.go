package objectapi

import (
	"cmp"
	"context"
	"slices"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/kinds"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// Diff compares two revisions. What it costs depends on the changes between them, and not on how
// many objects there are; but for a comparison with the empty store, of which all objects differ.
func (s *Server) Diff(ctx context.Context, r *holdfast.DiffRequest) (*holdfast.DiffResponse, error) {
	compared, err := diffKinds(r)
	if err != nil {
		return nil, err
	}
	log, token, err := s.beginDiff(ctx, r)
	if err != nil {
		return nil, err
	}
	d := diff{
		server: s, kinds: compared, log: log, from: r.From, to: cmp.Or(r.To, log.Revision()),
		limit: pageLimit(r.Limit, maxPage),
	}
	if token != nil {
		d.from, d.to, d.after = token.from, token.to, *token
	}
	if err := d.check(r.From == 0); err != nil {
		return nil, err
	}
	switch {
	case r.ID != "" || r.Name != "":
		err = d.object(ctx, r)
	case r.From == 0:
		err = d.all(ctx)
	default:
		err = d.changed(ctx)
	}
	if err != nil {
		return nil, err
	}
	d.resp.From, d.resp.To = d.from, d.to
	return &d.resp, nil
}

// diffKinds returns the kinds that a request compares, in order.
func diffKinds(r *holdfast.DiffRequest) ([]kinds.Kind, error) {
	if r.ID == "" && r.Name == "" && r.Kind == holdfast.Kind_KIND_UNSPECIFIED {
		return kinds.All(), nil
	}
	if r.ID == "" && r.Name == "" {
		k, err := kinds.Of("kind", r.Kind)
		return []kinds.Kind{k}, err
	}
	k, err := named(r.Kind, r.ID, r.Name)
	return []kinds.Kind{k}, err
}

// beginDiff returns the log to compare by, and where the page goes on; nil if it is the first.
func (s *Server) beginDiff(ctx context.Context, r *holdfast.DiffRequest) (store.Log, *diffToken, error) {
	if r.Continue == "" {
		tx, err := s.reader.Read(ctx)
		if err != nil {
			return store.Log{}, nil, err
		}
		log, err := logOf(tx)
		return log, nil, err
	}
	token, err := decodeDiffToken(r.Continue)
	if err != nil {
		return store.Log{}, nil, err
	}
	if r.From != 0 && r.From != token.from || r.To != 0 && r.To != token.to {
		return store.Log{}, nil, errkind.Field("continue", "is of a comparison of revision %d with %d", token.from, token.to).
			WithHint("start the comparison again without it")
	}
	tx, err := s.at(ctx, max(token.from, token.to))
	if err != nil {
		return store.Log{}, nil, err
	}
	log, err := logOf(tx)
	return log, &token, err
}

// diff makes the reply to a Diff.
type diff struct {
	server   *Server
	kinds    []kinds.Kind
	log      store.Log
	from, to uint64
	after    diffToken // begins after its object
	limit    int

	resp  holdfast.DiffResponse
	bytes int
}

// check tells why the revisions cannot be compared, or nil. From the empty store everything can
// be.
func (d *diff) check(fromNothing bool) error {
	if err := d.log.Check(d.to); err != nil || fromNothing {
		return err
	}
	return d.log.Check(d.from)
}

// net is what an object was in the one revision and in the other; nil if it was not there.
type net struct {
	kind          kinds.Kind
	id            string
	before, after state.Object
}

// differs tells whether anything but the meta is another.
func (n net) differs() bool {
	if n.before == nil || n.after == nil {
		return n.before != n.after
	}
	return !n.kind.Same(n.before, n.after)
}

// changed compares what changed between the two revisions.
func (d *diff) changed(ctx context.Context) error {
	type key struct {
		kind holdfast.Kind
		id   string
	}
	byKind := map[holdfast.Kind]kinds.Kind{}
	for _, k := range d.kinds {
		byKind[k.Kind()] = k
	}
	places := map[key]int{}
	var all []net
	for r := range d.log.Between(min(d.from, d.to), max(d.from, d.to)) {
		for _, c := range r.Changes {
			k := byKind[c.Kind]
			if k == nil {
				continue
			}
			at := key{c.Kind, c.Object().GetID()}
			i, ok := places[at]
			if !ok {
				i = len(all)
				places[at] = i
				all = append(all, net{kind: k, id: at.id, before: c.Old})
			}
			all[i].after = c.New
		}
	}
	slices.SortFunc(all, func(a, b net) int {
		return cmp.Or(cmp.Compare(a.kind.Kind(), b.kind.Kind()), cmp.Compare(a.id, b.id))
	})
	for _, n := range all {
		if err := d.add(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// add adds an object to the reply, if it differs; once the page is full it is counted only.
func (d *diff) add(ctx context.Context, n net) error {
	if d.from > d.to {
		n.before, n.after = n.after, n.before
	}
	if !n.differs() || d.passed(n.kind.Kind(), n.id) {
		return nil
	}
	if d.resp.Remaining > 0 || len(d.resp.Objects) == d.limit {
		d.rest(1)
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	told := &holdfast.ObjectDiff{Kind: n.kind.Kind(), ID: n.id, Action: actionOf(n.before, n.after)}
	if last := n.after; last != nil {
		told.Name = n.kind.NameOf(last)
	} else {
		told.Name = n.kind.NameOf(n.before)
	}
	if told.Action == holdfast.Action_ACTION_UPDATE {
		var err error
		if told.Fields, err = d.server.fieldsOf(n.kind, n.before, n.after); err != nil {
			return err
		}
	}
	if d.bytes += told.Size(); d.bytes > d.server.pageBytes && len(d.resp.Objects) > 0 {
		d.rest(1)
		return nil
	}
	d.resp.Objects = append(d.resp.Objects, told)
	return nil
}

// rest counts objects that are not in the page.
func (d *diff) rest(n uint64) {
	if d.resp.Remaining += n; d.resp.Remaining > 0 && d.resp.Continue == "" {
		last := d.resp.Objects[len(d.resp.Objects)-1]
		d.resp.Continue = diffToken{from: d.from, to: d.to, kind: last.Kind, id: last.ID}.encode()
	}
}

// passed tells whether an object was in a page before.
func (d *diff) passed(kind holdfast.Kind, id string) bool {
	return kind < d.after.kind || kind == d.after.kind && id <= d.after.id
}

// all compares with the empty store.
func (d *diff) all(ctx context.Context) error {
	tx, err := d.log.At(d.to)
	if err != nil {
		return err
	}
	for _, k := range d.kinds {
		if k.Kind() < d.after.kind {
			continue
		}
		after := ""
		if k.Kind() == d.after.kind {
			after = d.after.id
		}
		found, _, err := k.Scan(tx, &holdfast.Selector{}, objects.Order{}, after)
		if err != nil {
			return err
		}
		for o := range found {
			if err := d.add(ctx, net{kind: k, id: o.GetID(), after: o}); err != nil {
				return err
			}
		}
	}
	return nil
}
