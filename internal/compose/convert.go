package compose

import (
	"cmp"
	"maps"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"holdfast/api/holdfast"
)

// converter makes a request of the merged files. It walks everything in the order of its keys,
// so that the result and the first error are always the same.
type converter struct {
	names
	project *types.Project
	model   map[string]any // what project was decoded from, where its types lose something
	said    *report

	usedNetworks map[string]bool // keys of the networks that services are in
	usedVolumes  map[string]bool // keys of the volumes that services mount
}

func newConverter(stack string, project *types.Project, model map[string]any, said *report) *converter {
	return &converter{
		names:        newNames(stack),
		project:      project,
		model:        model,
		said:         said,
		usedNetworks: map[string]bool{},
		usedVolumes:  map[string]bool{},
	}
}

func (c *converter) request() (*holdfast.DeployRequest, error) {
	r := &holdfast.DeployRequest{Name: c.stack}
	// Services first: they tell which networks and volumes are used.
	for _, step := range []func(*holdfast.DeployRequest) error{c.services, c.networks, c.secrets, c.configs} {
		if err := step(r); err != nil {
			return nil, err
		}
	}
	for key := range c.project.Volumes {
		if !c.usedVolumes[key] {
			c.said.droppedBecause("volumes."+key, "no service mounts it")
		}
	}
	return r, nil
}

func (c *converter) services(r *holdfast.DeployRequest) error {
	for _, key := range sortedKeys(c.project.Services) {
		spec, err := c.service(key, c.project.Services[key])
		if err != nil {
			return err
		}
		r.Services = append(r.Services, spec)
	}
	return nil
}

// raw looks a value up in the merged files.
func (c *converter) raw(path ...string) any {
	var node any = c.model
	for _, key := range path {
		mapping, ok := node.(map[string]any)
		if !ok {
			return nil
		}
		node = mapping[key]
	}
	return node
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// sortBy sorts what was made in the order of keys by what it is named in the end.
func sortBy[S ~[]E, E any](s S, name func(*E) string) {
	slices.SortStableFunc(s, func(a, b E) int { return cmp.Compare(name(&a), name(&b)) })
}
