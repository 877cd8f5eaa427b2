package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/cmd/ctl/internal/command"
	"holdfast/internal/apijson"
	"holdfast/internal/descriptors"
	"holdfast/internal/errkind"
)

func newImport(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "import [flags] FILE|-",
		Short: "Add releases that \"stack export\" wrote to the histories of stacks",
		Long: "Add releases that \"stack export\" wrote to the histories of stacks. Nothing is deployed by it: what\n" +
			"is not the deployed release of this cluster becomes superseded. Those that are there already stay\n" +
			"as they are, so it can be done again. Import before the next deployment: that removes secrets and\n" +
			"configs that no release names.",
		Args: command.ExactArgs(1),
		RunE: env.RunLong(func(ctx context.Context, c *client.Client, args []string) error {
			return runImport(ctx, env, c, args[0])
		}),
	}
}

func runImport(ctx context.Context, env *command.Env, c *client.Client, name string) (err error) {
	in := env.Streams.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was only read
		in = f
	}
	files, err := descriptors.New()
	if err != nil {
		return err
	}
	converter := apijson.New(files)
	lines := json.NewDecoder(in)
	for n := 1; ; n++ {
		var line json.RawMessage
		if err := lines.Decode(&line); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return errkind.Field(fmt.Sprintf("%s[%d]", name, n), "%v", err)
		}
		record := &holdfast.ReleaseRecord{}
		if err := converter.Unmarshal(line, record); err != nil {
			return errkind.Field(fmt.Sprintf("%s[%d]", name, n), "%v", err).WithHint("give a file that \"stack export\" wrote")
		}
		if err := importRelease(ctx, env, c, record); err != nil {
			return err
		}
	}
}

func importRelease(ctx context.Context, env *command.Env, c *client.Client, record *holdfast.ReleaseRecord) error {
	done, err := c.Stacks().ImportRelease(ctx, &holdfast.ImportReleaseRequest{Record: record})
	if err != nil {
		return err
	}
	said := "was there already"
	if done.Created {
		said = "imported"
	}
	return env.Printf("release %d of %s %s, %s", record.Number, record.Name, said, done.Release.GetStatus())
}
