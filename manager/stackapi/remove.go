package stackapi

import (
	"context"
	"fmt"
	"strings"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
)

// Remove removes every object of a stack.
func (s *Server) Remove(ctx context.Context, r *holdfast.RemoveStackRequest) (*holdfast.RemoveStackResponse, error) {
	if r.Name == "" {
		return nil, errkind.Field("name", "is empty").On("stack", "")
	}
	d, result, err := s.change(ctx, change{
		stack: r.Name, run: func(d *deployment) error { return d.removeAll(r.KeepHistory) },
	})
	if err != nil {
		return nil, hinted(err, r.Name, hintFewer)
	}
	changes := d.changes
	if result.Replayed {
		changes, _ = s.replay(ctx, r.Name, result)
	}
	return &holdfast.RemoveStackResponse{Revision: result.Revision, Changes: sorted(changes)}, nil
}

// hintFewer says what to do about a stack that is too large to be removed at once.
const hintFewer = "deploy it with fewer services, secrets and configs first, and with a history of 1"

// removeAll removes every object of the stack: services, then what they refer to, and then the
// records of releases, unless they are kept.
func (d *deployment) removeAll(keepHistory bool) error {
	there, err := size(d.tx, d.stack)
	if err != nil {
		return err
	}
	if there == 0 && len(d.records.all) == 0 {
		return notFound(d.stack)
	}
	if d.ownServices, err = idsOf(d.tx, services(), d.stack); err != nil {
		return err
	}
	named := map[string]bool{}
	var history []object.Op
	if keepHistory {
		for _, r := range d.records.all {
			r.addObjects(named)
		}
	} else if history, err = d.historyRemoval(); err != nil {
		return err
	} else if d.claim = d.records.holdings.uninstalling(); d.claim == nil {
		d.gone = d.records.all
	}
	kept, err := d.countOf(named)
	if err != nil {
		return err
	}
	if total := there - kept + len(history); total > store.MaxOperations {
		return (&errkind.Error{
			Kind: errkind.Limit, Max: fmt.Sprintf("%d objects", store.MaxOperations), Hint: hintFewer,
			Msg: fmt.Sprintf("has %d objects, and one transaction removes at most %d", total, store.MaxOperations),
		}).On("stack", d.stack)
	}
	for _, step := range []func() error{
		func() error { return removeOthers(d, services(), wanted[api.ServiceSpec]{}, false) },
		func() error { return removeContents(d, secrets(), named) },
		func() error { return removeContents(d, configs(), named) },
		func() error { return removeOthers(d, d.networkKind(), wanted[api.NetworkSpec]{}, false) },
		func() error { return d.records.do(history) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if deployed := d.deployed(); keepHistory && deployed != nil {
		return d.records.setStatus(deployed, driver.StatusUninstalled)
	}
	return nil
}

// countOf returns how many of the stack's secrets and configs are among some.
func (d *deployment) countOf(named map[string]bool) (int, error) {
	total := 0
	for _, of := range []func() (map[string]bool, error){
		func() (map[string]bool, error) { return idsOf(d.tx, secrets(), d.stack) },
		func() (map[string]bool, error) { return idsOf(d.tx, configs(), d.stack) },
	} {
		ids, err := of()
		if err != nil {
			return 0, err
		}
		for id := range ids {
			if named[id] {
				total++
			}
		}
	}
	return total, nil
}

// removeContents removes the stack's secrets or configs, but for those that a release names.
func removeContents[T objects.Object[T], S any](d *deployment, k kind[T, S], named map[string]bool) error {
	have, err := k.table.FindAll(d.tx, store.ByStack(d.stack))
	if err != nil {
		return err
	}
	for _, o := range have {
		if named[o.GetID()] {
			continue
		}
		if err := removeOne(d, k, o); err != nil {
			return err
		}
	}
	return nil
}

// historyRemoval plans the removal of all records of the stack.
func (d *deployment) historyRemoval() ([]object.Op, error) {
	var all []object.Op
	planned := map[string]bool{}
	add := func(ops []object.Op, err error) error {
		for _, op := range ops {
			if !planned[op.ID] {
				all, planned[op.ID] = append(all, op), true
			}
		}
		return err
	}
	for _, r := range d.records.all {
		if err := add(d.records.removal(r)); err != nil {
			return nil, err
		}
	}
	return all, add(d.records.leftMarks(d.stack))
}

// networkKind is networks with a removal that the tasks of the stack's own services do not
// stand in the way of. No service refers to the network any more, so they are about to end;
// but they cannot end before the transaction that changes or removes their services.
func (d *deployment) networkKind() kind[*api.Network, api.NetworkSpec] {
	k := networks()
	k.remove = func(tx *store.Tx, id string) (*api.Network, error) {
		n, err := objects.RemoveNetwork(tx, id)
		if !errkind.Is(err, errkind.Refused) {
			return n, err
		}
		if n = store.Networks.Get(tx, id); n.Spec.Ingress {
			return nil, err
		}
		users, findErr := store.Services.FindAll(tx, store.ByNetworkID(id))
		if findErr != nil || len(users) > 0 {
			return nil, err
		}
		tasks, findErr := d.strangers(tx, id)
		switch {
		case findErr != nil:
			return nil, findErr
		case tasks == nil:
			return nil, err
		case len(tasks) > 0:
			return nil, inUse(tasks)
		}
		return store.Networks.Delete(tx, id)
	}
	return k
}

// strangers returns the names of the tasks that may run in a network and are not of the
// stack's own services; nil if no task at all may run in it.
func (d *deployment) strangers(tx store.ReadTx, networkID string) ([]string, error) {
	tasks, err := store.Tasks.Find(tx, store.ByNetworkID(networkID))
	if err != nil {
		return nil, err
	}
	var names []string
	for t := range tasks {
		if t.DesiredState > api.TaskState_RUNNING || t.Status.State > api.TaskState_RUNNING {
			continue
		}
		if names == nil {
			names = []string{}
		}
		if !d.ownServices[t.ServiceID] {
			names = append(names, store.TaskName(t))
		}
	}
	return names, nil
}

// maxUsers is how many users an error names.
const maxUsers = 5

func inUse(tasks []string) error {
	more := ""
	if n := len(tasks) - maxUsers; n > 0 {
		tasks, more = tasks[:maxUsers], fmt.Sprintf(" and %d more", n)
	}
	return errkind.New(errkind.Refused, "is in use by the tasks %s%s", strings.Join(tasks, ", "), more).
		WithHint("wait until these tasks have ended, or remove them")
}
