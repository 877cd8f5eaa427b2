package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gogo/protobuf/types"

	"holdfast/api/holdfast"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/errkind"
)

// past is what the fake knows of all changes.
type past struct {
	known map[key]*holdfast.Object // as it was after the last change
	log   []change
}

type key struct {
	kind holdfast.Kind
	id   string
}

func (k key) compare(o key) int { return cmp.Or(cmp.Compare(k.kind, o.kind), cmp.Compare(k.id, o.id)) }

// change is what a call did to an object.
type change struct {
	key
	revision uint64
	action   holdfast.Action
	now, was *holdfast.Object // nil if there is, or was, none
	message  string
}

func (c change) at() *types.Timestamp {
	return &types.Timestamp{Seconds: 1_700_000_000 + int64(c.revision)}
}

// left is the object as the change left it, or what it removed.
func (c change) left() *holdfast.Object {
	if c.now == nil {
		return c.was
	}
	return c.now
}

// all returns copies of all objects.
func (f *fake) all() map[key]*holdfast.Object {
	all := make(map[key]*holdfast.Object)
	add := func(kind holdfast.Kind, id string, o holdfast.Object) { all[key{kind, id}] = o.Copy() }
	for _, o := range f.nodes {
		add(holdfast.Kind_KIND_NODE, o.ID, holdfast.Object{Target: &holdfast.Object_Node{Node: o}})
	}
	for _, o := range f.services {
		add(holdfast.Kind_KIND_SERVICE, o.ID, holdfast.Object{Target: &holdfast.Object_Service{Service: o}})
	}
	for _, o := range f.tasks {
		add(holdfast.Kind_KIND_TASK, o.ID, holdfast.Object{Target: &holdfast.Object_Task{Task: o}})
	}
	for _, o := range f.networks {
		add(holdfast.Kind_KIND_NETWORK, o.ID, holdfast.Object{Target: &holdfast.Object_Network{Network: o}})
	}
	add(holdfast.Kind_KIND_CLUSTER, f.cluster().ID, holdfast.Object{Target: &holdfast.Object_Cluster{Cluster: f.cluster()}})
	for _, o := range f.secrets {
		add(holdfast.Kind_KIND_SECRET, o.ID, holdfast.Object{Target: &holdfast.Object_Secret{Secret: o}})
	}
	for _, o := range f.configs {
		add(holdfast.Kind_KIND_CONFIG, o.ID, holdfast.Object{Target: &holdfast.Object_Config{Config: o}})
	}
	return all
}

// begin takes all that is there as it is: it has no past.
func (f *fake) begin() {
	f.past.known = f.all()
	f.watches.changed = make(chan struct{})
}

// record takes in what a call did, which began at a revision: if it did anything, it has a
// revision of its own.
func (f *fake) record(before uint64, message string) {
	now := f.all()
	var changes []change
	for k, o := range now {
		switch was := f.past.known[k]; {
		case was == nil:
			changes = append(changes, change{key: k, action: holdfast.Action_ACTION_CREATE, now: o})
		case !was.Equal(o):
			changes = append(changes, change{key: k, action: holdfast.Action_ACTION_UPDATE, now: o, was: was})
		}
	}
	for k, was := range f.past.known {
		if now[k] == nil {
			changes = append(changes, change{key: k, action: holdfast.Action_ACTION_REMOVE, was: was})
		}
	}
	if len(changes) == 0 {
		return
	}
	if f.revision == before {
		f.revision++
	}
	slices.SortFunc(changes, func(a, b change) int { return a.compare(b.key) })
	for _, c := range changes {
		c.revision, c.message = f.revision, message
		f.past.log = append(f.past.log, c)
	}
	f.past.known = now
	f.wake()
}

// stateAt returns what was there at a revision.
func (f *fake) stateAt(revision uint64) map[key]*holdfast.Object {
	state := maps.Clone(f.past.known)
	for _, c := range slices.Backward(f.past.log) {
		switch {
		case c.revision <= revision:
			return state
		case c.was == nil:
			delete(state, c.key)
		default:
			state[c.key] = c.was
		}
	}
	if revision == 0 {
		return nil
	}
	return state
}

// readable tells whether a revision can be read.
func (f *fake) readable(revision uint64) error {
	switch {
	case revision > f.revision:
		return &errkind.Error{Kind: errkind.OutOfRange, Seen: revision, Now: f.revision, Msg: "future revision: the present one is lower"}
	case revision < f.floor:
		return &errkind.Error{
			Kind: errkind.OutOfRange, Seen: revision, Now: f.floor, Msg: "compacted", Hint: "the oldest revision is higher",
		}
	}
	return nil
}

func nameOf(kind holdfast.Kind, o *holdfast.Object) string { return kinds.Of(kind).Name(o) }

func labelsOf(o *holdfast.Object) map[string]string {
	switch {
	case o.GetNode() != nil:
		return o.GetNode().Spec.Annotations.Labels
	case o.GetService() != nil:
		return o.GetService().Spec.Annotations.Labels
	case o.GetTask() != nil:
		return o.GetTask().ServiceAnnotations.Labels
	case o.GetNetwork() != nil:
		return o.GetNetwork().Spec.Annotations.Labels
	case o.GetCluster() != nil:
		return o.GetCluster().Spec.Annotations.Labels
	case o.GetSecret() != nil:
		return o.GetSecret().Spec.Annotations.Labels
	}
	return o.GetConfig().Spec.Annotations.Labels
}

// fieldsBetween tells how an object differs, field by field.
func fieldsBetween(was, now *holdfast.Object) []holdfast.FieldDiff {
	before, after := flatten(was), flatten(now)
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	var all []holdfast.FieldDiff
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if before[path] == after[path] {
			continue
		}
		f := holdfast.FieldDiff{Path: path, Old: before[path], New: after[path]}
		if strings.HasSuffix(path, ".data") {
			f = holdfast.FieldDiff{Path: path, Secret: true}
		}
		all = append(all, f)
	}
	return all
}
