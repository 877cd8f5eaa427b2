package object

import (
	"io"
	"slices"
	"time"

	"holdfast/release/driver"
)

// Planner computes what is to be done in the store for a change of a record, and does none of
// it: for those who make the change within a transaction of their own, with other changes. It
// may be called from anywhere.
type Planner struct {
	Clock  func() time.Time
	Random io.Reader
}

// Plan is what is to be done for one change.
type Plan struct {
	// Stages are transactions to be done before the last one. Mostly there are none: only a
	// body of more than 3.75 MiB is staged.
	Stages [][]Op
	// Last is to be done in one transaction, together or not with other operations. The first
	// of it is on the head's object.
	Last []Op
	// Head is the head as it will be, but for its version: that of the head's object.
	Head driver.Head
}

// Create plans the creation of a record. It fails as driver.Begin does.
//
// Last fails with errkind.Exists if the key is taken or another revision is deployed.
func (p Planner) Create(r driver.Record) (Plan, error) {
	base, err := driver.Begin(r, p.Clock())
	if err != nil {
		return Plan{}, err
	}
	h := head{Head: base, change: 1}
	chunks, err := p.body(&h, r.Body)
	if err != nil {
		return Plan{}, err
	}
	if err := p.mark(&h, ""); err != nil {
		return Plan{}, err
	}
	plan := Plan{Head: h.Head}
	last := []Op{{Create, Object{Name: headName(h.Key), Labels: h.labels(), Data: headData()}}}
	plan.add(h, chunks, append(last, h.markOps("")...))
	return plan, nil
}

// Update plans an update of the record whose head is in an object, as Store.Get returned it. It
// fails as driver.Next does.
//
// Last fails with errkind.OutOfSequence or errkind.NotFound if the record was changed or
// removed since, and with errkind.Exists if another revision is deployed.
func (p Planner) Update(object Object, version uint64, r driver.Record) (Plan, error) {
	return p.update(object, version, r, nil)
}

// update leaves out the removal of objects that are missing.
func (p Planner) update(object Object, version uint64, r driver.Record, missing []string) (Plan, error) {
	old, err := decodeHead(object)
	if err != nil {
		return Plan{}, err
	}
	base, err := driver.Next(old.Head, version, r, p.Clock())
	if err != nil {
		return Plan{}, err
	}
	h := head{Head: base, id: old.id, upload: old.upload, chunks: old.chunks, change: old.change + 1}
	var chunks, gone []Op
	if r.Body != nil {
		if chunks, err = p.body(&h, r.Body); err != nil {
			return Plan{}, err
		}
		gone = old.chunkRemovals()
	}
	if err := p.mark(&h, old.mark); err != nil {
		return Plan{}, err
	}
	plan := Plan{Head: h.Head}
	last := []Op{{SetLabels, Object{ID: object.ID, Name: object.Name, Version: object.Version, Labels: h.labels()}}}
	last = append(last, h.markOps(old.mark)...)
	plan.add(h, chunks, without(append(last, gone...), missing))
	return plan, nil
}

// Delete plans the removal of the record whose head is in an object, as Store.Get returned it.
// It fails if that is no head.
//
// Last fails with errkind.OutOfSequence or errkind.NotFound if the record was changed or
// removed since.
func (p Planner) Delete(object Object) (Plan, error) { return p.delete(object, nil) }

func (p Planner) delete(object Object, missing []string) (Plan, error) {
	old, err := decodeHead(object)
	if err != nil {
		return Plan{}, err
	}
	ops := []Op{{Remove, Object{ID: object.ID, Name: object.Name, Version: object.Version}}}
	none := head{Head: driver.Head{Key: old.Key}}
	ops = append(ops, none.markOps(old.mark)...)
	return Plan{Last: without(append(ops, old.chunkRemovals()...), missing), Head: old.Head}, nil
}

// body gives a head an upload, and returns the operations that create its chunks.
func (p Planner) body(h *head, body []byte) ([]Op, error) {
	var err error
	if h.upload, err = newID(p.Random); err != nil {
		return nil, driver.On(err, h.Key)
	}
	labels := map[string]string{LabelPart: string(partChunk), labelUpload: h.upload}
	h.chunks = 0
	var ops []Op
	for chunk := range slices.Chunk(body, maxChunk) {
		name := chunkName(h.upload, h.chunks)
		ops = append(ops, Op{Create, Object{ID: idOf(name), Name: name, Labels: labels, Data: chunk}})
		h.chunks++
	}
	return ops, nil
}

// mark gives a head the mark that it needs: the old one if it has that already.
func (p Planner) mark(h *head, old string) error {
	switch {
	case !h.Exclusive():
		h.mark = ""
	case old != "":
		h.mark = old
	default:
		var err error
		if h.mark, err = newID(p.Random); err != nil {
			return driver.On(err, h.Key)
		}
	}
	return nil
}

// markOps turn the old mark of a head into its present one.
func (h head) markOps(old string) []Op {
	name := markName(h.Key)
	switch {
	case h.mark == old:
		return nil
	case h.mark == "":
		return []Op{{Remove, Object{ID: old, Name: name}}}
	}
	return []Op{{Create, Object{
		ID: h.mark, Name: name, Data: headData(),
		Labels: map[string]string{
			LabelPart: string(partMark), labelNamespace: h.Key.Namespace, labelName: h.Key.Name,
		},
	}}}
}

func (h head) chunkRemovals() []Op {
	ops := make([]Op, h.chunks)
	for i := range ops {
		name := chunkName(h.upload, i)
		ops[i] = Op{Remove, Object{ID: idOf(name), Name: name}}
	}
	return ops
}

// add splits the chunks of a body into those that are staged and those that go into the last
// transaction, after what else is in it.
func (p *Plan) add(h head, chunks, last []Op) {
	if len(chunks) > maxChunksOnce {
		name := stageName(h.upload)
		stage := Object{
			ID: idOf(name), Name: name, Data: headData(),
			Labels: map[string]string{LabelPart: string(partStage), labelUpload: h.upload},
		}
		first := []Op{{Create, stage}}
		for len(chunks) > maxChunksOnce {
			p.Stages = append(p.Stages, append(first, chunks[:maxChunksOnce]...))
			first, chunks = nil, chunks[maxChunksOnce:]
		}
		last = append(last, Op{Remove, Object{ID: stage.ID, Name: name}})
	}
	p.Last = append(last, chunks...)
}

// without leaves out operations on objects with these IDs.
func without(ops []Op, ids []string) []Op {
	return slices.DeleteFunc(ops, func(op Op) bool { return op.ID != "" && slices.Contains(ids, op.ID) })
}

// headData is the data of an object that says all in its labels: a store wants some.
func headData() []byte { return []byte("holdfast release\n") }
