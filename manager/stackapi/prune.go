package stackapi

import (
	"strings"
	"time"

	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// stagedFor is how long staged secrets and configs wait for a release that names them.
const stagedFor = time.Hour

// pruning says which secrets and configs nothing names any more.
type pruning struct {
	named   map[string]bool // IDs that a release names which stays
	dropped map[string]bool // IDs that only a release named which goes
	before  time.Time       // what is older, and was never named, goes
	keep    bool            // what the stack has and the request does not
	room    int             // for this many changes
}

// prune removes the secrets and configs that no release names which stays, and no service uses.
// What was staged has its time. needed is how many more changes the transaction must have room
// for; what does not fit goes with the next deployment.
func (d *deployment) prune(want *desired, stay, gone []*record, needed int) error {
	p := &pruning{
		named: map[string]bool{}, dropped: map[string]bool{}, before: d.tx.Now().Add(-stagedFor),
		keep: want.keepOthers, room: store.MaxOperations - d.written - needed,
	}
	for _, id := range d.ids {
		p.named[id] = true
	}
	for _, r := range stay {
		r.addObjects(p.named)
	}
	for _, r := range gone {
		r.addObjects(p.dropped)
	}
	if err := pruneKind(d, p, secrets(), want.secrets); err != nil {
		return err
	}
	return pruneKind(d, p, configs(), want.configs)
}

func pruneKind[T objects.Object[T], S any](d *deployment, p *pruning, k kind[T, S], want wanted[S]) error {
	have, err := k.table.FindAll(d.tx, store.ByStack(d.stack))
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for i := range want.specs {
		wanted[strings.ToLower(k.annotations(&want.specs[i]).Name)] = true
	}
	for _, o := range have {
		_, current := k.labels(o)[nameLabel]
		name := strings.ToLower(logical(k.table.Name(o), k.labels(o)))
		switch {
		case p.named[o.GetID()], p.keep && !wanted[name]:
			continue
		case current && !p.dropped[o.GetID()] && !createdAt(o).Before(p.before):
			continue
		}
		used, err := inService(d.tx, k.contents.users(o.GetID()))
		if err != nil {
			return err
		}
		if used {
			continue
		}
		if p.room <= 0 {
			return nil
		}
		if err := removeOne(d, k, o); err != nil {
			return err
		}
		p.room--
	}
	return nil
}

// inService tells whether there is a service that a selector selects.
func inService(tx store.ReadTx, by store.By) (bool, error) {
	found, err := store.Services.Find(tx, by)
	if err != nil {
		return false, err
	}
	for range found {
		return true, nil
	}
	return false, nil
}

func createdAt[T objects.Object[T]](o T) time.Time {
	at := o.GetMeta().CreatedAt
	return time.Unix(at.GetSeconds(), int64(at.GetNanos()))
}
