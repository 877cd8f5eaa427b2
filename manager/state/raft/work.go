package raft

import "sync"

// workQueue hands work from the loop to a goroutine, in order. The loop never waits; raft
// bounds what is in it.
type workQueue[T any] struct {
	mu   sync.Mutex
	work []T
	wake chan struct{}
}

func newWorkQueue[T any]() *workQueue[T] { return &workQueue[T]{wake: make(chan struct{}, 1)} }

func (q *workQueue[T]) put(w T) {
	q.mu.Lock()
	q.work = append(q.work, w)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns all that is there, or nil.
func (q *workQueue[T]) take() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.work
	q.work = nil
	return w
}
