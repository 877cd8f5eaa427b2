package store_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// A writer that takes long must not hold up what is committed: Apply takes the write lock for
// the first entry of a term only.
func TestWriterDoesNotHoldUpApply(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{})
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.Store.Update(t.Context(), creating("a"))
		first <- err
	}()
	data := s.Take()
	for ; data == nil; data = s.Take() {
		runtime.Gosched()
	}
	running, release := make(chan struct{}), make(chan struct{})
	stop := errors.New("nothing after all")
	go func() {
		_, err := s.Store.Update(t.Context(), func(*store.Tx) error {
			close(running)
			<-release
			return stop
		})
		second <- err
	}()
	<-running
	applied := make(chan struct{})
	go func() {
		s.Apply(1, data)
		close(applied)
	}()
	select {
	case <-applied:
	case <-time.After(time.Minute):
		t.Error("what is committed waits for a writer")
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := <-second; !errors.Is(err, stop) {
		t.Errorf("the writer: %v", err)
	}
}
