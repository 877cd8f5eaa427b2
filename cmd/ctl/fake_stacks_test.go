package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/gogo/protobuf/types"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/wire"
)

// defaultHistory is how many releases are kept where the request does not say.
const defaultHistory = 10

// stacks is what the fake knows of stacks beside their objects.
type stacks struct {
	releases map[string][]*release // by the stack's name, the oldest first
	staged   map[string][]byte     // by the name that was given
	parts    []string              // what each call to Stage brought
	rival    bool                  // alice deploys once somebody has looked at the history
}

// release is one that is kept, and what it deployed, with all data.
type release struct {
	holdfast.Release
	compose string
	request *holdfast.DeployRequest
}

// deployedRelease is the release that a stack is at, or nil.
func (f *fake) deployedRelease(name string) *release {
	for _, r := range f.stacks.releases[name] {
		if r.Status == "deployed" {
			return r
		}
	}
	return nil
}

func (f *fake) Deploy(ctx context.Context, r *holdfast.DeployRequest) (*holdfast.DeployResponse, error) {
	if expect, ok := r.Expect.(*holdfast.DeployRequest_ExpectRelease); ok {
		if err := f.expect(r.Name, expect.ExpectRelease); err != nil {
			return nil, err
		}
	}
	r, err := f.unstage(r)
	if err != nil {
		return nil, err
	}
	return f.deploy(ctx, r, r.Compose, 0)
}

func (f *fake) expect(name string, number uint64) error {
	now := f.deployedRelease(name)
	switch {
	case now == nil && number != 0:
		return errkind.New(errkind.OutOfSequence, "no release is deployed, %d was expected", number).On("stack", name)
	case now != nil && now.Number != number:
		return errkind.New(errkind.OutOfSequence, "release %d came first, by %s", now.Number, now.Actor).On("stack", name).
			WithHint("see what it changed, and deploy again")
	}
	return nil
}

