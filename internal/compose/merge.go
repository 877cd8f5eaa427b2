package compose

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/compose-spec/compose-go/v2/interpolation"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/schema"
	"github.com/compose-spec/compose-go/v2/types"
	"sigs.k8s.io/yaml"
)

// merge makes one tree of the files: interpolated, merged, checked against the schema, in the
// long form of each key, with paths made absolute. It holds what the files say and nothing more,
// except that a bind mount in short form says create_host_path: see prune.
func merge(ctx context.Context, d types.ConfigDetails, stack string, said *report) (map[string]any, error) {
	var model map[string]any
	err := guard(d.ConfigFiles, func() error {
		var err error
		model, err = loader.LoadModelWithContext(ctx, d, func(o *loader.Options) {
			// Names, the default network and defaults are the converter's: Compose's own rules
			// differ, and would add keys that are in no file.
			o.SkipNormalization = true
			o.SkipDefaultValues = true
			o.SetProjectName(loader.NormalizeProjectName(stack), true)
			o.Interpolate = &interpolation.Options{
				Substitute:      (&substitution{unset: said.unset}).substitute,
				LookupValue:     d.LookupEnv,
				TypeCastMapping: o.Interpolate.TypeCastMapping,
			}
		})
		return err
	})
	return model, locate(err, d.ConfigFiles, d.LookupEnv)
}

// decode gives the pruned tree its types, and reads env_file and label_file.
func decode(model map[string]any, d types.ConfigDetails) (*types.Project, error) {
	project := &types.Project{WorkingDir: d.WorkingDir, Environment: d.Environment}
	err := guard(d.ConfigFiles, func() error {
		if err := loader.Transform(model, project); err != nil {
			return err
		}
		var err error
		if project, err = project.WithServicesEnvironmentResolved(true); err != nil {
			return hideLines(err)
		}
		project, err = project.WithServicesLabelsResolved(true)
		return hideLines(err)
	})
	return project, err
}

// guard runs a part of compose-go. It takes some types for granted before they are checked, and
// panics where a file has another: that file is at fault, not we.
func guard(files []types.ConfigFile, run func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = blame(files, r)
		}
	}()
	return tidy(run())
}

// blame finds the file and the key that made compose-go panic.
func blame(files []types.ConfigFile, panicked any) error {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Filename
		var raw map[string]any
		if err := yaml.Unmarshal(f.Content, &raw); err != nil {
			return fmt.Errorf("%s: %w", f.Filename, tidy(err))
		}
		if err := schema.Validate(raw); err != nil {
			return fmt.Errorf("validating %s: %w", f.Filename, tidy(err))
		}
	}
	why := "it cannot be read"
	if e, ok := errors.AsType[runtime.Error](asError(panicked)); ok {
		why = e.Error() // about types, never about values
	}
	return fmt.Errorf("%s: not a valid Compose file: %s", strings.Join(names, ", "), why)
}

func asError(v any) error {
	err, _ := v.(error)
	return err
}
