package service

import (
	"errors"
	"fmt"
	"time"

	"github.com/gogo/protobuf/types"
	"github.com/spf13/pflag"

	"holdfast/api"
	"holdfast/cmd/ctl/internal/values"
	"holdfast/internal/cli"
	"holdfast/internal/errkind"
)

// edit changes a spec. It may run several times, each on a spec of its own.
type edit func(*api.ServiceSpec) error

// edits are the flags of create or update: each adds, when it was given, one edit.
type edits struct {
	fs    *pflag.FlagSet
	flags []flagEdit
}

type flagEdit struct {
	name string
	edit edit
}

// add ties an edit to a flag that was defined. Edits are made in the order of add.
func (e *edits) add(name string, edit edit) { e.flags = append(e.flags, flagEdit{name, edit}) }

// check tells which flag has a wrong value, without asking the cluster.
func (e *edits) check() error {
	err := e.apply(&api.ServiceSpec{})
	if _, ok := errors.AsType[*cli.UsageError](err); ok {
		return err
	}
	return nil // an edit that does not fit this spec may fit the real one
}

// apply makes the edits of all flags that were given. A wrong value is a wrong usage, but an
// edit that does not fit the spec, which has a kind, is an error of its own.
func (e *edits) apply(spec *api.ServiceSpec) error {
	for _, f := range e.flags {
		if !e.fs.Changed(f.name) {
			continue
		}
		err := f.edit(spec)
		if _, ok := errors.AsType[*errkind.Error](err); ok {
			return err
		}
		if err != nil {
			return cli.Usagef("--%s: %v", f.name, err)
		}
	}
	return nil
}

// any tells whether a flag was given.
func (e *edits) any() bool {
	for _, f := range e.flags {
		if e.fs.Changed(f.name) {
			return true
		}
	}
	return false
}

func (e *edits) text(name, short, usage string, set func(*api.ServiceSpec, string) error) {
	v := e.fs.StringP(name, short, "", usage)
	e.add(name, func(s *api.ServiceSpec) error { return set(s, *v) })
}

func (e *edits) list(name, short, usage string, set func(*api.ServiceSpec, []string) error) {
	v := e.fs.StringArrayP(name, short, nil, usage)
	e.add(name, func(s *api.ServiceSpec) error { return set(s, *v) })
}

func (e *edits) uint(name, usage string, set func(*api.ServiceSpec, uint64) error) {
	v := e.fs.Uint64(name, 0, usage)
	e.add(name, func(s *api.ServiceSpec) error { return set(s, *v) })
}

func (e *edits) duration(name, usage string, set func(*api.ServiceSpec, *types.Duration)) {
	v := e.fs.Duration(name, 0, usage)
	e.add(name, func(s *api.ServiceSpec) error {
		set(s, protoDuration(*v))
		return nil
	})
}

func (e *edits) choice(name, usage string, choices []string, set func(*api.ServiceSpec, int)) {
	e.text(name, "", fmt.Sprintf("%s: %s", usage, list(choices)), func(s *api.ServiceSpec, v string) error {
		n, err := values.ParseChoice(v, choices...)
		if err == nil {
			set(s, n)
		}
		return err
	})
}

// list gives choices for help.
func list(choices []string) string {
	text := choices[0]
	for _, c := range choices[1:] {
		text += "|" + c
	}
	return text
}

func protoDuration(d time.Duration) *types.Duration { return types.DurationProto(d) }

// container returns the container of a spec, which it makes if there is none.
func container(s *api.ServiceSpec) *api.ContainerSpec {
	if c := s.Task.GetContainer(); c != nil {
		return c
	}
	c := &api.ContainerSpec{}
	s.Task.Runtime = &api.TaskSpec_Container{Container: c}
	return c
}

// ensure returns *p, which it makes if there is none.
func ensure[T any](p **T) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}
