package compose

import (
	"fmt"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"holdfast/api"
)

func mountTypes() map[string]api.Mount_Type {
	return map[string]api.Mount_Type{
		"":        api.Mount_VOLUME,
		"volume":  api.Mount_VOLUME,
		"bind":    api.Mount_BIND,
		"tmpfs":   api.Mount_TMPFS,
		"npipe":   api.Mount_NPIPE,
		"cluster": api.Mount_CLUSTER,
	}
}

func consistencies() map[string]api.Mount_Consistency {
	return map[string]api.Mount_Consistency{
		"":           api.Mount_DEFAULT,
		"default":    api.Mount_DEFAULT,
		"consistent": api.Mount_CONSISTENT,
		"cached":     api.Mount_CACHED,
		"delegated":  api.Mount_DELEGATED,
	}
}

func propagations() map[string]api.Mount_BindOptions_Propagation {
	return map[string]api.Mount_BindOptions_Propagation{
		"":         api.Mount_BindOptions_RPRIVATE,
		"rprivate": api.Mount_BindOptions_RPRIVATE,
		"private":  api.Mount_BindOptions_PRIVATE,
		"rshared":  api.Mount_BindOptions_RSHARED,
		"shared":   api.Mount_BindOptions_SHARED,
		"rslave":   api.Mount_BindOptions_RSLAVE,
		"slave":    api.Mount_BindOptions_SLAVE,
	}
}

// mounts keep the order of the files.
func (c *converter) mounts(f *fallible, path string, volumes []types.ServiceVolumeConfig) []*api.Mount {
	var list []*api.Mount
	for i, v := range volumes {
		list = append(list, c.mount(f, fmt.Sprintf("%s.volumes[%d]", path, i), v))
	}
	return list
}

func (c *converter) mount(f *fallible, path string, v types.ServiceVolumeConfig) *api.Mount {
	m := &api.Mount{
		Type:        choose(f, path+".type", v.Type, mountTypes()),
		Source:      v.Source,
		Target:      v.Target,
		Readonly:    v.ReadOnly,
		Consistency: choose(f, path+".consistency", v.Consistency, consistencies()),
	}
	if v.Target == "" {
		f.fail("%s.target: a mount needs a target", path)
	}
	checkMount(f, path, m.Type, v)
	switch m.Type {
	case api.Mount_BIND, api.Mount_NPIPE:
		m.BindOptions = bindOptions(f, path+".bind", v.Bind)
	case api.Mount_TMPFS:
		if t := v.Tmpfs; t != nil {
			m.TmpfsOptions = &api.Mount_TmpfsOptions{
				SizeBytes: f.bytes(path+".tmpfs.size", t.Size), Mode: t.Mode,
			}
		}
	case api.Mount_VOLUME:
		c.volume(f, path, v, m)
	case api.Mount_CLUSTER:
		if !strings.HasPrefix(v.Source, "group:") { // a group is not the stack's
			m.Source = c.volumeName(f, path, v.Source)
		}
	}
	return m
}

// checkMount refuses options of another type of mount, and a source where there can be none.
func checkMount(f *fallible, path string, t api.Mount_Type, v types.ServiceVolumeConfig) {
	bind, volume := t == api.Mount_BIND || t == api.Mount_NPIPE, t == api.Mount_VOLUME
	switch {
	case t == api.Mount_TMPFS && v.Source != "":
		f.fail("%s.source: a tmpfs has none", path)
	case v.Source == "" && t != api.Mount_TMPFS && !volume:
		f.fail("%s.source: a mount of type %s needs one", path, v.Type)
	// The short form leaves empty options behind.
	case !bind && v.Bind != nil && (v.Bind.Propagation != "" || v.Bind.Recursive != "" || bool(v.Bind.CreateHostPath)):
		f.fail("%s.bind: a mount of type %s has no such options", path, v.Type)
	case !volume && v.Volume != nil && (v.Volume.NoCopy || v.Volume.Subpath != ""):
		f.fail("%s.volume: a mount of type %s has no such options", path, v.Type)
	case t != api.Mount_TMPFS && v.Tmpfs != nil:
		f.fail("%s.tmpfs: a mount of type %s has no such options", path, v.Type)
	}
}

func bindOptions(f *fallible, path string, b *types.ServiceVolumeBind) *api.Mount_BindOptions {
	if b == nil || b.Propagation == "" && b.Recursive == "" && !bool(b.CreateHostPath) {
		return nil
	}
	options := &api.Mount_BindOptions{
		Propagation:      choose(f, path+".propagation", b.Propagation, propagations()),
		Createmountpoint: bool(b.CreateHostPath),
	}
	switch b.Recursive {
	case "", "enabled":
	case "disabled":
		options.Nonrecursive = true
	case "writable":
		options.Readonlynonrecursive = true
	case "readonly":
		options.Readonlyforcerecursive = true
	default:
		f.fail("%s.recursive: %q is not one of disabled, enabled, readonly, writable", path, b.Recursive)
	}
	return options
}

// volume fills in a mount of type volume. The task that needs a named volume makes it, so the
// mount says all that the files say of it; an external one is there already.
func (c *converter) volume(f *fallible, path string, v types.ServiceVolumeConfig, m *api.Mount) {
	options := &api.Mount_VolumeOptions{}
	if v.Volume != nil {
		options.Nocopy, options.Subpath = v.Volume.NoCopy, v.Volume.Subpath
	}
	if v.Source == "" {
		if options.Nocopy || options.Subpath != "" {
			m.VolumeOptions = options
		}
		return
	}
	m.VolumeOptions = options
	m.Source = c.volumeName(f, path, v.Source)
	declared := c.project.Volumes[v.Source]
	if declared.External {
		return
	}
	options.Labels = c.labels(declared.Labels)
	if declared.Driver != "" || declared.DriverOpts != nil {
		options.DriverConfig = &api.Driver{Name: declared.Driver, Options: declared.DriverOpts}
	}
}

func (c *converter) volumeName(f *fallible, path, key string) string {
	declared, ok := c.project.Volumes[key]
	if !ok {
		f.fail("%s.source: there is no volume %s in the files", path, key)
	}
	c.usedVolumes[key] = true
	if declared.External && declared.Name == "" {
		return key
	}
	return c.scoped(key, declared.Name)
}
