// Package watch hands events to consumers inside the process, over docker/go-events. A writer
// never waits for a consumer: one that falls behind by more than its bound is cut off, and
// told so.
//
// A Queue may be used from any goroutine. Events reach each consumer in the order in which
// they were published.
package watch

import (
	"errors"
	"fmt"
	"sync"

	events "github.com/docker/go-events"
)

// ErrSlow is why a Watcher ended whose consumer fell behind. It comes as a *SlowError.
var ErrSlow = errors.New("watch: consumer fell behind")

// SlowError tells a consumer that fell behind where to go on: all up to a position is in the
// channel of its Watcher, or was taken from it. It reads on from there, or begins anew.
type SlowError struct{ Position uint64 }

// Error gives what happened.
func (e *SlowError) Error() string { return fmt.Sprintf("%v: go on after %d", ErrSlow, e.Position) }

// Is makes it an ErrSlow.
func (e *SlowError) Is(target error) bool { return target == ErrSlow }

// Positioner is an event that completes a position: what comes after it is of later ones.
type Positioner interface{ Position() uint64 }

// ErrClosed is why a Watcher ended that was closed.
var ErrClosed = errors.New("watch: closed")

// Queue publishes events to any number of watchers.
type Queue struct {
	broadcaster *events.Broadcaster
}

// NewQueue makes a queue. It has a goroutine until Close.
func NewQueue() *Queue { return &Queue{broadcaster: events.NewBroadcaster()} }

// Publish hands an event to every watcher. It does not wait for their consumers. It fails
// after Close.
func (q *Queue) Publish(e any) error { return q.broadcaster.Write(e) }

// Watch returns a watcher that sees every event published after the call, which are those after
// a position, and that holds at most limit events that its consumer has not taken.
func (q *Queue) Watch(limit int, position uint64) (*Watcher, error) {
	w := &Watcher{queue: q, c: make(chan any, limit), position: position}
	if err := q.broadcaster.Add(w); err != nil {
		return nil, err
	}
	return w, nil
}

// Close ends the queue and all its watchers.
func (q *Queue) Close() error { return q.broadcaster.Close() }

// Watcher is one consumer's view of a queue.
type Watcher struct {
	queue *Queue
	c     chan any

	mu       sync.Mutex
	position uint64 // that the events given to c complete
	err      error  // set once c is closed
}

var _ events.Sink = (*Watcher)(nil)

// Events returns the channel of events. It is closed when the watcher ends; Err tells why.
func (w *Watcher) Events() <-chan any { return w.c }

// Err returns why the watcher ended, or nil while it goes on.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Stop takes the watcher off its queue. It may be called more than once.
func (w *Watcher) Stop() error {
	err := w.queue.broadcaster.Remove(w)
	w.end(ErrClosed)
	return err
}

// Write is called by the queue with each event.
func (w *Watcher) Write(e events.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return events.ErrSinkClosed
	}
	select {
	case w.c <- e:
		if p, ok := e.(Positioner); ok {
			w.position = p.Position()
		}
		return nil
	default:
		w.err = &SlowError{w.position}
		close(w.c)
		return events.ErrSinkClosed
	}
}

// Close is called by the queue when it ends.
func (w *Watcher) Close() error {
	w.end(ErrClosed)
	return nil
}

func (w *Watcher) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		close(w.c)
	}
}
