package storetest

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"testing"

	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// Objects gives every object of a view, in the order of kinds and IDs.
func Objects(tx store.ReadTx) iter.Seq[state.Object] {
	return func(yield func(state.Object) bool) {
		_ = each(tx, store.Clusters, yield) && each(tx, store.Nodes, yield) && each(tx, store.Networks, yield) &&
			each(tx, store.Secrets, yield) && each(tx, store.Configs, yield) && each(tx, store.Services, yield) &&
			each(tx, store.Tasks, yield)
	}
}

// object is what the store asks of a kind's type.
type object[T any] interface {
	comparable
	state.Object
	Copy() T
	Equal(any) bool
}

func each[T object[T]](tx store.ReadTx, table *store.Table[T], yield func(state.Object) bool) bool {
	objects, err := table.Find(tx, store.All())
	if err != nil {
		panic(err) // All is a selector of every table
	}
	for o := range objects {
		if !yield(o) {
			return false
		}
	}
	return true
}

// CheckImmutable fails the test if an object that the store holds now, at its present
// revision or at an earlier one, is changed by anybody before the test ends.
func CheckImmutable(t testing.TB, s *store.MemoryStore) {
	t.Helper()
	check := Freeze(t, s)
	t.Cleanup(func() {
		for _, changed := range check() {
			t.Errorf("an object of the store was changed in place: %s", changed)
		}
	})
}

// Freeze notes all objects that the store holds, and returns a function that tells which were
// changed since.
func Freeze(t Tester, s *store.MemoryStore) (changed func() []string) {
	t.Helper()
	sums := map[state.Object][sha256.Size]byte{}
	var order []state.Object
	for revision := s.Root().Revision(); ; revision-- {
		tx, err := s.At(revision)
		if err != nil {
			break // below the floor
		}
		for o := range Objects(tx) {
			if _, ok := sums[o]; !ok {
				sums[o] = sum(t, o)
				order = append(order, o)
			}
		}
		if revision == 0 {
			break
		}
	}
	return func() []string {
		var out []string
		for _, o := range order {
			if sum(t, o) != sums[o] {
				out = append(out, fmt.Sprintf("%T %s", o, o.GetID()))
			}
		}
		return out
	}
}

func sum(t Tester, o state.Object) [sha256.Size]byte {
	data, err := o.Marshal()
	if err != nil {
		t.Errorf("encode %T %s: %v", o, o.GetID(), err)
	}
	return sha256.Sum256(data)
}
