package stack

import (
	"context"
	"fmt"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/errkind"
)

const (
	// maxRequest is what a request may have, with room for what stands around it.
	maxRequest = 4<<20 - 64<<10
	// maxPart is how much of secrets and configs goes into one request: a transaction holds
	// them with their indexes and their labels.
	maxPart = 3 << 20
	// maxObjects is how many objects go into one request; a transaction takes hardly more.
	maxObjects = 500
	// stagedBytes is what a staged object takes in a request at most, beside its spec: its name
	// and that of the stored one.
	stagedBytes = 256
)

// stage stores the secrets and configs of a request that is too large, and names them in it. It
// is safe to be done again: what is stored already is only named.
func stage(ctx context.Context, env *command.Env, c *client.Client, r *holdfast.DeployRequest) error {
	bytes, count := staged(r)
	if all := count + len(r.Services) + len(r.Networks); bytes <= maxPart && all <= maxObjects && r.Size() <= maxRequest {
		return nil
	}
	if rest := r.Size() - bytes + count*stagedBytes; rest > maxRequest {
		e := errkind.New(errkind.Limit, "has %d bytes without the data of its secrets and configs, no request may", rest).
			On("stack", r.Name).WithHint("divide it into several stacks")
		e.Max = fmt.Sprintf("%d bytes", maxRequest)
		return e
	}
	if r.DryRun {
		env.Notef("the stack is too large for one request: its secrets and configs are stored to be compared; " +
			"those that no release comes to name are removed again")
	}
	r.StagedSecrets, r.StagedConfigs = map[string]string{}, map[string]string{}
	for _, part := range parts(r) {
		done, err := c.Stacks().Stage(ctx, part)
		if err != nil {
			return err
		}
		for i := range part.Secrets {
			if err := note(r.StagedSecrets, "secret", part.Secrets[i].Annotations.Name, done.Secrets); err != nil {
				return err
			}
		}
		for i := range part.Configs {
			if err := note(r.StagedConfigs, "config", part.Configs[i].Annotations.Name, done.Configs); err != nil {
				return err
			}
		}
	}
	for i := range r.Secrets {
		r.Secrets[i].Data = nil
	}
	for i := range r.Configs {
		r.Configs[i].Data = nil
	}
	return nil
}

// note notes how the stored object is named that has the data of one of the request.
func note(names map[string]string, noun, name string, done map[string]string) error {
	if done[name] == "" {
		return errkind.New(errkind.Internal, "the manager did not tell the name that it was stored by").On(noun, name)
	}
	names[name] = done[name]
	return nil
}

// toStage tells whether a secret has data that can be stored; a driver gives that of others.
func toStage(s *api.SecretSpec) bool { return s.Driver == nil }

// staged tells how many bytes of data can be stored beforehand, and of how many objects.
func staged(r *holdfast.DeployRequest) (bytes, count int) {
	for i := range r.Secrets {
		if s := &r.Secrets[i]; toStage(s) {
			bytes, count = bytes+len(s.Data), count+1
		}
	}
	for i := range r.Configs {
		bytes, count = bytes+len(r.Configs[i].Data), count+1
	}
	return bytes, count
}

// parts are requests that together store all secrets and configs of a request, none of them too
// large.
func parts(r *holdfast.DeployRequest) []*holdfast.StageRequest {
	var all []*holdfast.StageRequest
	bytes := 0
	part := func(size int) *holdfast.StageRequest {
		if n := len(all); n > 0 {
			last := all[n-1]
			if bytes+size <= maxPart && len(last.Secrets)+len(last.Configs) < maxObjects {
				bytes += size
				return last
			}
		}
		all, bytes = append(all, &holdfast.StageRequest{Name: r.Name}), size
		return all[len(all)-1]
	}
	for i := range r.Secrets {
		if s := r.Secrets[i]; toStage(&s) {
			p := part(s.Size())
			p.Secrets = append(p.Secrets, s)
		}
	}
	for i := range r.Configs {
		s := r.Configs[i]
		p := part(s.Size())
		p.Configs = append(p.Configs, s)
	}
	return all
}
