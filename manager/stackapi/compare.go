package stackapi

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// Compare tells how a stack differs between two of its states.
func (s *Server) Compare(ctx context.Context, r *holdfast.CompareStackRequest) (*holdfast.CompareStackResponse, error) {
	var want *desired
	switch {
	case r.Request != nil && r.To != 0:
		return nil, errkind.Field("to", "is a release, and a request is given, too").On("stack", r.Name).
			WithHint("leave one of them out")
	case r.Request != nil:
		if r.Request.Name != r.Name {
			return nil, errkind.Field("request.name", "is %q, not %q", r.Request.Name, r.Name).On("stack", r.Name)
		}
		var err error
		if want, err = s.prepare(r.Request); err != nil {
			return nil, inField(err, "request")
		}
	case r.From == 0 && r.To == 0:
		return nil, errkind.Field("from", "is no release, and neither is to").On("stack", r.Name).
			WithHint("give a release, or a request, to compare with what is there")
	}
	// A stack that is compared with a request need not be there.
	tx, all, err := s.releases(ctx, r.Name, want != nil)
	if err != nil {
		return nil, err
	}
	from, err := s.picture(ctx, tx, r.Name, pictured{number: r.From}, all)
	if err != nil {
		return nil, err
	}
	to, err := s.picture(ctx, tx, r.Name, pictured{number: r.To, want: want}, all)
	if err != nil {
		return nil, err
	}
	resp := &holdfast.CompareStackResponse{Revision: tx.Revision()}
	resp.Objects, err = s.diff(from, to, want != nil && want.keepOthers)
	return resp, err
}

// pictured is a request, or a release, or what is there.
type pictured struct {
	number uint64
	want   *desired
}

// picture returns the picture of a state of a stack.
func (s *Server) picture(ctx context.Context, tx store.ReadTx, stack string, of pictured, all []*record) (picture, error) {
	switch {
	case of.want != nil:
		return wantedPicture(tx, of.want)
	case of.number == 0:
		return livePicture(tx, stack)
	}
	r, err := numbered(all, stack, of.number)
	if err != nil {
		return nil, err
	}
	request, _, err := s.read(ctx, tx, r)
	if err != nil {
		return nil, err
	}
	want, err := s.prepare(request)
	if err != nil {
		return nil, err
	}
	return wantedPicture(tx, want)
}

// diff tells what differs between two pictures, in the order of kinds and names. With keep,
// what is not in the second one stays.
func (s *Server) diff(from, to picture, keep bool) ([]*holdfast.ObjectDiff, error) {
	var all []*holdfast.ObjectDiff
	kinds := maps.Clone(from)
	maps.Copy(kinds, to)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		names := maps.Clone(from[kind])
		if names == nil {
			names = map[string]*entry{}
		}
		maps.Copy(names, to[kind])
		for _, name := range slices.Sorted(maps.Keys(names)) {
			a, b := from[kind][name], to[kind][name]
			switch {
			case a == nil:
				all = append(all, &holdfast.ObjectDiff{Kind: kind, ID: b.id, Name: b.name, Action: holdfast.Action_ACTION_CREATE})
			case b == nil && keep:
			case b == nil:
				all = append(all, &holdfast.ObjectDiff{Kind: kind, ID: a.id, Name: a.name, Action: holdfast.Action_ACTION_REMOVE})
			default:
				d, err := s.diffEntries(kind, a, b)
				if err != nil {
					return nil, err
				}
				if d != nil {
					all = append(all, d)
				}
			}
		}
	}
	return all, nil
}

// diffEntries tells how an object differs, or nil if it does not.
func (s *Server) diffEntries(kind holdfast.Kind, a, b *entry) (*holdfast.ObjectDiff, error) {
	ignoreForce(a, b)
	told := dataFields(s.key, a, b)
	if len(told) == 0 && a.object.Equal(b.object) {
		return nil, nil
	}
	d := &holdfast.ObjectDiff{Kind: kind, ID: cmp.Or(b.id, a.id), Name: b.name, Action: holdfast.Action_ACTION_UPDATE}
	var err error
	d.Fields, err = s.fields(a, b)
	return d, err
}

// ignoreForce makes the counters of forced updates the same if one of the two does not say it:
// a deployment leaves it as it is.
func ignoreForce(a, b *entry) {
	x, ok := a.object.(*api.Service)
	if !ok {
		return
	}
	y, ok := b.object.(*api.Service)
	if !ok {
		return
	}
	if i, j := &x.Spec.Task.ForceUpdate, &y.Spec.Task.ForceUpdate; *i == 0 || *j == 0 {
		most := max(*i, *j)
		*i, *j = most, most
	}
}

// fields tells the fields that an object differs in.
func (s *Server) fields(a, b *entry) ([]holdfast.FieldDiff, error) {
	found, err := s.differ.Diff(a.object, b.object, a.object, b.object)
	if err != nil {
		return nil, err
	}
	var fields []holdfast.FieldDiff
	for _, f := range found {
		fields = append(fields, holdfast.FieldDiff{Path: f.Path, Old: f.Old, New: f.New, Secret: f.Secret})
	}
	return append(fields, dataFields(s.key, a, b)...), nil
}

// dataFields tells of data that differs: of a secret or config, and of what a service is given
// under the same name.
func dataFields(key []byte, a, b *entry) []holdfast.FieldDiff {
	var fields []holdfast.FieldDiff
	add := func(path string, x, y datum) {
		if x.same(y) {
			return
		}
		fields = append(fields, holdfast.FieldDiff{
			Path: path, Secret: !x.told && !y.told, Old: quoted(x.short(key)), New: quoted(y.short(key)),
		})
	}
	if a.data != nil && b.data != nil {
		add("data", *a.data, *b.data)
	}
	for _, u := range b.uses {
		if before, ok := a.match(u); ok {
			add(u.path(), before.datum, u.datum)
		}
	}
	return fields
}

// quoted gives a text as JSON; "" for none.
func quoted(text string) string {
	if text == "" {
		return ""
	}
	return strconv.Quote(text)
}
