package stackapi

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
	"holdfast/release/storage"
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

	keepOthers bool
	expect     *uint64 // the release that must be deployed; nil: any
	maxHistory int
	// What the release keeps: see content.
	request    []byte
	compose    string
	digest     [sha256.Size]byte
	rollbackOf uint64
}

// wanted is what a request wants of one kind: objects of the stack, and objects outside of it
// that must be there.
type wanted[S any] struct {
	specs    []S
	external []string
	// Of secrets and configs, for each spec: the object that it is to be, if the request names
	// one, and else the suffix of a new one's name, if the data tells that.
	staged, suffixes []string
}

// prepare checks what can be checked of a request without the state, and gives each spec the
// stack's label. The request is not changed.
func (s *Server) prepare(r *holdfast.DeployRequest) (*desired, error) {
	if err := checkStackName(r.Name); err != nil {
		return nil, err
	}
	if len(r.Services)+len(r.Networks)+len(r.Secrets)+len(r.Configs) == 0 {
		return nil, errkind.Field("services", "is empty, and so are networks, secrets and configs").
			On("stack", r.Name).WithHint("to remove the stack: ctl stack rm %s", r.Name)
	}
	d := &desired{name: r.Name, keepOthers: r.KeepOthers, maxHistory: int(r.MaxHistory), compose: r.Compose}
	if d.maxHistory == 0 {
		d.maxHistory = storage.DefaultMaxHistory
	}
	if e, ok := r.Expect.(*holdfast.DeployRequest_ExpectRelease); ok {
		d.expect = &e.ExpectRelease
	}
	var errs [4]error
	d.services, errs[0] = prepareKind(services(), r.Name, r.Services, nil)
	d.networks, errs[1] = prepareKind(networks(), r.Name, r.Networks, r.ExternalNetworks)
	d.secrets, errs[2] = prepareContents(secrets(), r.Name, r.Secrets, r.ExternalSecrets, r.StagedSecrets)
	d.configs, errs[3] = prepareContents(configs(), r.Name, r.Configs, r.ExternalConfigs, r.StagedConfigs)
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return d, s.keepRequest(d, r)
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

// prepareContents is prepareKind for secrets and configs. It reads their data: better here than
// in a transaction.
func prepareContents[T objects.Object[T], S any](
	k kind[T, S], stack string, given []S, external []string, staged map[string]string,
) (wanted[S], error) {
	want, err := prepareKind(k, stack, given, external)
	if err != nil {
		return want, err
	}
	want.staged, want.suffixes = make([]string, len(given)), make([]string, len(given))
	at := map[string]int{}
	for i := range want.specs {
		spec := &want.specs[i]
		path, a := fmt.Sprintf("%s[%d]", k.field, i), k.annotations(spec)
		at[a.Name] = i
		if err := checkContentName(path, a); err != nil {
			return want, within(err, "", k.table.Noun(), a.Name)
		}
		if want.staged[i] = staged[a.Name]; want.staged[i] != "" {
			if len(*k.contents.data(spec)) > 0 {
				return want, errkind.Field(path+".data", "is given, and so is %s", stagedPath(k, a.Name)).
					On(k.table.Noun(), a.Name).WithHint("leave one of them out")
			}
			continue
		}
		if k.contents.told {
			digest, err := k.contents.digest(spec)
			if err != nil {
				return want, within(err, path, k.table.Noun(), a.Name)
			}
			want.suffixes[i] = digest[:suffixLength]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(staged)) {
		if _, ok := at[name]; !ok || staged[name] == "" {
			return want, errkind.Field(stagedPath(k, name), "is for no %s of the request, or names nothing", k.table.Noun()).
				WithHint("give the spec of the %s in %s, without its data", k.table.Noun(), k.field)
		}
	}
	return want, nil
}

// stagedPath is where a request names a staged object.
func stagedPath[T objects.Object[T], S any](k kind[T, S], name string) string {
	return fmt.Sprintf("%s[%q]", k.contents.staged, name)
}

// checkContentName checks the name that a stack has for a secret or a config. What the store's
// own rule is for, the name of the object is held to.
func checkContentName(path string, a *api.Annotations) error {
	if n := len(a.Name); n > maxContentName {
		e := errkind.Field(path+".annotations.name", "has %d characters, at most %d are allowed", n, maxContentName)
		e.Max = fmt.Sprintf("%d characters", maxContentName)
		return e
	}
	if is, ok := a.Labels[nameLabel]; ok && is != a.Name {
		return errkind.Field(path+".annotations.labels", "%s is %q, not %q", nameLabel, is, a.Name).
			WithHint("leave the label out")
	}
	return nil
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
