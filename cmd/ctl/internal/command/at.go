package command

import (
	"context"

	"github.com/spf13/pflag"

	"holdfast/client"
)

// At is the value of --revision: the past revision that a command reads, if it is given.
type At struct {
	revision uint64
	flag     *pflag.Flag
}

// AddFlag adds --revision.
func (a *At) AddFlag(fs *pflag.FlagSet) {
	fs.Uint64Var(&a.revision, "revision", 0, "show what was there at a past `REVISION`")
	a.flag = fs.Lookup("revision")
}

// Given tells whether the past is read.
func (a *At) Given() bool { return a.flag.Changed }

// Context gives the context of the reads.
func (a *At) Context(ctx context.Context) context.Context {
	if !a.flag.Changed {
		return ctx
	}
	return client.ReadAt(ctx, a.revision)
}
