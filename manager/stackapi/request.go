package stackapi

import (
	"fmt"
	"maps"
	"strings"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// maxStackName is the length that the name of a stack may have.
const maxStackName = 63

// desired is what a request wants. It is only read.
type desired struct {
	name     string
	services wanted[api.ServiceSpec]
	networks wanted[api.NetworkSpec]
	secrets  wanted[api.SecretSpec]
	configs  wanted[api.ConfigSpec]
}

// wanted is what a request wants of one kind: objects of the stack, and objects outside of it
// that must be there.
type wanted[S any] struct {
	specs    []S
	external []string
}

// prepare checks what can be checked of a request without the state, and gives each spec the
// stack's label. The request is not changed.
func prepare(r *holdfast.DeployRequest) (*desired, error) {
	if err := checkStackName(r.Name); err != nil {
		return nil, err
	}
	if len(r.Services)+len(r.Networks)+len(r.Secrets)+len(r.Configs) == 0 {
		return nil, errkind.Field("services", "is empty, and so are networks, secrets and configs").
			On("stack", r.Name).WithHint("to remove the stack: ctl stack rm %s", r.Name)
	}
	d := &desired{name: r.Name}
	var errs [4]error
	d.services, errs[0] = prepareKind(services(), r.Name, r.Services, nil)
	d.networks, errs[1] = prepareKind(networks(), r.Name, r.Networks, r.ExternalNetworks)
	d.secrets, errs[2] = prepareKind(secrets(), r.Name, r.Secrets, r.ExternalSecrets)
	d.configs, errs[3] = prepareKind(configs(), r.Name, r.Configs, r.ExternalConfigs)
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// checkStackName holds a stack's name to the rules for the names of its services, which it is
// the beginning of.
func checkStackName(name string) error {
	switch {
	case name == "":
		return errkind.Field("name", "is empty").On("stack", "")
	case len(name) > maxStackName:
		e := errkind.Field("name", "has %d characters, at most %d are allowed", len(name), maxStackName)
		e.Max = fmt.Sprintf("%d characters", maxStackName)
		return e.On("stack", "")
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case (c == '-' || c == '_') && i > 0 && i < len(name)-1:
		default:
			return errkind.Field("name", "%q is not a valid name", name).On("stack", "").
				WithHint("use letters, digits, and between them - and _")
		}
	}
	return nil
}

// prepareKind checks the names of one kind, and gives the specs the stack's label.
func prepareKind[T objects.Object[T], S any](
	k kind[T, S], stack string, given []S, external []string,
) (wanted[S], error) {
	want := wanted[S]{specs: make([]S, len(given)), external: external}
	paths := map[string]string{} // by name, without case
	for i := range given {
		path := fmt.Sprintf("%s[%d]", k.field, i)
		want.specs[i] = given[i] // of one level
		a := k.annotations(&want.specs[i])
		if a.Name == "" {
			return want, errkind.Field(path+".annotations.name", "is empty").On(k.table.Noun(), "")
		}
		key := strings.ToLower(a.Name)
		if other, taken := paths[key]; taken {
			return want, errkind.Field(path+".annotations.name", "is the name of %s, too", other).
				On(k.table.Noun(), a.Name)
		}
		paths[key] = path
		if err := label(a, stack); err != nil {
			return want, within(err, path+".annotations.labels", k.table.Noun(), a.Name)
		}
	}
	for i, name := range external {
		path := fmt.Sprintf("%s[%d]", k.external, i)
		if name == "" {
			return want, errkind.Field(path, "is empty")
		}
		if own, taken := paths[strings.ToLower(name)]; taken {
			return want, errkind.Field(path, "is external, and %s has the name, too", own).On(k.table.Noun(), name)
		}
	}
	return want, nil
}

// label gives annotations the stack's label, in a copy of the labels.
func label(a *api.Annotations, stack string) error {
	if is, ok := a.Labels[store.StackLabel]; ok {
		if is == stack {
			return nil
		}
		return errkind.New(errkind.Invalid, "%s is %q, not %q", store.StackLabel, is, stack).
			WithHint("leave the label out")
	}
	labels := make(map[string]string, len(a.Labels)+1)
	maps.Copy(labels, a.Labels)
	labels[store.StackLabel] = stack
	a.Labels = labels
	return nil
}
