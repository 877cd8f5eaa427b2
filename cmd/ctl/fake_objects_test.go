package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"holdfast/api/holdfast"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/apijson"
	"holdfast/internal/descriptors"
	"holdfast/internal/errkind"
	"holdfast/internal/selector"
)

// objectsServer is the fake's Objects service.
type objectsServer struct {
	holdfast.UnimplementedObjectsServer
	f *fake
}

// matcher returns what tells whether a selector picks an object of a kind. Tasks have the field
// .state beside those that all have.
func matcher(s *holdfast.Selector) (func(holdfast.Kind, *holdfast.Object) bool, error) {
	where, err := selector.Parse(s.Where)
	if err != nil {
		return nil, err
	}
	if err := where.Check(func(field string) bool { return field == ".state" }); err != nil {
		return nil, err
	}
	return func(kind holdfast.Kind, o *holdfast.Object) bool {
		k := kinds.Of(kind)
		if len(s.ServiceIDs) > 0 && !slices.Contains(s.ServiceIDs, o.GetTask().GetServiceID()) {
			return false
		}
		return pass(s, k.ID(o), k.Name(o), labelsOf(o)) && where.Matches(labelsOf(o), func(field string) []string {
			return []string{map[string]string{
				selector.FieldID: k.ID(o), selector.FieldName: k.Name(o), ".state": k.State(o),
				selector.FieldVersion: strconv.FormatUint(k.Meta(o).Version.Index, 10),
			}[field]}
		})
	}, nil
}

func (s objectsServer) List(_ context.Context, r *holdfast.ListRequest) (*holdfast.ListResponse, error) {
	picks, err := matcher(&r.Selector)
	if err != nil {
		return nil, err
	}
	var found []*holdfast.Object
	all := s.f.all()
	for _, k := range slices.SortedFunc(maps.Keys(all), key.compare) {
		if k.kind == r.Kind && picks(k.kind, all[k]) {
			found = append(found, all[k])
		}
	}
	if r.CountOnly {
		return &holdfast.ListResponse{Remaining: uint64(len(found))}, nil
	}
	k := kinds.Of(r.Kind)
	slices.SortStableFunc(found, func(a, b *holdfast.Object) int {
		switch r.Sort {
		case holdfast.Sort_SORT_NAME:
			return cmp.Compare(strings.ToLower(k.Name(a)), strings.ToLower(k.Name(b)))
		case holdfast.Sort_SORT_CHANGED:
			return cmp.Compare(k.Meta(a).Version.Index, k.Meta(b).Version.Index)
		case holdfast.Sort_SORT_CREATED:
			return cmp.Compare(k.Meta(a).CreatedAt.GetSeconds(), k.Meta(b).CreatedAt.GetSeconds())
		}
		return cmp.Compare(k.ID(a), k.ID(b))
	})
	if r.Descending {
		slices.Reverse(found)
	}
	return &holdfast.ListResponse{Objects: found, Revision: s.f.revision}, nil
}

