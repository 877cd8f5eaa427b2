package clusterapi_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/clusterapi"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// written returns a store with n revisions, and the service over it.
func written(t *testing.T, n int) (*storetest.Loop, *clusterapi.Server) {
	t.Helper()
	loop := storetest.NewLoop(t, store.Options{})
	for i := range n {
		if _, err := loop.Store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := store.Configs.Create(tx, &api.Config{
				Spec: api.ConfigSpec{Annotations: api.Annotations{Name: fmt.Sprint("c", i)}},
			})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return loop, clusterapi.New(clusterapi.Config{Store: loop.Store})
}

func TestCompact(t *testing.T) {
	loop, s := written(t, 6)
	for _, c := range []struct{ revision, floor uint64 }{
		{2, 2},
		{2, 2}, // again
		{1, 2}, // below the floor already
		{5, 5},
		{0, 6}, // the present one
		{0, 6},
	} {
		r, err := s.Compact(t.Context(), &holdfast.CompactRequest{Revision: c.revision})
		if err != nil || r.Floor != c.floor {
			t.Errorf("compact %d: %v, %v", c.revision, r, err)
		}
		if floor := loop.Store.Status().Floor; floor != c.floor {
			t.Errorf("compact %d: the store's floor is %d", c.revision, floor)
		}
	}
}

// The store's errors cross the wire with their details.
func TestCompactErrors(t *testing.T) {
	_, s := written(t, 3)
	_, err := s.Compact(t.Context(), &holdfast.CompactRequest{Revision: 4})
	err = errkind.FromStatus(errkind.Status(err).Err())
	e, ok := errors.AsType[*errkind.Error](err)
	if !ok || e.Kind != errkind.OutOfRange || e.Seen != 4 || e.Now != 3 || e.Hint == "" {
		t.Errorf("a revision to come: %#v", err)
	}

	synctest.Test(t, func(t *testing.T) {
		loop, s := written(t, 3)
		loop.Hold(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Compact(ctx, &holdfast.CompactRequest{Revision: 2})
		if !errkind.Is(err, errkind.UnknownOutcome) || errkind.Hint(err) == "" {
			t.Errorf("not applied in time: %v", err)
		}
	})
}
