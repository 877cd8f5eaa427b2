package service

import (
	"context"
	"path"

	"github.com/spf13/pflag"

	"holdfast/api"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/cmd/ctl/internal/values"
	"holdfast/internal/cli"
	"holdfast/internal/errkind"
)

// references are the flags that name other objects: the cluster wants their IDs.
type references struct {
	names                      [3]string // of the flags
	networks, secrets, configs []string
}

func (r *references) flags(fs *pflag.FlagSet, network, secret, config string) {
	r.names = [3]string{network, secret, config}
	fs.StringArrayVar(&r.networks, network, nil, "network to attach to: `NAME`, or name=,alias=,driver-opt=")
	fs.StringArrayVar(&r.secrets, secret, nil, "secret to give: `NAME`, or source=,target=,uid=,gid=,mode=")
	fs.StringArrayVar(&r.configs, config, nil, "config to give: `NAME`, or source=,target=,uid=,gid=,mode=")
}

func (r *references) any() bool { return len(r.networks)+len(r.secrets)+len(r.configs) > 0 }

// check tells what is wrong with the flags, without asking the cluster.
func (r *references) check() error {
	for _, v := range r.networks {
		if _, err := values.ParseNetwork(v); err != nil {
			return cli.Usagef("--%s: %v", r.names[0], err)
		}
	}
	for i, list := range [][]string{r.secrets, r.configs} {
		for _, v := range list {
			if _, err := values.ParseReference(v, ""); err != nil {
				return cli.Usagef("--%s: %v", r.names[i+1], err)
			}
		}
	}
	return nil
}

// resolve looks up what is named, after check, and returns the edit that adds it.
func (r *references) resolve(ctx context.Context, c *client.Client) (edit, error) {
	networks, err := r.resolveNetworks(ctx, c)
	if err != nil {
		return nil, err
	}
	secrets, err := r.resolveSecrets(ctx, c)
	if err != nil {
		return nil, err
	}
	configs, err := r.resolveConfigs(ctx, c)
	if err != nil {
		return nil, err
	}
	return func(s *api.ServiceSpec) error {
		for _, n := range networks {
			byTarget := (*api.NetworkAttachmentConfig).GetTarget
			s.Task.Networks = append(without(s.Task.Networks, []string{n.Target}, byTarget), n.Copy())
		}
		for _, ref := range secrets {
			c := container(s)
			c.Secrets = append(without(c.Secrets, []string{ref.GetFile().GetName()}, secretTarget), ref.Copy())
		}
		for _, ref := range configs {
			c := container(s)
			c.Configs = append(without(c.Configs, []string{ref.GetFile().GetName()}, configTarget), ref.Copy())
		}
		return nil
	}, nil
}

func secretTarget(r *api.SecretReference) string { return r.GetFile().GetName() }
func configTarget(r *api.ConfigReference) string { return r.GetFile().GetName() }

func (r *references) resolveNetworks(ctx context.Context, c *client.Client) ([]*api.NetworkAttachmentConfig, error) {
	var all []*api.NetworkAttachmentConfig
	for _, v := range r.networks {
		n, err := values.ParseNetwork(v)
		if err != nil {
			return nil, err
		}
		found, err := kinds.Networks().Resolve(ctx, c, n.Target)
		if err != nil {
			return nil, unknown(err)
		}
		n.Target = found.ID
		all = append(all, n)
	}
	return all, nil
}

func (r *references) resolveSecrets(ctx context.Context, c *client.Client) ([]*api.SecretReference, error) {
	var all []*api.SecretReference
	for _, v := range r.secrets {
		ref, err := values.ParseReference(v, "")
		if err != nil {
			return nil, err
		}
		found, err := kinds.Secrets().Resolve(ctx, c, ref.Source)
		if err != nil {
			return nil, unknown(err)
		}
		name := found.Spec.Annotations.Name
		if ref.File.Name == ref.Source { // the file has the secret's name, not what found it
			ref.File.Name = name
		}
		all = append(all, &api.SecretReference{
			SecretID: found.ID, SecretName: name, Target: &api.SecretReference_File{File: &ref.File},
		})
	}
	return all, nil
}

func (r *references) resolveConfigs(ctx context.Context, c *client.Client) ([]*api.ConfigReference, error) {
	const root = "/"
	var all []*api.ConfigReference
	for _, v := range r.configs {
		ref, err := values.ParseReference(v, root)
		if err != nil {
			return nil, err
		}
		found, err := kinds.Configs().Resolve(ctx, c, ref.Source)
		if err != nil {
			return nil, unknown(err)
		}
		name := found.Spec.Annotations.Name
		if ref.File.Name == path.Join(root, ref.Source) {
			ref.File.Name = path.Join(root, name)
		}
		all = append(all, &api.ConfigReference{
			ConfigID: found.ID, ConfigName: name, Target: &api.ConfigReference_File{File: &ref.File},
		})
	}
	return all, nil
}

// unknown makes a reference that was not found what it is to the cluster: a wrong field, and
// not a service that is not there.
func unknown(err error) error {
	if errkind.Is(err, errkind.NotFound) {
		return errkind.New(errkind.Invalid, "%v", err)
	}
	return err
}
