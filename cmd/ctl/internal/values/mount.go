package values

import (
	"fmt"
	"strings"

	"holdfast/api"
)

// ParseMount reads a mount in docker's long syntax: type=volume|bind|tmpfs|npipe|cluster,
// source=…,target=…,readonly, consistency=…, and the bind-, volume- and tmpfs- options.
func ParseMount(s string) (*api.Mount, error) {
	pairs, err := fields(s, "readonly", "ro", "volume-nocopy", "bind-nonrecursive", "bind-create-mountpoint")
	if err != nil {
		return nil, err
	}
	m := &api.Mount{Type: api.Mount_VOLUME}
	for _, f := range pairs {
		if err := setMount(m, f); err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
	}
	if err := checkMount(m); err != nil {
		return nil, fmt.Errorf("%q: %w", s, err)
	}
	return m, nil
}

func setMount(m *api.Mount, f Pair) (err error) {
	switch prefix, _, _ := strings.Cut(f.Key, "-"); prefix {
	case "bind":
		return setBind(m, f)
	case "volume":
		return setVolume(m, f)
	case "tmpfs":
		return setTmpfs(m, f)
	}
	var n int
	switch f.Key {
	case "type":
		n, err = ParseChoice(strings.ToLower(f.Value), "bind", "volume", "tmpfs", "npipe", "cluster")
		m.Type = api.Mount_Type(n)
	case "source", "src":
		m.Source = f.Value
	case "target", "destination", "dst":
		m.Target = f.Value
	case "readonly", "ro":
		m.Readonly, err = parseBool(f)
	case "consistency":
		n, err = ParseChoice(f.Value, "default", "consistent", "cached", "delegated")
		m.Consistency = api.Mount_Consistency(n)
	default:
		err = fmt.Errorf("%q is no key of a mount", f.Key)
	}
	return err
}

func setBind(m *api.Mount, f Pair) (err error) {
	if m.BindOptions == nil {
		m.BindOptions = &api.Mount_BindOptions{}
	}
	o := m.BindOptions
	switch f.Key {
	case "bind-propagation":
		var n int
		n, err = ParseChoice(f.Value, "rprivate", "private", "rshared", "shared", "rslave", "slave")
		o.Propagation = api.Mount_BindOptions_Propagation(n)
	case "bind-nonrecursive":
		o.Nonrecursive, err = parseBool(f)
	case "bind-create-mountpoint":
		o.Createmountpoint, err = parseBool(f)
	case "bind-recursive":
		switch f.Value {
		case "enabled":
		case "disabled":
			o.Nonrecursive = true
		case "writable":
			o.Readonlynonrecursive = true
		case "readonly":
			o.Readonlyforcerecursive = true
		default:
			_, err = ParseChoice(f.Value, "enabled", "disabled", "writable", "readonly")
		}
	default:
		err = fmt.Errorf("%q is no key of a mount", f.Key)
	}
	return err
}

func setVolume(m *api.Mount, f Pair) (err error) {
	if m.VolumeOptions == nil {
		m.VolumeOptions = &api.Mount_VolumeOptions{}
	}
	o := m.VolumeOptions
	if o.DriverConfig == nil && (f.Key == "volume-driver" || f.Key == "volume-opt") {
		o.DriverConfig = &api.Driver{}
	}
	switch f.Key {
	case "volume-nocopy":
		o.Nocopy, err = parseBool(f)
	case "volume-subpath":
		o.Subpath = f.Value
	case "volume-driver":
		o.DriverConfig.Name = f.Value
	case "volume-label":
		o.Labels, err = withPair(o.Labels, f)
	case "volume-opt":
		o.DriverConfig.Options, err = withPair(o.DriverConfig.Options, f)
	default:
		err = fmt.Errorf("%q is no key of a mount", f.Key)
	}
	return err
}

func setTmpfs(m *api.Mount, f Pair) (err error) {
	if m.TmpfsOptions == nil {
		m.TmpfsOptions = &api.Mount_TmpfsOptions{}
	}
	o := m.TmpfsOptions
	switch f.Key {
	case "tmpfs-size":
		o.SizeBytes, err = ParseBytes(f.Value)
	case "tmpfs-mode":
		o.Mode, err = parseOctal(f)
	default:
		err = fmt.Errorf("%q is no key of a mount", f.Key)
	}
	return err
}

// checkMount refuses what could only be a mistake; the cluster checks the rest.
func checkMount(m *api.Mount) error {
	switch {
	case m.Target == "":
		return fmt.Errorf("has no target")
	case m.BindOptions != nil && m.Type != api.Mount_BIND:
		return fmt.Errorf("has bind- options but is no bind")
	case m.VolumeOptions != nil && m.Type != api.Mount_VOLUME:
		return fmt.Errorf("has volume- options but is no volume")
	case m.TmpfsOptions != nil && m.Type != api.Mount_TMPFS:
		return fmt.Errorf("has tmpfs- options but is no tmpfs")
	case m.Type == api.Mount_TMPFS && m.Source != "":
		return fmt.Errorf("a tmpfs has no source")
	case m.Type == api.Mount_BIND && m.Source == "":
		return fmt.Errorf("a bind needs a source")
	}
	return nil
}

func withPair(m map[string]string, f Pair) (map[string]string, error) {
	p, err := ParsePair(f.Value)
	if err != nil {
		return m, fmt.Errorf("%s: %w", f.Key, err)
	}
	if m == nil {
		m = make(map[string]string)
	}
	m[p.Key] = p.Value
	return m, nil
}
