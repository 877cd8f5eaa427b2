package stackapi

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/release/driver"
)

// ExportRelease returns the record of a release.
func (s *Server) ExportRelease(ctx context.Context, r *holdfast.ExportReleaseRequest) (*holdfast.ExportReleaseResponse, error) {
	if r.Number == 0 {
		return nil, errkind.Field("number", "is 0, and releases count from 1").On("stack", r.Name)
	}
	tx, all, err := s.releases(ctx, r.Name, false)
	if err != nil {
		return nil, err
	}
	found, err := numbered(all, r.Name, r.Number)
	if err != nil {
		return nil, err
	}
	if s.archive != nil {
		if err := s.archive.fetch(ctx, found); err != nil {
			return nil, err
		}
	}
	body, err := readBody(tx, found)
	if err != nil {
		return nil, driver.On(err, found.Key)
	}
	return &holdfast.ExportReleaseResponse{Revision: tx.Revision(), Record: &holdfast.ReleaseRecord{
		Name: r.Name, Number: r.Number, Status: string(found.Status), Labels: found.portable(), Body: body, Digest: found.Digest,
	}}, nil
}

// ImportRelease adds a release to the history of a stack.
func (s *Server) ImportRelease(ctx context.Context, r *holdfast.ImportReleaseRequest) (*holdfast.ImportReleaseResponse, error) {
	given, err := s.imported(r.Record)
	if err != nil {
		return nil, err
	}
	if s.archive != nil {
		return s.importArchived(ctx, given)
	}
	resp := &holdfast.ImportReleaseResponse{}
	result, err := s.store.Update(ctx, func(tx *store.Tx) error {
		rs, err := openRecords(tx, given.Key.Name, nil)
		if err != nil {
			return err
		}
		*resp = holdfast.ImportReleaseResponse{}
		if resp.Release, err = there(rs.all, given); err != nil || resp.Release != nil {
			return err
		}
		plan, err := rs.create(driver.Record{Head: given.Head, Body: given.body})
		if err != nil {
			return err
		}
		if secretNamed(tx, plan.Last[0].Name) != nil { // it is damaged, and does not tell its number
			return driver.Exists(given.Key)
		}
		resp.Release, resp.Created = given.release(), true
		return rs.do(plan.Last)
	})
	if err != nil {
		return nil, err
	}
	if result.Replayed {
		resp.Release, resp.Created = given.release(), true
	}
	resp.Revision = result.Revision
	return resp, nil
}

// importArchived imports a release into the archive.
func (s *Server) importArchived(ctx context.Context, given *record) (*holdfast.ImportReleaseResponse, error) {
	stack := given.Key.Name
	unlock, err := s.archive.locks.lock(ctx, stack)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for range settleAttempts {
		h, err := s.archive.settle(ctx, stack)
		if err != nil {
			return nil, err
		}
		have, err := there(h.all(), given)
		if err != nil || have != nil {
			return &holdfast.ImportReleaseResponse{Revision: h.tx.Revision(), Release: have}, err
		}
		err = s.archive.take(ctx, h.tx, step{head: given.Head, body: given.body})
		switch {
		case err == nil:
			return &holdfast.ImportReleaseResponse{Revision: h.tx.Revision(), Release: given.release(), Created: true}, nil
		case !outrun(err):
			return nil, s.archive.failed(err, stack)
		}
	}
	return nil, busy(stack)
}

// there returns the release that is there under a record's number, or nil. It fails with
// errkind.Exists if that is another one.
func there(all []*record, given *record) (*holdfast.Release, error) {
	at := slices.IndexFunc(all, func(r *record) bool { return r.Key == given.Key })
	if at < 0 {
		return nil, nil
	}
	if have := all[at]; have.Digest != given.Digest {
		return nil, errkind.New(errkind.Exists, "has another release %d already", given.number()).On("stack", given.Key.Name).
			WithHint("releases that came after others cannot take their numbers; leave this one out")
	}
	return all[at].release(), nil
}

// imported checks a record that is to be imported. What cannot be true of it here is changed: of
// what is deployed, only the store decides.
func (s *Server) imported(given *holdfast.ReleaseRecord) (*record, error) {
	if given == nil {
		return nil, errkind.Field("record", "is missing")
	}
	if err := checkStackName(given.Name); err != nil {
		return nil, inField(err, "record")
	}
	refuse := func(field, format string, args ...any) error {
		return errkind.Field("record."+field, format, args...).On("stack", given.Name)
	}
	if given.Number == 0 || given.Number > math.MaxInt64 {
		return nil, refuse("number", "is %d, which no release has", given.Number)
	}
	for _, key := range slices.Sorted(maps.Keys(given.Labels)) {
		if !slices.Contains(ownLabels(), key) && !strings.HasPrefix(key, labelObjects) {
			return nil, refuse("labels", "%.80q is not known", key)
		}
	}
	head, err := driver.Begin(driver.Record{
		Head: driver.Head{
			Key:  driver.Key{Namespace: recordNamespace, Name: given.Name, Revision: int64(given.Number)},
			Kind: recordKind, Status: driver.Status(given.Status), Labels: given.Labels,
		},
		Body: given.Body,
	}, time.Time{})
	if err != nil {
		return nil, inField(err, "record")
	}
	if head.Digest != given.Digest {
		return nil, refuse("digest", "is %.80q, and that of the body is %s", given.Digest, head.Digest)
	}
	switch {
	case head.Status == driver.StatusDeployed, head.Status == driver.StatusUninstalling:
		head.Status = driver.StatusSuperseded
	case head.Status.Pending():
		head.Status = driver.StatusFailed
	}
	r := &record{Head: head, body: given.Body}
	r.revision = r.count(labelRevision)
	request, _, err := s.request(nil, r)
	if err != nil {
		return nil, refuse("body", "%v", err)
	}
	if request.Name != given.Name {
		return nil, refuse("body", "is of the stack %q", request.Name)
	}
	return r, nil
}

// ownLabels are the labels that records have, but for those with numbers.
func ownLabels() []string {
	return []string{
		labelActor, labelMessage, labelCreated, labelUpdated, labelRemoved, labelRollbackOf, labelContent,
		labelAt, labelRevision,
	}
}
