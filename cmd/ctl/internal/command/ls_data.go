package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/release/driver/object"
)

// NewLsData makes the command that lists secrets or configs; those in which releases are kept
// are for programs, and are shown with --all only.
func NewLsData[T kinds.Object](env *Env, k kinds.Kind[T]) *cobra.Command {
	all := false
	return Ls[T]{
		Kind: k,
		Flags: func(fs *pflag.FlagSet) {
			fs.BoolVarP(&all, "all", "a", false, "also those in which releases are kept")
		},
		Narrow: func(_ context.Context, _ *client.Client, s *holdfast.Selector) error {
			if all {
				return nil
			}
			if s.Where = strings.TrimSpace(s.Where); s.Where != "" {
				s.Where += ", "
			}
			s.Where += "!" + object.LabelPart
			return nil
		},
	}.New(env)
}
