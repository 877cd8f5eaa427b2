// Package compose reads Compose files as `docker stack deploy` does and makes of them the
// request of the Stacks service: specs with their full names, ready to be sent.
//
// Files are parsed, interpolated, merged and checked by compose-go; what they mean for a
// cluster is decided here. A key that is not in the table of what is carried over is taken out
// of the merged files before anything looks at it, and named in a warning: it can neither
// change the result nor get lost without a word.
//
// Load keeps no state and may be called from several goroutines. It reads files and, when asked
// to, a stream; it does not look at the process's environment, except that compose-go expands a
// leading ~ of a path. It turns off the standard logger of logrus, to which compose-go would
// write: what is worth saying is in Result.Warnings.
package compose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/sirupsen/logrus"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
)

// maxFile bounds a Compose file: a request may not be larger.
const maxFile = 4 << 20

// Options say what Load reads.
type Options struct {
	// Files are merged in their order, by Compose's rules. "-" is Stdin.
	Files []string
	// Stdin is read when Files has a "-".
	Stdin io.Reader
	// Dir is where relative Files are; empty means the process's own. What the files refer to is
	// relative to the folder of the first one, or to Dir if that is Stdin.
	Dir string
	// Env holds KEY=VALUE entries, of which a later one wins.
	Env []string
	// EnvFiles hold more variables, relative to Dir. Env wins over them, a later one over an
	// earlier one. Nothing else is looked up.
	EnvFiles []string
	// Profiles are those whose services are wanted; "*" stands for all. Services without
	// profiles always are.
	Profiles []string
	// Stack is the name of the stack. It stands before the key of each object.
	Stack string
}

// Result is what the files ask for.
type Result struct {
	// Request has its services, networks, secrets and configs in the order of their names.
	// Its Compose is a Compose file that says the same, merged and with its variables replaced;
	// see effective.
	Request *holdfast.DeployRequest
	// Warnings are sorted, one line each: variables that are not set, keys that are not carried
	// over, by their path, and services that are left out for their profiles. None holds a value
	// of an environment variable or of a secret.
	Warnings []string
	// NotCarried are the paths of the keys that are not carried over, with why where the key
	// alone does not tell.
	NotCarried []string
}

// Strict is an error that names all keys that are not carried over, or nil if there are none.
func (r *Result) Strict() error {
	if len(r.NotCarried) == 0 {
		return nil
	}
	what := "keys of the Compose files are"
	if len(r.NotCarried) == 1 {
		what = "key of the Compose files is"
	}
	return errkind.New(errkind.Invalid, "%d %s not carried over: %s", len(r.NotCarried), what, strings.Join(r.NotCarried, ", ")).
		WithHint("take out what has no effect, or do without --strict")
}

// Load reads the files and converts them. An error names the file or the key that it is about,
// on one line, and holds no secret data.
func Load(ctx context.Context, o Options) (*Result, error) {
	if err := checkStackName(o.Stack); err != nil {
		return nil, err
	}
	logrus.SetOutput(io.Discard) // compose-go knows only this logger
	details, err := o.details(ctx)
	if err != nil {
		return nil, err
	}
	said := &report{}
	model, err := merge(ctx, details, o.Stack, said)
	if err != nil {
		return nil, err
	}
	if model["name"] == o.Stack {
		delete(model, "name")
	}
	selectProfiles(model, o.Profiles, said)
	carriedKeys().prune(model, "", said.dropped)
	project, err := decode(model, details)
	if err != nil {
		return nil, err
	}
	c := newConverter(o.Stack, project, model, said)
	req, err := c.request()
	if err != nil {
		return nil, err
	}
	if req.Compose, err = c.effective(); err != nil {
		return nil, err
	}
	return &Result{Request: req, Warnings: said.lines(), NotCarried: said.notCarried()}, nil
}

// details reads the files and the environment.
func (o Options) details(ctx context.Context) (types.ConfigDetails, error) {
	d := types.ConfigDetails{Environment: types.Mapping{}}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return d, err
	}
	if len(o.Files) == 0 {
		return d, errors.New("no Compose file is given")
	}
	var stdin bool
	for _, name := range o.Files {
		if err := ctx.Err(); err != nil {
			return d, err
		}
		if name == "-" && stdin {
			return d, errors.New("-: the standard input can be read only once")
		}
		stdin = stdin || name == "-"
		content, err := o.read(name, dir)
		if err != nil {
			return d, err
		}
		d.ConfigFiles = append(d.ConfigFiles, types.ConfigFile{Filename: name, Content: content})
	}
	d.WorkingDir = dir
	if first := o.Files[0]; first != "-" {
		d.WorkingDir = filepath.Dir(under(dir, first))
	}
	for _, entry := range o.Env {
		if key, value, ok := strings.Cut(entry, "="); ok && key != "" {
			d.Environment[key] = value
		}
	}
	return d, o.readEnvFiles(d.Environment, dir)
}

// read returns the content of one file, or of the standard input.
func (o Options) read(name, dir string) ([]byte, error) {
	in := o.Stdin
	if name == "-" {
		if in == nil {
			return nil, errors.New("-: there is no standard input")
		}
	} else {
		f, err := os.Open(under(dir, name))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	content, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(content) > maxFile:
		return nil, fmt.Errorf("%s: larger than %d MiB", name, maxFile>>20)
	case len(content) == 0:
		return nil, fmt.Errorf("%s: the file is empty", name)
	}
	return content, nil
}

func under(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}
