package task

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/cmd/ctl/internal/kinds"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
)

type lsOptions struct {
	services []string
}

func newLs(env *command.Env) *cobra.Command {
	o := &lsOptions{}
	return command.Ls[*api.Task]{Kind: kinds.Tasks(), Flags: o.flags, Narrow: o.narrow}.New(env)
}

func (o *lsOptions) flags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.services, "service", nil, "only tasks of this service, by `NAME|ID`; several are alternatives")
}

// narrow lets the selector pick tasks of the services only.
func (o *lsOptions) narrow(ctx context.Context, c *client.Client, selected *holdfast.Selector) error {
	for _, name := range o.services {
		s, err := kinds.Services().Resolve(ctx, c, name)
		switch {
		case err == nil:
			selected.ServiceIDs = append(selected.ServiceIDs, s.ID)
		case errkind.Is(err, errkind.NotFound) && id.Valid(name):
			// A service that was removed may have left tasks.
			selected.ServiceIDs = append(selected.ServiceIDs, name)
		default:
			return err
		}
	}
	return nil
}
