package compose

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"holdfast/api"
	"holdfast/api/holdfast"
)

// The server's limits; a file beyond them is not read.
const (
	maxSecret = 500<<10 - 1
	maxConfig = 1000<<10 - 1
)

// fileMode is that of a secret or config in a container where the file names none.
const fileMode = 0o444

func (c *converter) secrets(r *holdfast.DeployRequest) error {
	for _, key := range sortedKeys(c.project.Secrets) {
		s := types.FileObjectConfig(c.project.Secrets[key])
		if s.External {
			r.ExternalSecrets = append(r.ExternalSecrets, c.objectName(key, s))
			continue
		}
		name, err := c.claim("secrets", key, s.Name, fileNaming())
		if err != nil {
			return err
		}
		spec := api.SecretSpec{
			Annotations: api.Annotations{Name: name, Labels: c.labels(s.Labels)},
			Templating:  templating(s),
		}
		if s.Driver != "" {
			spec.Driver = &api.Driver{Name: s.Driver, Options: s.DriverOpts}
		} else if spec.Data, err = c.data("secrets", key, s, maxSecret); err != nil {
			return err
		}
		r.Secrets = append(r.Secrets, spec)
	}
	sortBy(r.Secrets, func(s *api.SecretSpec) string { return s.Annotations.Name })
	r.ExternalSecrets = distinct(r.ExternalSecrets)
	return nil
}

func (c *converter) configs(r *holdfast.DeployRequest) error {
	for _, key := range sortedKeys(c.project.Configs) {
		s := types.FileObjectConfig(c.project.Configs[key])
		if s.External {
			r.ExternalConfigs = append(r.ExternalConfigs, c.objectName(key, s))
			continue
		}
		name, err := c.claim("configs", key, s.Name, fileNaming())
		if err != nil {
			return err
		}
		spec := api.ConfigSpec{
			Annotations: api.Annotations{Name: name, Labels: c.labels(s.Labels)},
			Templating:  templating(s),
		}
		if spec.Data, err = c.data("configs", key, s, maxConfig); err != nil {
			return err
		}
		r.Configs = append(r.Configs, spec)
	}
	sortBy(r.Configs, func(s *api.ConfigSpec) string { return s.Annotations.Name })
	r.ExternalConfigs = distinct(r.ExternalConfigs)
	return nil
}

func templating(s types.FileObjectConfig) *api.Driver {
	if s.TemplateDriver == "" {
		return nil
	}
	return &api.Driver{Name: s.TemplateDriver}
}

// objectName is the full name of a secret or config, external or not.
func (c *converter) objectName(key string, s types.FileObjectConfig) string {
	if s.External && s.Name == "" {
		return key
	}
	return c.scoped(key, s.Name)
}

// data reads a secret or config from where the files say it is. No error shows any of it.
func (c *converter) data(kind, key string, s types.FileObjectConfig, most int64) ([]byte, error) {
	path := kind + "." + key
	var data []byte
	switch {
	case s.File != "":
		path += ".file"
		content, err := readLimited(s.File, most)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		data = content
	case s.Environment != "":
		path += ".environment"
		// compose-go puts the value in one of two places, for each kind its own.
		value, ok := c.raw(kind, key, types.SecretConfigXValue).(string)
		if !ok {
			value, ok = c.raw(kind, key, "content").(string)
		}
		if !ok {
			return nil, fmt.Errorf("%s: variable %s is not set", path, s.Environment)
		}
		data = []byte(value)
	case c.raw(kind, key, "content") != nil:
		path += ".content"
		data = []byte(s.Content)
	default:
		return nil, fmt.Errorf("%s: nothing says where its data is", path)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s: %w", path, tooLarge(most))
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("%s: the %s is empty", path, strings.TrimSuffix(kind, "s"))
	}
	return data, nil
}

func readLimited(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: %w", name, tooLarge(most))
	}
	return data, err
}

func tooLarge(most int64) error {
	return fmt.Errorf("larger than %d bytes", most)
}

// secretReferences are sorted by name, so that their order in the files makes no difference.
func (c *converter) secretReferences(f *fallible, path string, list []types.ServiceSecretConfig) []*api.SecretReference {
	var refs []*api.SecretReference
	for i, ref := range list {
		at := fmt.Sprintf("%s.secrets[%d]", path, i)
		s, ok := c.project.Secrets[ref.Source]
		if !ok {
			f.fail("%s.source: there is no secret %s in the files", at, ref.Source)
		}
		refs = append(refs, &api.SecretReference{
			SecretName: c.objectName(ref.Source, types.FileObjectConfig(s)),
			Target:     &api.SecretReference_File{File: fileTarget(f, at, types.FileReferenceConfig(ref))},
		})
	}
	slices.SortStableFunc(refs, func(a, b *api.SecretReference) int {
		return strings.Compare(a.SecretName, b.SecretName)
	})
	return refs
}

// configReferences are sorted by name, too. A credential spec adds one that is the runtime's.
func (c *converter) configReferences(f *fallible, path string, s types.ServiceConfig) []*api.ConfigReference {
	var refs []*api.ConfigReference
	add := func(at, key string, ref *api.ConfigReference) {
		declared, ok := c.project.Configs[key]
		if !ok {
			f.fail("%s: there is no config %s in the files", at, key)
		}
		ref.ConfigName = c.objectName(key, types.FileObjectConfig(declared))
		refs = append(refs, ref)
	}
	for i, ref := range s.Configs {
		at := fmt.Sprintf("%s.configs[%d]", path, i)
		add(at+".source", ref.Source, &api.ConfigReference{
			Target: &api.ConfigReference_File{File: fileTarget(f, at, types.FileReferenceConfig(ref))},
		})
	}
	if spec := s.CredentialSpec; spec != nil && spec.Config != "" {
		add(path+".credential_spec.config", spec.Config, &api.ConfigReference{
			Target: &api.ConfigReference_Runtime{Runtime: &api.RuntimeTarget{}},
		})
	}
	slices.SortStableFunc(refs, func(a, b *api.ConfigReference) int {
		return strings.Compare(a.ConfigName, b.ConfigName)
	})
	return refs
}

// fileTarget is where a container finds a secret or a config: under its key unless the file
// says otherwise.
func fileTarget(f *fallible, path string, ref types.FileReferenceConfig) *api.FileTarget {
	target := &api.FileTarget{Name: ref.Target, UID: ref.UID, GID: ref.GID, Mode: fileMode}
	if target.Name == "" {
		target.Name = ref.Source
	}
	if target.UID == "" {
		target.UID = "0"
	}
	if target.GID == "" {
		target.GID = "0"
	}
	if m := ref.Mode; m != nil {
		if *m < 0 || *m > 0o7777 {
			f.fail("%s.mode: %d is not a file's mode", path, int64(*m))
		}
		target.Mode = uint32(*m & 0o7777)
	}
	return target
}
