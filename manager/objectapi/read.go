package objectapi

import (
	"context"
	"fmt"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/kinds"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
)

// maxReads is how many operations a Read has at most.
const maxReads = 64

// Read does several reads at one revision.
func (s *Server) Read(ctx context.Context, r *holdfast.ReadRequest) (*holdfast.ReadResponse, error) {
	if err := checkRead(r); err != nil {
		return nil, err
	}
	tx, err := s.reader.Read(ctx)
	if err != nil {
		return nil, err
	}
	resp := &holdfast.ReadResponse{Revision: tx.Revision(), Results: make([]*holdfast.ReadResult, len(r.Operations))}
	bytes := 0
	for i, operation := range r.Operations {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		result, size, err := s.readOne(tx, operation)
		if err != nil {
			return nil, within(err, readPath(i, operation))
		}
		if bytes += size; bytes > s.pageBytes && i > 0 {
			return nil, &errkind.Error{
				Kind: errkind.Limit, Field: readPath(i, operation), Max: "32 MiB",
				Msg:  "with what comes before it, it has more than the 32 MiB of objects that a reply may have",
				Hint: "give the lists a limit, or read less at once",
			}
		}
		resp.Results[i] = result
	}
	return resp, nil
}

// checkRead checks what can be checked without the state.
func checkRead(r *holdfast.ReadRequest) error {
	if n := len(r.Operations); n > maxReads {
		return &errkind.Error{
			Kind: errkind.Limit, Field: "operations", Max: fmt.Sprint(maxReads),
			Msg:  fmt.Sprintf("has %d entries, at most %d are allowed", n, maxReads),
			Hint: "split the request",
		}
	}
	if len(r.Operations) == 0 {
		return errkind.Field("operations", "is empty")
	}
	for i, operation := range r.Operations {
		path := readPath(i, operation)
		switch op := operation.GetOp().(type) {
		case *holdfast.ReadOperation_Get:
			if _, err := named(op.Get.GetKind(), op.Get.GetID(), op.Get.GetName()); err != nil {
				return within(err, path)
			}
		case *holdfast.ReadOperation_List:
			if _, err := kinds.Of(path+".kind", op.List.GetKind()); err != nil {
				return err
			}
			if op.List.GetContinue() != "" {
				return errkind.Field(path+".continue", "is given: all reads are of one revision, which a token may not have").
					WithHint("go on with List")
			}
		default:
			return errkind.Field(path, "is empty").WithHint("give one of get and list")
		}
	}
	return nil
}

func readPath(i int, operation *holdfast.ReadOperation) string {
	path := fmt.Sprintf("operations[%d]", i)
	switch operation.GetOp().(type) {
	case *holdfast.ReadOperation_Get:
		return path + ".get"
	case *holdfast.ReadOperation_List:
		return path + ".list"
	}
	return path
}

// readOne does one of the reads, and tells how many bytes of objects it found.
func (s *Server) readOne(tx store.ReadTx, operation *holdfast.ReadOperation) (*holdfast.ReadResult, int, error) {
	if list := operation.GetList(); list != nil {
		k, err := kinds.Of("kind", list.Kind)
		if err != nil {
			return nil, 0, err
		}
		resp, bytes, err := page(tx, k, list, "", s.pageBytes)
		return &holdfast.ReadResult{Result: &holdfast.ReadResult_List{List: resp}}, bytes, err
	}
	get := operation.GetGet()
	k, err := kinds.Of("kind", get.GetKind())
	if err != nil {
		return nil, 0, err
	}
	found := &holdfast.GetResponse{Revision: tx.Revision()}
	bytes := 0
	o, err := k.Get(tx, get.ID, get.Name)
	switch {
	case err == nil:
		o = objects.Redact(o)
		found.Object, bytes = objects.Wrap(o), o.Size()
	case !errkind.Is(err, errkind.NotFound):
		return nil, 0, err
	}
	return &holdfast.ReadResult{Result: &holdfast.ReadResult_Get{Get: found}}, bytes, nil
}
