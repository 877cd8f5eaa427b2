package stackapi

import (
	"context"
	"fmt"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// hintStage says what to do about secrets and configs that are too large to be stored at once.
const hintStage = "stage some of them at a time"

// Stage stores secrets and configs that a later Deploy is to name.
func (s *Server) Stage(ctx context.Context, r *holdfast.StageRequest) (*holdfast.StageResponse, error) {
	if err := checkStackName(r.Name); err != nil {
		return nil, err
	}
	if len(r.Secrets)+len(r.Configs) == 0 {
		return nil, errkind.Field("secrets", "is empty, and so is configs").On("stack", r.Name)
	}
	var errs [2]error
	var want desired
	want.secrets, errs[0] = prepareContents(secrets(), r.Name, r.Secrets, nil, nil)
	want.configs, errs[1] = prepareContents(configs(), r.Name, r.Configs, nil, nil)
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	var resp *holdfast.StageResponse
	result, err := s.store.Update(ctx, func(tx *store.Tx) error {
		resp = &holdfast.StageResponse{Secrets: map[string]string{}, Configs: map[string]string{}}
		if err := stage(tx, secrets(), r.Name, want.secrets, resp.Secrets); err != nil {
			return err
		}
		return stage(tx, configs(), r.Name, want.configs, resp.Configs)
	})
	if err != nil {
		return nil, hinted(err, r.Name, hintStage)
	}
	if result.Replayed {
		if resp, err = s.staged(r.Name, &want, result); err != nil {
			return nil, err
		}
	}
	resp.Revision = result.Revision
	return resp, nil
}

// stage finds or creates what is wanted of one kind, and notes the names of the objects. The
// labels of what is there are left to the deployment.
func stage[T objects.Object[T], S any](
	tx *store.Tx, k kind[T, S], stack string, want wanted[S], names map[string]string,
) error {
	have, err := shelve(tx, k, stack)
	if err != nil {
		return err
	}
	var zero T
	for i := range want.specs {
		spec := &want.specs[i]
		o := find(have, k, spec)
		if o == zero {
			if o, err = createContent(tx, k, fmt.Sprintf("%s[%d]", k.field, i), spec, want.suffixes[i]); err != nil {
				return err
			}
		}
		names[k.annotations(spec).Name] = k.table.Name(o)
	}
	return nil
}

// staged tells what a call of before has stored.
func (s *Server) staged(stack string, want *desired, result store.Result) (*holdfast.StageResponse, error) {
	tx, err := objects.PastTx(s.store, result.Revision)
	if err != nil {
		return nil, err
	}
	resp := &holdfast.StageResponse{Secrets: map[string]string{}, Configs: map[string]string{}}
	if err := findAll(tx, secrets(), stack, want.secrets, result, resp.Secrets); err != nil {
		return nil, err
	}
	return resp, findAll(tx, configs(), stack, want.configs, result, resp.Configs)
}

func findAll[T objects.Object[T], S any](
	tx store.ReadTx, k kind[T, S], stack string, want wanted[S], result store.Result, names map[string]string,
) error {
	have, err := shelve(tx, k, stack)
	if err != nil {
		return err
	}
	var zero T
	for i := range want.specs {
		name := k.annotations(&want.specs[i]).Name
		o := find(have, k, &want.specs[i])
		if o == zero {
			e := errkind.New(errkind.OutOfRange,
				"was stored before, at revision %d, and is not there any more", result.Revision)
			e.Seen, e.Now = result.Revision, tx.Revision()
			return e.On(k.table.Noun(), name).WithHint("stage it with a new request ID")
		}
		names[name] = k.table.Name(o)
	}
	return nil
}
