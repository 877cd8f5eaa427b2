package stack

import (
	"context"

	"github.com/spf13/pflag"

	"holdfast/api/holdfast"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
	"holdfast/internal/compose"
)

// files are the Compose files of a command, and how they are read.
type files struct {
	names    []string
	envFiles []string
	profiles []string
	strict   bool
}

func (f *files) addFlags(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&f.names, "compose-file", "c", nil, "Compose `FILE`, or - for standard input; later ones win")
	fs.StringArrayVar(&f.envFiles, "env-file", nil, "`FILE` of variables KEY=VALUE; later ones win, and the environment over all")
	fs.StringArrayVar(&f.profiles, "profile", nil, "take in the services of the profile `NAME`, too; * for all")
	fs.BoolVar(&f.strict, "strict", false, "fail if the files have keys that are not carried over, instead of a warning")
}

// load reads the files, and makes of them what is sent to the Stacks service. It warns of what
// has no effect.
func (f *files) load(ctx context.Context, env *command.Env, stack string) (*holdfast.DeployRequest, error) {
	if len(f.names) == 0 {
		return nil, cli.Usagef("which Compose file? give it with -c")
	}
	loaded, err := compose.Load(ctx, compose.Options{
		Files: f.names, Stdin: env.Streams.In, Env: env.Environ, EnvFiles: f.envFiles, Profiles: f.profiles, Stack: stack,
	})
	if err != nil {
		return nil, err
	}
	for _, w := range loaded.Warnings {
		env.Notef("warning: %s", w)
	}
	if f.strict {
		if err := loaded.Strict(); err != nil {
			return nil, err
		}
	}
	return loaded.Request, nil
}
