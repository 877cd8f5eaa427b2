package stackapi

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
)

// The keys of records are stacks/STACK.vNUMBER.
const (
	recordNamespace = "stacks"
	recordKind      = "stack"
)

// record is the record of a release.
type record struct {
	driver.Head
	object   object.Object // in the store; without a name if only the archive has it
	body     []byte        // nil if it was not read
	revision uint64        // of the store, that it was created at
	// damaged tells why the head cannot be read. Of it there is the key then, and of that the
	// revision may be 0.
	damaged error
}

// records reads and writes the records of one stack's releases in the store itself, as secrets,
// in the form of release/driver/object. With an archive, which keeps them all, the store has
// only the newest that was deployed.
type records struct {
	tx       *store.Tx
	all      []*record // the oldest first, as they were when the transaction began
	holdings *holdings // nil if there is no archive
}

// openRecords reads the heads of a stack's records. With an archive they are what was read
// before, and it fails with errMoved if the store has others by now.
func openRecords(tx *store.Tx, stack string, h *holdings) (records, error) {
	all, err := readRecords(tx, stack)
	if err != nil || h == nil {
		return records{tx: tx, all: all}, err
	}
	if !slices.EqualFunc(all, h.kept, (*record).unmoved) {
		return records{}, errMoved
	}
	return records{tx: tx, all: h.all(), holdings: h}, nil
}

// archived tells whether there is an archive.
func (rs records) archived() bool { return rs.holdings != nil }

// unmoved tells whether two records are the same object, in one version.
func (r *record) unmoved(o *record) bool {
	return r.object.ID == o.object.ID && r.object.Version == o.object.Version
}

// stored tells whether the store has the record.
func (r *record) stored() bool { return r.object.Name != "" }

// readRecords returns the heads of a stack's records, the oldest first. It reads no body.
func readRecords(tx store.ReadTx, stack string) ([]*record, error) {
	found, err := heads(tx, store.ByRelease(stack))
	if err != nil {
		return nil, err
	}
	var all []*record
	for o, key := range found {
		all = append(all, readRecord(o, key))
	}
	slices.SortFunc(all, (*record).compare)
	return all, nil
}

// compare orders the records of a stack, the oldest first.
func (r *record) compare(o *record) int {
	return cmp.Or(cmp.Compare(r.Key.Revision, o.Key.Revision), cmp.Compare(r.object.ID, o.object.ID))
}

// newestRecords returns the head of each stack's newest record.
func newestRecords(tx store.ReadTx) (map[string]*record, error) {
	found, err := heads(tx, store.ByNamePrefix(object.Heads))
	if err != nil {
		return nil, err
	}
	type head struct {
		secret *api.Secret
		key    driver.Key
	}
	newest := map[string]head{}
	for o, key := range found {
		if have, ok := newest[key.Name]; !ok || key.Revision > have.key.Revision {
			newest[key.Name] = head{o, key}
		}
	}
	all := make(map[string]*record, len(newest))
	for name, h := range newest {
		all[name] = readRecord(h.secret, h.key)
	}
	return all, nil
}

// heads goes through those heads of stacks' records that a selector selects.
func heads(tx store.ReadTx, by store.By) (iter.Seq2[*api.Secret, driver.Key], error) {
	found, err := store.Secrets.Find(tx, by)
	if err != nil {
		return nil, err
	}
	return func(yield func(*api.Secret, driver.Key) bool) {
		for o := range found {
			p, ok := object.PartOf(o.Spec.Annotations.Labels)
			if ok && p.Head && p.Key.Namespace == recordNamespace && !yield(o, p.Key) {
				return
			}
		}
	}, nil
}

func readRecord(o *api.Secret, key driver.Key) *record {
	r := &record{
		object: object.Object{
			ID: o.ID, Name: o.Spec.Annotations.Name, Version: o.Meta.Version.Index, Labels: o.Spec.Annotations.Labels,
		},
	}
	if r.Head, r.damaged = object.ReadHead(r.object); r.damaged != nil {
		r.Head = driver.Head{Key: key, Status: driver.StatusUnknown}
	}
	r.revision = cmp.Or(r.count(labelRevision), o.Meta.CreatedVersion.Index)
	return r
}

// readBody reads the body of a record that the store has, or whose body was read.
func readBody(tx store.ReadTx, r *record) ([]byte, error) {
	switch {
	case r.damaged != nil:
		return nil, r.damaged
	case r.body != nil:
		return r.body, nil
	}
	return object.ReadBody(r.object, func(name string) ([]byte, bool) {
		o := secretNamed(tx, name)
		return o.GetSpec().Data, o != nil
	})
}

func secretNamed(tx store.ReadTx, name string) *api.Secret {
	o, err := secrets().named(tx, name)
	if err != nil { // cannot be: names of secrets are unique
		return nil
	}
	return o
}

func (rs records) planner() object.Planner {
	return object.Planner{Clock: rs.tx.Now, Random: randomIDs{rs.tx}}
}

// randomIDs reads bytes that come from the IDs that the transaction makes: they are as random,
// and where those are the same in each run, these are too.
type randomIDs struct{ tx *store.Tx }

