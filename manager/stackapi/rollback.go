package stackapi

import (
	"context"
	"errors"
	"fmt"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/release/driver"
	"holdfast/release/storage"
)

// Rollback deploys again what a release did, as a new release.
func (s *Server) Rollback(ctx context.Context, r *holdfast.RollbackRequest) (*holdfast.DeployResponse, error) {
	if r.Name == "" {
		return nil, errkind.Field("name", "is empty").On("stack", "")
	}
	var expect *uint64
	if e, ok := r.Expect.(*holdfast.RollbackRequest_ExpectRelease); ok {
		expect = &e.ExpectRelease
	}
	run := func(d *deployment) error {
		if err := d.expected(expect); err != nil {
			return err
		}
		source, err := d.pick(r.Number)
		if err != nil {
			return err
		}
		request, content, err := s.request(d.tx, source)
		if err != nil {
			return err
		}
		request.Compose = content.Compose
		want, err := s.prepare(request)
		if err != nil {
			return again(err, source.number())
		}
		want.rollbackOf = source.number()
		if want.maxHistory = int(r.MaxHistory); want.maxHistory == 0 {
			want.maxHistory = storage.DefaultMaxHistory
		}
		d.source, d.sourceIDs = source.number(), map[string]bool{}
		source.addObjects(d.sourceIDs)
		return again(d.run(want), d.source)
	}
	return s.deploy(ctx, change{stack: r.Name, dry: r.DryRun, run: run, source: func(h *holdings) *record {
		found, err := pick(h.all(), r.Name, r.Number)
		if err != nil { // the transaction tells it
			return nil
		}
		return found
	}})
}

// pick returns the release to go back to: the one with a number or, for 0, the last one that was
// deployed before the present one.
func (d *deployment) pick(n uint64) (*record, error) {
	if len(d.records.all) == 0 {
		there, err := size(d.tx, d.stack)
		switch {
		case err != nil:
			return nil, err
		case there == 0:
			return nil, notFound(d.stack)
		}
	}
	return pick(d.records.all, d.stack, n)
}

func pick(all []*record, stack string, n uint64) (*record, error) {
	if n != 0 {
		return numbered(all, stack, n)
	}
	deployed := deployedOf(all)
	if deployed == nil {
		return nil, errkind.New(errkind.Refused, "no release is deployed, so none is before it").On("stack", stack).
			WithHint("give the number of the release to deploy")
	}
	var found *record
	for _, r := range all {
		if r.Status == driver.StatusSuperseded && r.number() < deployed.number() {
			found = r
		}
	}
	if found == nil {
		return nil, errkind.New(errkind.NotFound, "has no release before release %d that was deployed", deployed.number()).
			On("stack", stack).WithHint("its history tells which releases there are")
	}
	return found, nil
}

// again makes of the error of a request, which was right when it was deployed first, one of the
// state that it does not fit any more.
func again(err error, release uint64) error {
	e, ok := errors.AsType[*errkind.Error](err)
	if !ok || e.Kind != errkind.Invalid {
		return err
	}
	at := *e
	at.Kind, at.Msg = errkind.Refused, fmt.Sprintf("%s; so release %d cannot be deployed again", e.Msg, release)
	return &at
}
