package objects

import (
	"fmt"
	"path"

	"github.com/distribution/reference"

	"holdfast/api"
	"holdfast/internal/errkind"
)

// checkContainer checks a container's spec but for what it refers to.
func checkContainer(at string, c *api.ContainerSpec) error {
	return first(
		func() error { return checkImage(at+".image", c.Image) },
		func() error { return checkEnum(at+".isolation", c.Isolation, api.ContainerSpec_Isolation_name) },
		func() error { return checkDuration(at+".stop_grace_period", c.StopGracePeriod) },
		func() error { return checkMounts(at+".mounts", c.Mounts) },
		func() error { return checkHealth(at+".healthcheck", c.Healthcheck) },
		func() error { return checkPrivileges(at+".privileges", c.Privileges) },
	)
}

func checkImage(at, image string) error {
	if image == "" {
		return errkind.Field(at, "is empty")
	}
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		return errkind.Field(at, "%q is not a valid image reference: %v", image, err)
	}
	return nil
}

func checkMounts(at string, mounts []*api.Mount) error {
	seen := map[string]bool{}
	for i, m := range mounts {
		at := fmt.Sprintf("%s[%d]", at, i)
		if err := checkMount(at, m); err != nil {
			return err
		}
		target := path.Clean(m.Target)
		if seen[target] {
			return errkind.Field(at+".target", "%s is mounted twice", m.Target)
		}
		seen[target] = true
	}
	return nil
}

func checkMount(at string, m *api.Mount) error {
	if m.GetTarget() == "" {
		return errkind.Field(at+".target", "is empty")
	}
	if err := checkEnum(at+".type", m.Type, api.Mount_Type_name); err != nil {
		return err
	}
	if err := checkEnum(at+".consistency", m.Consistency, api.Mount_Consistency_name); err != nil {
		return err
	}
	if o := m.BindOptions; o != nil {
		if err := checkEnum(at+".bind_options.propagation", o.Propagation, api.Mount_BindOptions_Propagation_name); err != nil {
			return err
		}
	}
	switch m.Type {
	case api.Mount_BIND, api.Mount_NPIPE, api.Mount_CLUSTER:
		if m.Source == "" {
			return errkind.Field(at+".source", "is empty").WithHint("a %s mount needs a source", m.Type)
		}
	case api.Mount_TMPFS:
		if m.Source != "" {
			return errkind.Field(at+".source", "must be empty for a tmpfs")
		}
		if n := m.TmpfsOptions.GetSizeBytes(); n < 0 {
			return errkind.Field(at+".tmpfs_options.size_bytes", "is %d, must not be negative", n)
		}
	case api.Mount_VOLUME: // without a source it is an anonymous one
	}
	return nil
}

func checkHealth(at string, h *api.HealthConfig) error {
	if h == nil {
		return nil
	}
	if h.Retries < 0 {
		return errkind.Field(at+".retries", "is %d, must not be negative", h.Retries)
	}
	return first(
		func() error { return checkProbeTime(at+".interval", h.Interval) },
		func() error { return checkProbeTime(at+".timeout", h.Timeout) },
		func() error { return checkProbeTime(at+".start_period", h.StartPeriod) },
		func() error { return checkProbeTime(at+".start_interval", h.StartInterval) },
	)
}

func checkPrivileges(at string, p *api.Privileges) error {
	if p == nil {
		return nil
	}
	if s := p.Seccomp; s != nil {
		if err := checkEnum(at+".seccomp.mode", s.Mode, api.Privileges_SeccompOpts_SeccompMode_name); err != nil {
			return err
		}
	}
	if a := p.Apparmor; a != nil {
		return checkEnum(at+".apparmor.mode", a.Mode, api.Privileges_AppArmorOpts_AppArmorMode_name)
	}
	return nil
}