// Read implements io.Reader.
func (r randomIDs) Read(p []byte) (int, error) {
	sum := sha256.Sum256([]byte(r.tx.NewID()))
	return copy(p, sum[:]), nil
}

// plan plans the creation of a record, as the next one of the stack.
func (rs records) plan(stack string, r driver.Record) (object.Plan, error) {
	r.Key = driver.Key{Namespace: recordNamespace, Name: stack, Revision: 1}
	if n := len(rs.all); n > 0 {
		r.Key.Revision = rs.all[n-1].Key.Revision + 1
	}
	for {
		plan, err := rs.create(r)
		if err != nil {
			return object.Plan{}, err
		}
		// One that is damaged may not tell its number, and has the name.
		if secretNamed(rs.tx, plan.Last[0].Name) == nil {
			return plan, nil
		}
		r.Key.Revision++
	}
}

// create plans the creation of a record in one transaction.
func (rs records) create(r driver.Record) (object.Plan, error) {
	plan, err := rs.planner().Create(r)
	if err == nil && len(plan.Stages) > 0 {
		err = (&errkind.Error{
			Kind: errkind.Limit, Max: "3.75 MiB",
			Msg:  fmt.Sprintf("its record has %d bytes, and one transaction has no room for it", plan.Head.Size),
			Hint: "deploy the stack as several stacks, or with a shorter Compose file",
		}).On("release", plan.Head.Key.String())
	}
	return plan, err
}

// retire makes room for another record that is deployed: this one becomes superseded or, if the
// archive has it, leaves the store.
func (rs records) retire(r *record) error {
	if !rs.archived() {
		return rs.setStatus(r, driver.StatusSuperseded)
	}
	return rs.remove(r)
}

// retiring is how many changes it takes to retire a record.
func (rs records) retiring(r *record) (int, error) {
	if !rs.archived() {
		return 2, nil // the head, and the mark that it loses
	}
	ops, err := rs.removal(r)
	return len(ops), err
}

// remove removes a record from the store.
func (rs records) remove(r *record) error {
	ops, err := rs.removal(r)
	if err != nil {
		return err
	}
	return rs.do(ops)
}

// setStatus changes the status of a record.
func (rs records) setStatus(r *record, status driver.Status) error {
	h := r.Head
	h.Status = status
	plan, err := rs.planner().Update(r.object, r.object.Version, driver.Record{Head: h})
	if err != nil {
		return err
	}
	return rs.do(plan.Last)
}

// removal plans the removal of a record from the store.
func (rs records) removal(r *record) ([]object.Op, error) {
	if !r.stored() {
		return nil, nil
	}
	if r.damaged == nil {
		plan, err := rs.planner().Delete(r.object)
		return plan.Last, err
	}
	ops := []object.Op{{Do: object.Remove, Object: r.object}}
	damaged, _ := object.PartOf(r.object.Labels)
	if damaged.Upload == "" {
		return ops, nil
	}
	return rs.appendParts(ops, store.ByNamePrefix(object.Names), func(p object.Part) bool { return !p.Head && p.Upload == damaged.Upload })
}

// leftMarks plans the removal of marks of a stack that has no record any more.
func (rs records) leftMarks(stack string) ([]object.Op, error) {
	key := driver.Key{Namespace: recordNamespace, Name: stack}
	return rs.appendParts(nil, store.ByRelease(stack), func(p object.Part) bool { return p.Mark && p.Key == key })
}

// appendParts appends the removal of those parts of records that are selected and picked.
func (rs records) appendParts(ops []object.Op, by store.By, pick func(object.Part) bool) ([]object.Op, error) {
	found, err := store.Secrets.Find(rs.tx, by)
	if err != nil {
		return nil, err
	}
	for o := range found {
		if p, ok := object.PartOf(o.Spec.Annotations.Labels); ok && pick(p) {
			ops = append(ops, object.Op{Do: object.Remove, Object: object.Object{ID: o.ID, Name: o.Spec.Annotations.Name}})
		}
	}
	return ops, nil
}

// do carries out operations that were planned in this transaction. What is to be removed may be
// gone already, and a mark that is in the way is of no record that can be read.
func (rs records) do(ops []object.Op) error {
	for _, op := range ops {
		spec := api.SecretSpec{Annotations: api.Annotations{Name: op.Name, Labels: op.Labels}, Data: op.Data}
		var err error
		switch op.Do {
		case object.Create:
			if other := secretNamed(rs.tx, op.Name); other != nil {
				if p, ok := object.PartOf(other.Spec.Annotations.Labels); ok && p.Mark {
					if _, err := objects.RemoveSecret(rs.tx, other.ID); err != nil {
						return err
					}
				}
			}
			_, err = objects.Create(rs.tx, objects.Wrap(&api.Secret{ID: op.ID, Spec: spec}))
		case object.SetLabels:
			_, err = objects.UpdateSecret(rs.tx, op.ID, &api.Version{Index: op.Version}, &spec)
		case object.Remove:
			if _, err = objects.RemoveSecret(rs.tx, op.ID); errkind.Is(err, errkind.NotFound) {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