// unstage puts the data into a request that Stage was given before.
func (f *fake) unstage(r *holdfast.DeployRequest) (*holdfast.DeployRequest, error) {
	r = r.Copy()
	put := func(noun, name string, data *[]byte, staged map[string]string) error {
		if by, ok := staged[name]; ok {
			if *data = f.stacks.staged[by]; *data == nil {
				return errkind.New(errkind.NotFound, "nothing is staged as %q", by).On(noun, name)
			}
		}
		return nil
	}
	for i := range r.Secrets {
		if err := put("secret", r.Secrets[i].Annotations.Name, &r.Secrets[i].Data, r.StagedSecrets); err != nil {
			return nil, err
		}
	}
	for i := range r.Configs {
		if err := put("config", r.Configs[i].Annotations.Name, &r.Configs[i].Data, r.StagedConfigs); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// deploy makes a stack what a request says. It changes data in place, which a manager does not.
func (f *fake) deploy(ctx context.Context, r *holdfast.DeployRequest, compose string, rollbackOf uint64) (*holdfast.DeployResponse, error) {
	have, want := f.live(r.Name), wanted(r)
	if r.KeepOthers {
		for k, o := range have {
			if want[k] == nil {
				want[k] = o
			}
		}
	}
	all := differences(have, want, func(key, *holdfast.Object) bool { return true })
	now := f.deployedRelease(r.Name)
	reply := &holdfast.DeployResponse{Revision: f.revision}
	if now != nil {
		reply.Release = now.Number
	}
	next := &release{compose: compose, request: r}
	next.RollbackOf = rollbackOf
	for k, o := range want {
		if have[k] != nil && !slices.ContainsFunc(all, func(d *holdfast.ObjectDiff) bool { return d.Kind == k.kind && d.ID == k.id }) {
			all = append(all, &holdfast.ObjectDiff{Kind: k.kind, ID: k.id, Name: nameOf(k.kind, o)})
		}
	}
	slices.SortFunc(all, func(a, b *holdfast.ObjectDiff) int { return key{a.Kind, a.ID}.compare(key{b.Kind, b.ID}) })
	for _, d := range all {
		ch := &holdfast.StackChange{Kind: d.Kind, ID: f.idOf(d.Kind, d.Name), Name: d.Name}
		switch d.Action {
		case holdfast.Action_ACTION_CREATE:
			ch.Action, next.Created = holdfast.StackChange_CREATED, next.Created+1
		case holdfast.Action_ACTION_UPDATE:
			ch.Action, next.Updated = holdfast.StackChange_UPDATED, next.Updated+1
		case holdfast.Action_ACTION_REMOVE:
			ch.Action, next.Removed = holdfast.StackChange_REMOVED, next.Removed+1
		}
		if r.DryRun {
			ch.Fields = d.Fields
		} else if d.Action != 0 {
			f.apply(d, want[key{d.Kind, d.ID}])
			if ch.ID == "" {
				ch.ID = f.idOf(d.Kind, d.Name)
			}
		}
		reply.Changes = append(reply.Changes, ch)
	}
	if now != nil && next.Created+next.Updated+next.Removed == 0 && now.compose == compose {
		return reply, nil
	}
	f.release(ctx, r, next, reply)
	return reply, nil
}

// release writes a release, or only tells its number in a dry run.
func (f *fake) release(ctx context.Context, r *holdfast.DeployRequest, next *release, reply *holdfast.DeployResponse) {
	kept := f.stacks.releases[r.Name]
	next.Number = 1
	if n := len(kept); n > 0 {
		next.Number = kept[n-1].Number + 1
	}
	reply.Release = next.Number
	if r.DryRun {
		return
	}
	if now := f.deployedRelease(r.Name); now != nil {
		now.Status = "superseded"
	}
	next.Status, next.Actor, next.Revision = "deployed", "operator", f.revision
	next.Message = wire.UnescapeText(wire.Incoming(ctx, wire.Message))
	next.At = &types.Timestamp{Seconds: 1_700_000_000 + int64(f.revision)}
	most := defaultHistory
	if r.MaxHistory > 0 {
		most = int(r.MaxHistory)
	}
	kept = append(kept, next)
	if f.stacks.releases == nil {
		f.stacks.releases = map[string][]*release{}
	}
	f.stacks.releases[r.Name] = kept[max(0, len(kept)-most):]
	reply.Revision = f.revision
}

func (f *fake) Stage(_ context.Context, r *holdfast.StageRequest) (*holdfast.StageResponse, error) {
	if f.stacks.staged == nil {
		f.stacks.staged = map[string][]byte{}
	}
	reply := &holdfast.StageResponse{Secrets: map[string]string{}, Configs: map[string]string{}}
	bytes := 0
	put := func(names map[string]string, name string, data []byte) {
		names[name] = name + "-staged"
		f.stacks.staged[names[name]] = data
		bytes += len(data)
	}
	for i := range r.Secrets {
		put(reply.Secrets, r.Secrets[i].Annotations.Name, r.Secrets[i].Data)
	}
	for i := range r.Configs {
		put(reply.Configs, r.Configs[i].Annotations.Name, r.Configs[i].Data)
	}
	f.stacks.parts = append(f.stacks.parts,
		fmt.Sprintf("%s: %d secrets, %d configs, %d bytes", r.Name, len(r.Secrets), len(r.Configs), bytes))
	return reply, nil
}

func (f *fake) List(context.Context, *holdfast.ListStacksRequest) (*holdfast.ListStacksResponse, error) {
	names := map[string]bool{}
	for name := range f.stacks.releases {
		names[name] = true
	}
	for _, o := range f.all() {
		if name := labelsOf(o)[stackLabel]; len(f.live(name)) > 0 {
			names[name] = true
		}
	}
	reply := &holdfast.ListStacksResponse{Revision: f.revision}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		s := &holdfast.Stack{Name: name}
		if kept := f.stacks.releases[name]; len(kept) > 0 {
			s.Release = kept[len(kept)-1].Release.Copy()
		}
		for k := range f.live(name) {
			switch k.kind {
			case holdfast.Kind_KIND_SERVICE:
				s.Services++
			case holdfast.Kind_KIND_NETWORK:
				s.Networks++
			case holdfast.Kind_KIND_SECRET:
				s.Secrets++
			case holdfast.Kind_KIND_CONFIG:
				s.Configs++
			}
		}
		reply.Stacks = append(reply.Stacks, s)
	}
	return reply, nil
}

func (f *fake) Remove(_ context.Context, r *holdfast.RemoveStackRequest) (*holdfast.RemoveStackResponse, error) {
	have := f.live(r.Name)
	if len(have) == 0 {
		return nil, errkind.New(errkind.NotFound, "not found").On("stack", r.Name)
	}
	reply := &holdfast.RemoveStackResponse{Revision: f.revision}
	for _, d := range differences(have, nil, func(key, *holdfast.Object) bool { return true }) {
		reply.Changes = append(reply.Changes, &holdfast.StackChange{
			Action: holdfast.StackChange_REMOVED, Kind: d.Kind, ID: f.idOf(d.Kind, d.Name), Name: d.Name,
		})
		f.apply(d, nil)
	}
	switch now := f.deployedRelease(r.Name); {
	case !r.KeepHistory:
		delete(f.stacks.releases, r.Name)
	case now != nil:
		now.Status = "uninstalled"
	}
	return reply, nil
}

func (f *fake) History(_ context.Context, r *holdfast.StackHistoryRequest) (*holdfast.StackHistoryResponse, error) {
	if _, err := f.found(r.Name, 0); err != nil {
		return nil, err
	}
	reply := &holdfast.StackHistoryResponse{Revision: f.revision}
	for _, kept := range f.stacks.releases[r.Name] {
		reply.Releases = append(reply.Releases, kept.Release.Copy())
	}
	if now := f.deployedRelease(r.Name); f.stacks.rival && now != nil {
		other := &release{Release: *now.Release.Copy(), compose: now.compose, request: now.request}
		other.Number, other.Actor = now.Number+1, "alice"
		now.Status, f.stacks.rival = "superseded", false
		f.stacks.releases[r.Name] = append(f.stacks.releases[r.Name], other)
	}
	return reply, nil
}

// found finds a release; 0 is the deployed one, or else the newest.
func (f *fake) found(name string, number uint64) (*release, error) {
	kept := f.stacks.releases[name]
	if len(kept) == 0 {
		return nil, errkind.New(errkind.NotFound, "has no releases").On("stack", name)
	}
	if number == 0 {
		if now := f.deployedRelease(name); now != nil {
			return now, nil
		}
		return kept[len(kept)-1], nil
	}
	for _, r := range kept {
		if r.Number == number {
			return r, nil
		}
	}
	return nil, errkind.New(errkind.NotFound, "release %d is not kept; the oldest is %d", number, kept[0].Number).On("stack", name)
}

func (f *fake) GetRelease(_ context.Context, r *holdfast.GetReleaseRequest) (*holdfast.GetReleaseResponse, error) {
	kept, err := f.found(r.Name, r.Number)
	if err != nil {
		return nil, err
	}
	request := kept.request.Copy()
	request.Compose = ""
	for i := range request.Secrets {
		request.Secrets[i].Data = nil
	}
	for i := range request.Configs {
		request.Configs[i].Data = nil
	}
	return &holdfast.GetReleaseResponse{Release: kept.Release.Copy(), Compose: kept.compose, Request: request}, nil
}

func (f *fake) Rollback(ctx context.Context, r *holdfast.RollbackRequest) (*holdfast.DeployResponse, error) {
	if expect, ok := r.Expect.(*holdfast.RollbackRequest_ExpectRelease); ok {
		if err := f.expect(r.Name, expect.ExpectRelease); err != nil {
			return nil, err
		}
	}
	number := r.Number
	if now := f.deployedRelease(r.Name); number == 0 && now != nil {
		if number = now.Number - 1; number == 0 {
			return nil, errkind.New(errkind.Refused, "release 1 is the first one: there is none before it").On("stack", r.Name)
		}
	}
	to, err := f.found(r.Name, number)
	if err != nil {
		return nil, err
	}
	request := to.request.Copy()
	request.DryRun, request.KeepOthers, request.MaxHistory = r.DryRun, false, r.MaxHistory
	return f.deploy(ctx, request, to.compose, to.Number)
}

func (f *fake) Compare(_ context.Context, r *holdfast.CompareStackRequest) (*holdfast.CompareStackResponse, error) {
	state := func(number uint64, request *holdfast.DeployRequest) (map[key]*holdfast.Object, error) {
		switch {
		case request != nil:
			request, err := f.unstage(request)
			return wanted(request), err
		case number == 0:
			return f.live(r.Name), nil
		}
		kept, err := f.found(r.Name, number)
		if err != nil {
			return nil, err
		}
		return wanted(kept.request), nil
	}
	from, err := state(r.From, nil)
	if err != nil {
		return nil, err
	}
	to, err := state(r.To, r.Request)
	if err != nil {
		return nil, err
	}
	all := differences(from, to, func(key, *holdfast.Object) bool { return true })
	for _, d := range all {
		d.ID = f.idOf(d.Kind, d.Name)
	}
	return &holdfast.CompareStackResponse{Objects: all, Revision: f.revision}, nil
}
