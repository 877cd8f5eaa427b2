package state

import "context"

// Outcome is how something ends that others wait for. It is set once; any number may look at
// it, from any goroutine.
type Outcome struct {
	done chan struct{}
	err  error // written before done is closed
}

// NewOutcome makes an outcome that is not known yet.
func NewOutcome() *Outcome { return &Outcome{done: make(chan struct{})} }

// Set tells it. It must not be called again.
func (o *Outcome) Set(err error) {
	o.err = err
	close(o.done)
}

// Done is closed when the outcome is known.
func (o *Outcome) Done() <-chan struct{} { return o.done }

// Known returns the outcome, if it is known.
func (o *Outcome) Known() (err error, known bool) {
	select {
	case <-o.done:
		return o.err, true
	default:
		return nil, false
	}
}

// Wait returns once ctx ends or one of two channels is closed; the second may be nil. The raft
// node and the store wait for nothing in another way, so that a simulator can take its place.
type Wait func(ctx context.Context, first, second <-chan struct{})

// Block is the Wait that blocks.
func Block(ctx context.Context, first, second <-chan struct{}) {
	select {
	case <-first:
	case <-second:
	case <-ctx.Done():
	}
}
