package stackapi

import (
	"context"
	"sync"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

// locks let one caller at a time work on a stack. The zero value is ready.
type locks struct {
	mu   sync.Mutex
	held map[string]*lock // by stack
}

type lock struct {
	free  chan struct{} // has one token while nobody has the lock
	users int           // who have it or wait for it
}

// lock waits until nobody else works on a stack, and returns what ends the work. It fails if ctx
// ends before.
func (l *locks) lock(ctx context.Context, stack string) (unlock func(), err error) {
	k := l.join(stack)
	select {
	case <-k.free:
		return func() { l.leave(stack, k, true) }, nil
	case <-ctx.Done():
		l.leave(stack, k, false)
		return nil, (&errkind.Error{
			Kind: errkind.Of(driver.Ended(ctx)), Msg: "another deployment did not end in time; nothing was done", Err: ctx.Err(),
		}).On("stack", stack)
	}
}

// tryLock is lock, if that does not wait.
func (l *locks) tryLock(stack string) (unlock func(), ok bool) {
	k := l.join(stack)
	select {
	case <-k.free:
		return func() { l.leave(stack, k, true) }, true
	default:
		l.leave(stack, k, false)
		return nil, false
	}
}

func (l *locks) join(stack string) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[string]*lock{}
	}
	k := l.held[stack]
	if k == nil {
		k = &lock{free: make(chan struct{}, 1)}
		k.free <- struct{}{}
		l.held[stack] = k
	}
	k.users++
	return k
}

func (l *locks) leave(stack string, k *lock, had bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if had {
		k.free <- struct{}{}
	}
	if k.users--; k.users == 0 {
		delete(l.held, stack)
	}
}
