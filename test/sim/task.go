package sim

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"holdfast/manager/state"
)

// pending is what a task waits for, as state.Wait has it.
type pending struct {
	ctx           context.Context //nolint:containedctx // of the call that waits
	first, second <-chan struct{}
}

// over tells whether the wait is over.
func (p pending) over() bool {
	select {
	case <-p.first:
		return true
	case <-p.second:
		return true
	case <-p.ctx.Done():
		return true
	default:
		return false
	}
}

// task is a call under way: a coroutine that runs until it waits, and goes on when the world
// says so.
type task struct {
	what  string
	group *group
	next  func() (pending, bool)
	stop  func()
	yield func(pending) bool
	waits pending
	woken bool
}

// group is the tasks of a process, or of the clients.
type group struct {
	w     *world
	tasks []*task
	ran   func() // called after one of them has run
	delay time.Duration
}

type taskKey struct{}

// killed unwinds a task whose process has died.
type killed struct{}

// start begins a task; it runs a little later.
func (g *group) start(ctx context.Context, what string, fn func(ctx context.Context)) {
	t := &task{what: what, group: g}
	ctx = context.WithValue(ctx, taskKey{}, t)
	t.next, t.stop = iter.Pull(func(yield func(pending) bool) {
		defer func() {
			if p := recover(); p != nil {
				if _, ok := p.(killed); !ok {
					panic(p)
				}
			}
		}()
		t.yield = yield
		fn(ctx)
	})
	g.tasks = append(g.tasks, t)
	g.wake(t)
}

func (g *group) wake(t *task) {
	t.woken = true
	g.w.after(g.w.upTo(g.delay), func() { g.run(t) })
}

func (g *group) run(t *task) {
	i := slices.Index(g.tasks, t)
	if i < 0 {
		return // killed meanwhile
	}
	t.woken = false
	waits, more := t.next()
	if more {
		t.waits = waits
	} else {
		g.tasks = slices.Delete(g.tasks, slices.Index(g.tasks, t), slices.Index(g.tasks, t)+1)
	}
	g.poll()
	g.ran()
}

// poll wakes the tasks whose waits are over.
func (g *group) poll() {
	for _, t := range g.tasks {
		if !t.woken && t.waits.over() {
			g.wake(t)
		}
	}
}

// describe tells what the tasks are.
func (g *group) describe() string {
	var all []string
	for _, t := range g.tasks {
		all = append(all, t.what)
	}
	return strings.Join(all, "; ")
}

// kill ends all tasks where they are.
func (g *group) kill() {
	tasks := g.tasks
	g.tasks = nil
	for _, t := range tasks {
		t.stop()
	}
}

// wait is the state.Wait of everything in the simulation.
func wait(ctx context.Context, first, second <-chan struct{}) {
	t, ok := ctx.Value(taskKey{}).(*task)
	if !ok {
		panic("sim: a call outside a task waits")
	}
	for p := (pending{ctx, first, second}); !p.over(); {
		if !t.yield(p) {
			panic(killed{})
		}
	}
}

// sleep lets time pass for a task.
func (g *group) sleep(ctx context.Context, d time.Duration) {
	o := state.NewOutcome()
	g.w.after(d, func() {
		o.Set(nil)
		g.poll()
	})
	wait(ctx, o.Done(), nil)
}
