package objects

import (
	"slices"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// checkTaskSpec checks what tasks are made from. A task that attaches a container of someone
// else's to a network cannot be made by a service.
func checkTaskSpec(tx store.ReadTx, at string, s *api.TaskSpec, ofService bool) error {
	return first(
		func() error { return checkResources(at+".resources", s.Resources) },
		func() error { return checkRestart(at+".restart", s.Restart) },
		func() error { return checkPlacement(at+".placement", s.Placement) },
		func() error { return checkRuntime(tx, at, s, ofService) },
		func() error {
			return checkResourceReferences(tx, at+".resource_references", s.ResourceReferences)
		},
	)
}

func checkRuntime(tx store.ReadTx, at string, s *api.TaskSpec, ofService bool) error {
	switch r := s.Runtime.(type) {
	case *api.TaskSpec_Container:
		return checkContainerRuntime(tx, at+".container", r.Container)
	case *api.TaskSpec_Generic:
		return checkGenericRuntime(at+".generic", r.Generic)
	case *api.TaskSpec_Attachment:
		if ofService {
			return errkind.Field(at+".attachment", "cannot be the runtime of a service")
		}
		if r.Attachment.GetContainerID() == "" {
			return errkind.Field(at+".attachment.container_id", "is empty")
		}
		return nil
	}
	return errkind.Field(at+".runtime", "is empty").WithHint("give a container or a generic runtime")
}

func checkContainerRuntime(tx store.ReadTx, at string, c *api.ContainerSpec) error {
	if c == nil {
		return errkind.Field(at, "is empty")
	}
	if err := checkContainer(at, c); err != nil {
		return err
	}
	if err := checkReferences(tx, at+".secrets", store.Secrets, secretReferences(c)); err != nil {
		return err
	}
	return checkReferences(tx, at+".configs", store.Configs, configReferences(c))
}

const minRuntimeKind = 3

func checkGenericRuntime(at string, g *api.GenericRuntimeSpec) error {
	kind := g.GetKind()
	if err := dnsName().check(at+".kind", kind); err != nil {
		return err
	}
	switch {
	case len(kind) < minRuntimeKind:
		return errkind.Field(at+".kind", "%q is too short, use at least 3 characters", kind)
	case slices.Contains([]string{"container", "attachment"}, kind):
		return errkind.Field(at+".kind", "%q is reserved", kind)
	case g.Payload.GetTypeUrl() == "":
		return errkind.Field(at+".payload", "has no type_url")
	}
	return nil
}

func checkRestart(at string, r *api.RestartPolicy) error {
	if r == nil {
		return nil
	}
	return first(
		func() error {
			return checkEnum(at+".condition", r.Condition, api.RestartPolicy_RestartCondition_name)
		},
		func() error { return checkDuration(at+".delay", r.Delay) },
		func() error { return checkDuration(at+".window", r.Window) },
	)
}
