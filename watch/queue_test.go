package watch_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"holdfast/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func watcher(t *testing.T, q *watch.Queue, limit int) *watch.Watcher {
	t.Helper()
	w, err := q.Watch(limit, 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func publish(t *testing.T, q *watch.Queue, events ...any) {
	t.Helper()
	for _, e := range events {
		if err := q.Publish(e); err != nil {
			t.Errorf("publish %v: %v", e, err)
		}
	}
}

// rest takes what a watcher still has, until it ends.
func rest(w *watch.Watcher) (got []any) {
	for e := range w.Events() {
		got = append(got, e)
	}
	return got
}

func wantEvents(t *testing.T, name string, got []any, want ...any) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v", name, got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: %v, want %v", name, got, want)
			return
		}
	}
}

// A watcher gets every event that is published after the call, in order, and none before it.
func TestEventsInOrder(t *testing.T) {
	q := watch.NewQueue()
	publish(t, q, 1)
	a := watcher(t, q, 10)
	publish(t, q, 2, 3)
	b := watcher(t, q, 10)
	publish(t, q, 4)
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	wantEvents(t, "a", rest(a), 2, 3, 4)
	wantEvents(t, "b", rest(b), 4)
	for _, w := range []*watch.Watcher{a, b} {
		if !errors.Is(w.Err(), watch.ErrClosed) {
			t.Errorf("ended with %v", w.Err())
		}
	}
}

// A consumer that leaves more than its bound is cut off: what it was given it can still take,
// and then it is told. Neither the writer nor other consumers wait.
func TestSlowConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := watch.NewQueue()
		defer q.Close()
		slow, exact, fast := watcher(t, q, 2), watcher(t, q, 4), watcher(t, q, 10)
		none := watcher(t, q, 0)
		publish(t, q, 1, 2, 3, 4)
		synctest.Wait()
		wantEvents(t, "slow", rest(slow), 1, 2)
		wantEvents(t, "no bound at all", rest(none))
		for _, w := range []*watch.Watcher{slow, none} {
			if !errors.Is(w.Err(), watch.ErrSlow) {
				t.Errorf("ended with %v", w.Err())
			}
		}
		if exact.Err() != nil || len(exact.Events()) != 4 || fast.Err() != nil || len(fast.Events()) != 4 {
			t.Errorf("others: %v %d, %v %d", exact.Err(), len(exact.Events()), fast.Err(), len(fast.Events()))
		}
		<-exact.Events() // who takes one has room for one
		publish(t, q, 5)
		synctest.Wait()
		if exact.Err() != nil {
			t.Errorf("cut off with room for one: %v", exact.Err())
		}
		if err := slow.Stop(); err != nil || !errors.Is(slow.Err(), watch.ErrSlow) {
			t.Errorf("stopped: %v, %v", err, slow.Err())
		}
	})
}

// A watcher that was stopped gets nothing more, and ends; the others go on.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := watch.NewQueue()
		a, b := watcher(t, q, 10), watcher(t, q, 10)
		publish(t, q, 1)
		for range 2 {
			if err := a.Stop(); err != nil {
				t.Error(err)
			}
		}
		publish(t, q, 2)
		synctest.Wait()
		wantEvents(t, "stopped", rest(a), 1)
		if !errors.Is(a.Err(), watch.ErrClosed) {
			t.Errorf("ended with %v", a.Err())
		}
		if err := errors.Join(q.Close(), q.Close()); err != nil {
			t.Error(err)
		}
		wantEvents(t, "other", rest(b), 1, 2)
	})
}

// After Close nothing is published or watched, and who tries hears it.
func TestClosed(t *testing.T) {
	q := watch.NewQueue()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if q.Publish(1) == nil {
		t.Error("published")
	}
	if w, err := q.Watch(1, 0); err == nil || w != nil {
		t.Errorf("watched: %v, %v", w, err)
	}
}

// Watchers come and go while events are published; each sees a piece without gaps.
func TestConcurrentWatchers(t *testing.T) {
	q := watch.NewQueue()
	const events = 500
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				w, err := q.Watch(events, 0)
				if err != nil {
					return // closed
				}
				last := -1
				for range 3 {
					e, ok := <-w.Events()
					if !ok {
						break // closed
					}
					if n, _ := e.(int); last >= 0 && n != last+1 {
						t.Errorf("%d after %d", n, last)
					} else {
						last = n
					}
				}
				w.Stop() //nolint:errcheck // the queue may be closed
			}
		})
	}
	for i := range events {
		publish(t, q, i)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}