// History gives two versions a page.
func (s objectsServer) History(_ context.Context, r *holdfast.HistoryRequest) (*holdfast.HistoryResponse, error) {
	ids := map[string]bool{r.ID: true}
	for _, c := range s.f.past.log {
		if r.Name != "" && c.kind == r.Kind && strings.EqualFold(nameOf(c.kind, c.left()), r.Name) {
			ids[c.id] = true
		}
	}
	var all []*holdfast.Version
	for _, c := range s.f.past.log {
		if c.kind != r.Kind || !ids[c.id] {
			continue
		}
		v := &holdfast.Version{Revision: c.revision, Action: c.action, Object: c.left()}
		if v.Compacted = c.revision <= s.f.floor; !v.Compacted {
			v.At, v.Actor, v.Message = c.at(), "operator", c.message
			if c.action == holdfast.Action_ACTION_UPDATE {
				v.Fields = fieldsBetween(c.was, c.now)
			}
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		return nil, errkind.New(errkind.NotFound, "not found, nor in the history, which begins after revision %d", s.f.floor).
			On(kinds.Of(r.Kind).Noun, r.ID+r.Name)
	}
	if r.NewestFirst {
		slices.Reverse(all)
	}
	const page = 2
	from := 0
	if r.Continue != "" {
		var err error
		if from, err = strconv.Atoi(r.Continue); err != nil {
			return nil, err
		}
	}
	reply := &holdfast.HistoryResponse{Versions: all[from:], Revision: s.f.revision, Floor: s.f.floor}
	if len(reply.Versions) > page {
		reply.Versions, reply.Continue = reply.Versions[:page], strconv.Itoa(from+page)
	}
	return reply, nil
}

// Diff gives one object a page.
func (s objectsServer) Diff(_ context.Context, r *holdfast.DiffRequest) (*holdfast.DiffResponse, error) {
	to := r.To
	if to == 0 {
		to = s.f.revision
	}
	single := r.ID != "" || r.Name != ""
	is := func(k key, o *holdfast.Object) bool {
		return k.kind == r.Kind && (k.id == r.ID || r.Name != "" && strings.EqualFold(nameOf(k.kind, o), r.Name))
	}
	from, known := r.From, false
	for _, c := range s.f.past.log {
		if single && is(c.key, c.left()) && c.revision <= to {
			if known = true; r.From == 0 {
				from = c.revision - 1
			}
		}
	}
	if single && !known {
		return nil, errkind.New(errkind.NotFound, "not found at revision %d or before", to).On(kinds.Of(r.Kind).Noun, r.ID+r.Name)
	}
	for _, revision := range []uint64{from, to} {
		if err := s.f.readable(revision); err != nil && revision != 0 {
			return nil, err
		}
	}
	all := differences(s.f.stateAt(from), s.f.stateAt(to), func(k key, o *holdfast.Object) bool {
		return !single && (r.Kind == 0 || r.Kind == k.kind) || single && is(k, o)
	})
	reply := &holdfast.DiffResponse{From: from, To: to, Objects: all}
	if r.Continue != "" {
		n, err := strconv.Atoi(r.Continue)
		if err != nil {
			return nil, err
		}
		reply.Objects = all[n:]
	}
	if len(reply.Objects) > 1 {
		reply.Remaining = uint64(len(reply.Objects) - 1)
		reply.Continue, reply.Objects = strconv.Itoa(len(all)-len(reply.Objects)+1), reply.Objects[:1]
	}
	return reply, nil
}

// differences tells how two states differ, of the objects that are picked.
func differences(before, after map[key]*holdfast.Object, picks func(key, *holdfast.Object) bool) []*holdfast.ObjectDiff {
	keys := maps.Clone(after)
	if keys == nil {
		keys = make(map[key]*holdfast.Object)
	}
	maps.Copy(keys, before)
	var all []*holdfast.ObjectDiff
	for _, k := range slices.SortedFunc(maps.Keys(keys), key.compare) {
		was, now := before[k], after[k]
		d := &holdfast.ObjectDiff{Kind: k.kind, ID: k.id}
		switch {
		case was == nil:
			d.Action, d.Name = holdfast.Action_ACTION_CREATE, nameOf(k.kind, now)
		case now == nil:
			d.Action, d.Name = holdfast.Action_ACTION_REMOVE, nameOf(k.kind, was)
		case was.Equal(now):
			continue
		default:
			d.Action, d.Name, d.Fields = holdfast.Action_ACTION_UPDATE, nameOf(k.kind, now), fieldsBetween(was, now)
		}
		if picks(k, keys[k]) {
			all = append(all, d)
		}
	}
	return all
}

// flatten gives the fields of an object but its meta, by their paths.
func flatten(o *holdfast.Object) map[string]string {
	files, err := descriptors.New()
	if err != nil {
		panic(err)
	}
	data, err := apijson.New(files).Marshal(o)
	if err != nil {
		panic(err)
	}
	var wrapped map[string]map[string]any
	if err := json.Unmarshal(data, &wrapped); err != nil {
		panic(err)
	}
	fields := make(map[string]string)
	var add func(path string, v any)
	add = func(path string, v any) {
		if m, ok := v.(map[string]any); ok {
			for name, v := range m {
				if strings.HasSuffix(path, "labels") {
					add(fmt.Sprintf("%s[%s]", path, name), v)
				} else {
					add(path+"."+name, v)
				}
			}
			return
		}
		value, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		fields[path] = string(value)
	}
	for _, inner := range wrapped {
		for name, v := range inner {
			if name != "meta" && name != "previousSpec" {
				add(name, v)
			}
		}
	}
	return fields
}
