package objects

import (
	"fmt"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// dataReference is a secret or config that a container is given.
type dataReference struct {
	id, name  string
	file      *api.FileTarget
	elsewhere bool // it goes to the runtime and not into a file
}

func secretReferences(c *api.ContainerSpec) []dataReference {
	refs := make([]dataReference, len(c.Secrets))
	for i, r := range c.Secrets {
		refs[i] = dataReference{id: r.GetSecretID(), name: r.GetSecretName(), file: r.GetFile()}
	}
	return refs
}

func configReferences(c *api.ContainerSpec) []dataReference {
	refs := make([]dataReference, len(c.Configs))
	for i, r := range c.Configs {
		refs[i] = dataReference{
			id: r.GetConfigID(), name: r.GetConfigName(), file: r.GetFile(), elsewhere: r.GetRuntime() != nil,
		}
	}
	return refs
}

// checkReferences checks that what a container is given exists under the given name, and that
// no two of one kind go into the same file.
func checkReferences[T Object[T]](tx store.ReadTx, path string, t *store.Table[T], refs []dataReference) error {
	var zero T
	noun := t.Noun()
	files := map[string]string{}
	for i, r := range refs {
		at := fmt.Sprintf("%s[%d].", path, i)
		switch {
		case r.id == "":
			return errkind.Field(at+noun+"_id", "is empty")
		case r.name == "":
			return errkind.Field(at+noun+"_name", "is empty")
		case r.file == nil && !r.elsewhere:
			return errkind.Field(at+"file", "is empty").WithHint("say which file the %s goes into", noun)
		case r.file != nil && r.file.Name == "":
			return errkind.Field(at+"file.name", "is empty")
		}
		o := t.Get(tx, r.id)
		if o == zero {
			return errkind.Field(at+noun+"_id", "%s %s (%s) not found", noun, r.id, r.name).
				WithHint("create the %s first", noun)
		}
		if t.Name(o) != r.name {
			return errkind.Field(at+noun+"_name", "%s %s has the name %s, not %s", noun, r.id, t.Name(o), r.name)
		}
		if r.file == nil {
			continue
		}
		if other, taken := files[r.file.Name]; taken {
			return errkind.Field(at+"file.name", "%ss %s and %s go into the same file %s",
				noun, other, r.name, r.file.Name)
		}
		files[r.file.Name] = r.name
	}
	return nil
}

// checkResourceReferences checks that objects which a task depends on exist, for the kinds
// that the store keeps.
func checkResourceReferences(tx store.ReadTx, path string, refs []*api.ResourceReference) error {
	for i, r := range refs {
		at := fmt.Sprintf("%s[%d]", path, i)
		if r.GetResourceID() == "" {
			return errkind.Field(at+".resource_id", "is empty")
		}
		found := true
		switch r.ResourceType {
		case api.ResourceType_TASK:
			found = store.Tasks.Get(tx, r.ResourceID) != nil
		case api.ResourceType_SECRET:
			found = store.Secrets.Get(tx, r.ResourceID) != nil
		case api.ResourceType_CONFIG:
			found = store.Configs.Get(tx, r.ResourceID) != nil
		case api.ResourceType_VOLUME:
		default:
			return errkind.Field(at+".resource_type", "has the unknown value %d", r.ResourceType)
		}
		if !found {
			return errkind.Field(at+".resource_id", "%s %s not found", r.ResourceType, r.ResourceID)
		}
	}
	return nil
}
