package command

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"holdfast/api/holdfast"
)

// Filter is the value of --filter: values of one filter are ORed, filters are ANDed.
type Filter struct {
	names, ids []string // prefixes
	labels     []label
}

// label is a label that an object must have; any value will do if none is given.
type label struct {
	key, value string
	any        bool
}

var _ pflag.Value = (*Filter)(nil)

// AddFlag adds --filter.
func (f *Filter) AddFlag(fs *pflag.FlagSet) {
	fs.VarP(f, "filter", "f", "list only `KEY=VALUE`: name=PREFIX, id=PREFIX, label=KEY or label=KEY=VALUE;\n"+
		"values of one key are alternatives, keys must all match")
}

// Set takes one use of the flag.
func (f *Filter) Set(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if !ok || value == "" {
		return fmt.Errorf("%q is not KEY=VALUE", s)
	}
	switch key {
	case "name":
		f.names = append(f.names, value)
	case "id":
		f.ids = append(f.ids, value)
	case "label":
		k, v, hasValue := strings.Cut(value, "=")
		f.labels = append(f.labels, label{key: k, value: v, any: !hasValue})
	default:
		return fmt.Errorf("%q is none of name, id, label", key)
	}
	return nil
}

// String gives nothing: there is no default.
func (f *Filter) String() string { return "" }

// Type names the flag's value in help.
func (f *Filter) Type() string { return "filter" }

// selector gives what managers can filter. They take all labels together, so that alternatives
// are left to passes.
func (f *Filter) selector() holdfast.Selector {
	s := holdfast.Selector{NamePrefixes: f.names, IDPrefixes: f.ids}
	if len(f.labels) == 1 {
		s.Labels = map[string]string{f.labels[0].key: f.labels[0].value}
	}
	return s
}

// more tells whether passes has anything to do.
func (f *Filter) more() bool {
	return len(f.labels) > 1 || len(f.labels) == 1 && !f.labels[0].any && f.labels[0].value == ""
}

// passes tells whether one of the labels is there, of an object that a manager picked. To a
// manager an empty value means any.
func (f *Filter) passes(labels map[string]string) bool {
	for _, want := range f.labels {
		if v, ok := labels[want.key]; ok && (want.any || v == want.value) {
			return true
		}
	}
	return !f.more()
}
