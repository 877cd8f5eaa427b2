// Package version holds the command that tells which ctl this is.
package version

import (
	"runtime/debug"

	"github.com/spf13/cobra"

	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/cli"
)

// info is what -o json prints.
type info struct {
	Version   string `json:"version"`
	GoVersion string `json:"goVersion"`
	Revision  string `json:"revision,omitempty"`
}

// New makes the command "version".
func New(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of ctl",
		Args:  command.NoArgs,
		RunE: env.RunAlone(func([]string) error {
			v := read()
			p := env.Printer()
			switch p.Format {
			case cli.JSON:
				return p.JSON(v)
			case cli.ID, cli.Name:
				return env.Printf("%s", v.Version)
			}
			return cli.PrintTable(env.Streams.Out, []string{"CTL", "GO", "REVISION"},
				[][]string{{v.Version, v.GoVersion, v.Revision}})
		}),
	}
}

func read() info {
	v := info{Version: "unknown"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version, v.GoVersion = build.Main.Version, build.GoVersion
	for _, s := range build.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}
