package raft

import (
	"sync"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

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
	defer q.mu.Unlock()
	q.work = append(q.work, w)
	q.signal()
}

func (q *workQueue[T]) signal() {
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

// takeSome returns up to n of what is there.
func (q *workQueue[T]) takeSome(n int) []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.work))
	w := q.work[:n:n]
	q.work = q.work[n:]
	return w
}

func (q *workQueue[T]) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.work)
}

// Bounds of what peers sent and the loop has not taken. raft sends again what is dropped.
const (
	maxInbox      = 4096
	maxInboxBytes = 2 * maxInflightBytes
)

// inbox is a workQueue that has a bound: peers fill it.
type inbox struct {
	*workQueue[*pb.Message]
	bytes int
}

func newInbox() inbox { return inbox{workQueue: newWorkQueue[*pb.Message]()} }

// put adds messages, as long as there is room, and returns how many were dropped. One that
// comes when nothing waits is taken whatever its size.
func (q *inbox) put(messages []*pb.Message) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range messages {
		size := proto.Size(m)
		if len(q.work) == 0 {
			q.bytes = 0
		} else if len(q.work) >= maxInbox || q.bytes+size > maxInboxBytes {
			dropped++
			continue
		}
		q.bytes += size
		q.work = append(q.work, m)
	}
	q.signal()
	return dropped
}
