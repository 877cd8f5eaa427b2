package stackapi

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/errkind"
)

func TestLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l locks
		unlock, err := l.lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := l.tryLock("b"); !ok {
			t.Error("another stack is locked, too")
		} else {
			other()
		}
		if _, ok := l.tryLock("a"); ok {
			t.Error("two have the lock")
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.lock(short, "a"); !errkind.Is(err, errkind.DeadlineReached) {
			t.Errorf("got %v", err)
		}
		turns := make(chan int, 3)
		for i := range 3 {
			go func() {
				time.Sleep(time.Duration(i) * time.Millisecond) // they come in this order
				unlock, err := l.lock(t.Context(), "a")
				if err != nil {
					t.Error(err)
				}
				turns <- i
				unlock()
			}()
		}
		time.Sleep(time.Second)
		if len(turns) > 0 {
			t.Error("the lock did not hold")
		}
		unlock()
		for want := range 3 {
			if got := <-turns; got != want {
				t.Errorf("turn %d is that of %d", want, got)
			}
		}
		synctest.Wait()
		if len(l.held) > 0 {
			t.Errorf("%d locks are left", len(l.held))
		}
	})
}
