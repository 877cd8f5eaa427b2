package objectapi

import (
	"context"
	"errors"
	"fmt"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/kinds"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// Txn does all operations of a request in one revision, or none.
func (s *Server) Txn(ctx context.Context, r *holdfast.TxnRequest) (*holdfast.TxnResponse, error) {
	if err := checkTxn(r); err != nil {
		return nil, err
	}
	var left []*holdfast.Object
	result, err := s.store.Update(ctx, func(tx *store.Tx) error {
		if err := checkPreconditions(tx, r.Preconditions); err != nil {
			return err
		}
		var err error
		left, err = run(tx, r.Operations)
		return err
	})
	if err != nil {
		return nil, err
	}
	if result.Replayed {
		if left, err = s.replay(r.Operations, result); err != nil {
			return nil, err
		}
	}
	return &holdfast.TxnResponse{Revision: result.Revision, Objects: left}, nil
}

// checkTxn checks what can be checked without the state.
func checkTxn(r *holdfast.TxnRequest) error {
	for _, list := range []struct {
		field  string
		length int
	}{{"operations", len(r.Operations)}, {"preconditions", len(r.Preconditions)}} {
		if list.length > store.MaxOperations {
			return &errkind.Error{
				Kind: errkind.Limit, Field: list.field, Max: fmt.Sprint(store.MaxOperations),
				Msg:  fmt.Sprintf("has %d entries, at most %d are allowed", list.length, store.MaxOperations),
				Hint: "split the transaction",
			}
		}
	}
	if len(r.Operations) == 0 {
		return errkind.Field("operations", "is empty")
	}
	if n := r.Size(); n > store.MaxTransactionBytes {
		return &errkind.Error{
			Kind: errkind.Limit, Field: "operations", Max: "4 MiB",
			Msg: fmt.Sprintf("the request has %d bytes, at most 4 MiB are allowed", n), Hint: "split the transaction",
		}
	}
	for i, p := range r.Preconditions {
		if err := checkPrecondition(fmt.Sprintf("preconditions[%d]", i), p); err != nil {
			return err
		}
	}
	for i, o := range r.Operations {
		if err := checkOperation(fmt.Sprintf("operations[%d]", i), o); err != nil {
			return err
		}
	}
	return nil
}

func checkPrecondition(path string, p *holdfast.Precondition) error {
	k, err := kinds.Of(path+".kind", p.GetKind())
	if err != nil {
		return err
	}
	if p.ID == "" {
		return errkind.Field(path+".id", "is empty").On(k.Noun(), "")
	}
	switch t := p.Test.(type) {
	case nil:
		return errkind.Field(path, "has no test").On(k.Noun(), p.ID).WithHint("give a version, or exists")
	case *holdfast.Precondition_Version:
		if t.Version == 0 {
			return errkind.Field(path+".version", "is 0, which no object has").On(k.Noun(), p.ID).
				WithHint("to ask that the object is not there, use exists: false")
		}
	}
	return nil
}

func checkOperation(path string, o *holdfast.Operation) error {
	switch o.GetOp().(type) {
	case *holdfast.Operation_Create:
		path += ".create"
	case *holdfast.Operation_Update:
		path += ".update"
	case *holdfast.Operation_Remove:
		path += ".remove"
	default:
		return errkind.Field(path, "is empty").WithHint("give one of create, update and remove")
	}
	k, id, err := target(o)
	if err != nil {
		return within(err, path)
	}
	if id == "" && o.GetCreate() == nil {
		return errkind.Field(path+".id", "is empty").On(k.Noun(), "")
	}
	return nil
}

// checkPreconditions tells whether all preconditions hold before the operations.
func checkPreconditions(tx store.ReadTx, preconditions []*holdfast.Precondition) error {
	for i, p := range preconditions {
		path := fmt.Sprintf("preconditions[%d]", i)
		k, err := kinds.Of(path+".kind", p.Kind)
		if err != nil {
			return err
		}
		if err := holds(tx, k, p); err != nil {
			err.Field = path
			return err.WithHint("read the object again and repeat the change")
		}
	}
	return nil
}

// holds tells why a precondition does not hold, or nil.
func holds(tx store.ReadTx, k kinds.Kind, p *holdfast.Precondition) *errkind.Error {
	o := k.Find(tx, p.ID)
	failed := func(format string, args ...any) *errkind.Error {
		e := errkind.New(errkind.OutOfSequence, format, args...).On(k.Noun(), p.ID)
		if o != nil {
			meta := o.GetMeta()
			e.Now = meta.Version.Index
		}
		return e
	}
	switch t := p.Test.(type) {
	case *holdfast.Precondition_Exists:
		switch {
		case t.Exists && o == nil:
			return failed("does not exist, as it was asked to")
		case !t.Exists && o != nil:
			return failed("exists, and was asked not to")
		}
	case *holdfast.Precondition_Version:
		if o == nil {
			e := failed("does not exist; version %d was asked for", t.Version)
			e.Seen = t.Version
			return e
		}
		if meta := o.GetMeta(); meta.Version.Index != t.Version {
			e := failed("out of sequence: it is at revision %d now, not %d", meta.Version.Index, t.Version)
			e.Seen = t.Version
			return e
		}
	}
	return nil
}

// run does the operations and returns what each of them left.
func run(tx *store.Tx, operations []*holdfast.Operation) ([]*holdfast.Object, error) {
	left := make([]*holdfast.Object, len(operations))
	bytes := 0
	for i, operation := range operations {
		k, _, err := target(operation)
		if err != nil {
			return nil, err
		}
		path := fmt.Sprintf("operations[%d]", i)
		switch op := operation.Op.(type) {
		case *holdfast.Operation_Create:
			path += ".create." + k.Noun()
			left[i], err = objects.Create(tx, op.Create)
		case *holdfast.Operation_Update:
			path += ".update.object." + k.Noun()
			left[i], err = objects.Update(tx, op.Update)
		case *holdfast.Operation_Remove:
			path += ".remove"
			left[i], err = objects.Remove(tx, op.Remove)
		}
		if err != nil {
			return nil, within(err, path)
		}
		// A transaction is bounded, but operations that change nothing have a reply too.
		if bytes += left[i].Size(); bytes > maxPageBytes {
			return nil, &errkind.Error{
				Kind: errkind.Limit, Field: "operations", Max: "32 MiB",
				Msg:  "the objects of the operations are more than the 32 MiB that a reply may have",
				Hint: "split the transaction",
			}
		}
	}
	return left, nil
}

// within puts the path of an operation before the field of its error.
func within(err error, path string) error {
	e, ok := errors.AsType[*errkind.Error](err)
	if !ok {
		return err
	}
	at := *e
	if at.Field = path; e.Field != "" {
		at.Field = path + "." + e.Field
	}
	return &at
}
