package objects

import (
	"fmt"

	"holdfast/api"
	"holdfast/internal/errkind"
)

const (
	minNanoCPUs    = 1_000_000 // a thousandth of a processor
	minMemoryBytes = 4 << 20
	nanosPerCPU    = 1e9

	noSwappiness  = -1
	maxSwappiness = 100
	noSwapLimit   = -1
)

func checkResources(path string, r *api.ResourceRequirements) error {
	if r == nil {
		return nil
	}
	if len(r.Limits.GetGeneric()) > 0 {
		return errkind.Field(path+".limits.generic", "is not supported").
			WithHint("generic resources can only be reserved")
	}
	if v := r.SwapBytes; v != nil && v.Value < noSwapLimit {
		return errkind.Field(path+".swap_bytes", "is %d, must be -1 (no limit) or more", v.Value)
	}
	if v := r.MemorySwappiness; v != nil && (v.Value < noSwappiness || v.Value > maxSwappiness) {
		return errkind.Field(path+".memory_swappiness", "is %d, must be from -1 to 100", v.Value)
	}
	if err := checkAmounts(path+".limits", r.Limits); err != nil {
		return err
	}
	return checkAmounts(path+".reservations", r.Reservations)
}

func checkAmounts(path string, r *api.Resources) error {
	switch {
	case r == nil:
		return nil
	case r.NanoCPUs != 0 && r.NanoCPUs < minNanoCPUs:
		return errkind.Field(path+".nano_cpus", "is %g CPUs, must be 0 or at least 0.001",
			float64(r.NanoCPUs)/nanosPerCPU)
	case r.MemoryBytes != 0 && r.MemoryBytes < minMemoryBytes:
		return errkind.Field(path+".memory_bytes", "is %d bytes, must be 0 or at least 4 MiB", r.MemoryBytes)
	}
	return checkGeneric(path+".generic", r.Generic)
}

// checkGeneric checks reserved generic resources: numbers of things, each kind once. Which
// particular things a task gets is chosen when it is assigned.
func checkGeneric(path string, resources []*api.GenericResource) error {
	seen := map[string]bool{}
	for i, r := range resources {
		at := fmt.Sprintf("%s[%d]", path, i)
		d := r.GetDiscreteResourceSpec()
		switch {
		case r.GetNamedResourceSpec() != nil:
			return errkind.Field(at+".named_resource_spec", "is not supported").
				WithHint("reserve a number of them with discrete_resource_spec")
		case d == nil:
			return errkind.Field(at, "is empty")
		case d.Kind == "":
			return errkind.Field(at+".discrete_resource_spec.kind", "is empty")
		case d.Value < 0:
			return errkind.Field(at+".discrete_resource_spec.value", "is %d, must not be negative", d.Value)
		case seen[d.Kind]:
			return errkind.Field(at+".discrete_resource_spec.kind", "%q is there twice", d.Kind)
		}
		seen[d.Kind] = true
	}
	return nil
}
