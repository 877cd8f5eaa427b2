package call

import (
	"context"
	"sync"
)

// Drain counts the calls under way, so that a stopping manager can let them finish. The
// streams of other managers do not count: they never end by themselves.
type Drain struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n gets to 0; nil if nobody waits
}

func (d *Drain) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
}

func (d *Drain) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n--
	if d.n == 0 && d.idle != nil {
		close(d.idle)
		d.idle = nil
	}
}

// Wait blocks until no call is under way, or ctx ends.
func (d *Drain) Wait(ctx context.Context) {
	d.mu.Lock()
	if d.n == 0 {
		d.mu.Unlock()
		return
	}
	if d.idle == nil {
		d.idle = make(chan struct{})
	}
	idle := d.idle
	d.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
