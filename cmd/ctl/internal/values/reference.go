package values

import (
	"fmt"
	"path"

	"holdfast/api"
)

// defaultMode is the permissions of a file made of a secret or a config.
const defaultMode = 0o444

// Reference asks for a secret or a config, by name, as a file in a container.
type Reference struct {
	Source string
	File   api.FileTarget
}

// ParseReference reads NAME, or source=NAME,target=FILE,uid=U,gid=G,mode=0444. Without a
// target the file has the name of the source; root stands before it for a config, whose
// target is a path.
func ParseReference(s, root string) (Reference, error) {
	r := Reference{File: api.FileTarget{UID: "0", GID: "0", Mode: defaultMode}}
	if !isLong(s) {
		if s == "" {
			return r, fmt.Errorf("%q has no source", s)
		}
		r.Source, r.File.Name = s, path.Join(root, s)
		return r, nil
	}
	pairs, err := fields(s)
	if err != nil {
		return r, err
	}
	for _, f := range pairs {
		switch f.Key {
		case "source", "src":
			r.Source = f.Value
		case "target":
			r.File.Name = f.Value
		case "uid":
			r.File.UID = f.Value
		case "gid":
			r.File.GID = f.Value
		case "mode":
			if r.File.Mode, err = parseOctal(f); err != nil {
				return r, fmt.Errorf("%q: %w", s, err)
			}
		default:
			return r, fmt.Errorf("%q: %q is none of source, target, uid, gid, mode", s, f.Key)
		}
	}
	if r.Source == "" {
		return r, fmt.Errorf("%q has no source", s)
	}
	if r.File.Name == "" {
		r.File.Name = path.Join(root, r.Source)
	}
	return r, nil
}

// ParseNetwork reads NAME, or name=NAME,alias=A,alias=B,driver-opt=K=V. The target is the
// network's name as it was written.
func ParseNetwork(s string) (*api.NetworkAttachmentConfig, error) {
	if !isLong(s) {
		if s == "" {
			return nil, fmt.Errorf("%q has no name", s)
		}
		return &api.NetworkAttachmentConfig{Target: s}, nil
	}
	pairs, err := fields(s)
	if err != nil {
		return nil, err
	}
	n := &api.NetworkAttachmentConfig{}
	for _, f := range pairs {
		switch f.Key {
		case "name":
			n.Target = f.Value
		case "alias":
			n.Aliases = append(n.Aliases, f.Value)
		case "driver-opt":
			p, err := ParsePair(f.Value)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", s, err)
			}
			if n.DriverAttachmentOpts == nil {
				n.DriverAttachmentOpts = make(map[string]string)
			}
			n.DriverAttachmentOpts[p.Key] = p.Value
		default:
			return nil, fmt.Errorf("%q: %q is none of name, alias, driver-opt", s, f.Key)
		}
	}
	if n.Target == "" {
		return nil, fmt.Errorf("%q has no name", s)
	}
	return n, nil
}
