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
)

// Remove removes every object of a stack.
func (s *Server) Remove(ctx context.Context, r *holdfast.RemoveStackRequest) (*holdfast.RemoveStackResponse, error) {
	if r.Name == "" {
		return nil, errkind.Field("name", "is empty").On("stack", "")
	}
	var changes []*holdfast.StackChange
	result, err := s.store.Update(ctx, func(tx *store.Tx) error {
		d := deployment{tx: tx, stack: r.Name}
		if err := d.removeAll(); err != nil {
			return err
		}
		changes = d.changes
		return nil
	})
	if err != nil {
		return nil, hinted(err, r.Name, hintFewer)
	}
	if result.Replayed {
		changes = s.replay(r.Name, result)
	}
	return &holdfast.RemoveStackResponse{Revision: result.Revision, Changes: sorted(changes)}, nil
}

// hintFewer says what to do about a stack that is too large to be removed at once.
const hintFewer = "deploy it with fewer services first"

// removeAll removes every object of the stack: services, and then what they refer to.
func (d *deployment) removeAll() error {
	var err error
	if d.ownServices, err = idsOf(d.tx, services(), d.stack); err != nil {
		return err
	}
	total := len(d.ownServices)
	for _, of := range []func() (map[string]bool, error){
		func() (map[string]bool, error) { return idsOf(d.tx, networks(), d.stack) },
		func() (map[string]bool, error) { return idsOf(d.tx, secrets(), d.stack) },
		func() (map[string]bool, error) { return idsOf(d.tx, configs(), d.stack) },
	} {
		ids, err := of()
		if err != nil {
			return err
		}
		total += len(ids)
	}
	switch {
	case total == 0:
		return errkind.New(errkind.NotFound, "not found").On("stack", d.stack)
	case total > store.MaxOperations:
		return (&errkind.Error{
			Kind: errkind.Limit, Max: fmt.Sprintf("%d objects", store.MaxOperations), Hint: hintFewer,
			Msg: fmt.Sprintf("has %d objects, and one transaction removes at most %d", total, store.MaxOperations),
		}).On("stack", d.stack)
	}
	if err := removeOthers(d, services(), wanted[api.ServiceSpec]{}); err != nil {
		return err
	}
	if err := removeOthers(d, secrets(), wanted[api.SecretSpec]{}); err != nil {
		return err
	}
	if err := removeOthers(d, configs(), wanted[api.ConfigSpec]{}); err != nil {
		return err
	}
	return removeOthers(d, d.networkKind(), wanted[api.NetworkSpec]{})
}

// idsOf returns the IDs of a stack's objects of a kind.
func idsOf[T objects.Object[T], S any](tx store.ReadTx, k kind[T, S], stack string) (map[string]bool, error) {
	found, err := k.table.Find(tx, store.ByStack(stack))
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for o := range found {
		ids[o.GetID()] = true
	}
	return ids, nil
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
