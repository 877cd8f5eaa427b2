package stackapi

import (
	"fmt"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
)

// release removes secrets and configs that nothing names any more, and writes the release,
// unless nothing differs from the one that is deployed.
func (d *deployment) release(want *desired) error {
	deployed := d.deployed()
	digest := d.contentDigest(want)
	if d.written == 0 && deployed != nil && deployed.Labels[labelContent] == digest {
		d.number = deployed.number()
		return d.prune(want, d.records.all, nil, 0)
	}
	body, err := d.body(want)
	if err != nil {
		return err
	}
	r := driver.Record{Head: driver.Head{Kind: recordKind, Status: driver.StatusDeployed}, Body: body}
	plan, err := d.records.plan(d.stack, r)
	if err != nil {
		return err
	}
	t, err := d.turnOver(want.maxHistory, len(plan.Last))
	if err != nil {
		return err
	}
	if err := d.prune(want, t.stay, t.gone, t.needed); err != nil {
		return err
	}
	d.introduce()
	if r.Labels, err = d.labels(want, digest); err != nil {
		return err
	}
	if plan, err = d.records.plan(d.stack, r); err != nil {
		return err
	}
	r.Head = plan.Head
	d.number = uint64(r.Key.Revision) //nolint:gosec // it counts from 1
	d.claim = d.records.pending(r, want.rollbackOf != 0)
	d.gone = t.gone
	return d.write(plan, t)
}

// introduce tells of secrets and configs that no release has named before as created: they were
// staged for this one.
func (d *deployment) introduce() {
	named := map[string]bool{}
	for _, r := range d.records.all {
		r.addObjects(named)
	}
	for _, c := range d.changes {
		if c.Action == holdfast.StackChange_UNCHANGED && d.found[c.ID] && !named[c.ID] {
			c.Action = holdfast.StackChange_CREATED
		}
	}
}

// turnover is what becomes of the records of a stack when another release is deployed.
type turnover struct {
	stay   []*record // but that one of them is retired
	gone   []*record // they are too many
	left   []*record // of those that stay: these leave the store, since the archive has them
	needed int       // changes that all of this takes, with the new record
}

// turnOver picks the oldest records, beside the new one, that are too many. It picks no more than
// the transaction has room for: the next deployment removes the rest. added is how many changes
// the new one takes.
func (d *deployment) turnOver(most, added int) (turnover, error) {
	t := turnover{needed: added}
	for _, r := range d.records.all {
		if r.Status != driver.StatusDeployed {
			continue
		}
		n, err := d.records.retiring(r)
		if err != nil {
			return t, err
		}
		t.needed += n
	}
	if d.written+t.needed > store.MaxOperations {
		return t, (&errkind.Error{
			Kind: errkind.Limit, Max: fmt.Sprintf("%d objects", store.MaxOperations),
			Msg: fmt.Sprintf("the deployment changes %d objects, and its release takes %d more: "+
				"together more than %d objects", d.written, t.needed, store.MaxOperations),
			Hint: hintParts,
		}).On("stack", d.stack)
	}
	surplus := len(d.records.all) + 1 - most
	full := false
	for i, r := range d.records.all {
		leaves := d.records.archived() && r.Status != driver.StatusDeployed && r.damaged == nil
		if i >= surplus && !leaves || full {
			t.stay = append(t.stay, r)
			continue
		}
		ops, err := d.records.removal(r)
		if err != nil {
			return t, err
		}
		if d.written+t.needed+len(ops) > store.MaxOperations {
			full = true
			t.stay = append(t.stay, r)
			continue
		}
		t.needed += len(ops)
		if i >= surplus {
			t.stay, t.left = append(t.stay, r), append(t.left, r)
			continue
		}
		t.gone = append(t.gone, r)
	}
	return t, nil
}

// write writes the record of the release. Its head comes before all else that is of releases:
// a replay tells by it where the stack's own objects end.
func (d *deployment) write(plan object.Plan, t turnover) error {
	for _, op := range plan.Last {
		d.bytes += len(op.Data)
	}
	if err := d.records.do(plan.Last[:1]); err != nil {
		return err
	}
	for _, r := range t.stay {
		if r.Status == driver.StatusDeployed {
			if err := d.records.retire(r); err != nil {
				return err
			}
		}
	}
	for _, some := range [][]*record{t.left, t.gone} {
		for _, r := range some {
			if err := d.records.remove(r); err != nil {
				return err
			}
		}
	}
	return d.records.do(plan.Last[1:])
}
