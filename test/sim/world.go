package sim

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"
)

// Failure is a check that did not hold.
type Failure struct {
	Check string // its name
	Text  string
	Trace []string // the last things that happened, if they were kept
}

// Error tells the check, what was seen, and what happened before.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %s\n%s", f.Check, f.Text, strings.Join(f.Trace, "\n"))
}

// world is the clock, the queue of events, and chance.
type world struct {
	rng   *rand.Rand
	now   time.Duration
	queue events
	seq   uint64 // of the newest event

	steady bool // nothing is drawn that takes time: all takes as long as it may

	keep  int // lines, not only the hash of all
	lines []string
	sum   uint64 // hash of all lines
	line  []byte
}

func newWorld(seed uint64, keep int) world {
	return world{rng: rand.New(rand.NewPCG(seed, 0x51)), keep: keep}
}

type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *events) Push(e any) { *q = append(*q, e.(event)) } //nolint:forcetypeassert,errcheck // our own

// Pop implements heap.Interface.
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return e
}

// after has something done when time has passed.
func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now + d, w.seq, do})
}

// step does what comes next, if it comes until then.
func (w *world) step(until time.Duration) bool {
	if len(w.queue) == 0 || w.queue[0].at > until {
		w.now = until
		return false
	}
	e := heap.Pop(&w.queue).(event) //nolint:forcetypeassert,errcheck // our own
	w.now = e.at
	e.do()
	return true
}

// chance is true once in n times; never for 0.
func (w *world) chance(n int) bool { return n > 0 && w.rng.IntN(n) == 0 }

// upTo is a time from 0 to d.
func (w *world) upTo(d time.Duration) time.Duration {
	switch {
	case d <= 0:
		return 0
	case w.steady:
		return d
	}
	return time.Duration(w.rng.Int64N(int64(d)))
}

// between is a number from a to b.
func (w *world) between(a, b int) int { return a + w.rng.IntN(b-a+1) }

// random is a text of n letters and digits.
func (w *world) random(n int) string {
	const of = "0123456789abcdefghijklmnopqrstuvwxyz"
	b := make([]byte, n)
	for i := range b {
		b[i] = of[w.rng.IntN(len(of))]
	}
	return string(b)
}

// tell adds a line to the trace.
func (w *world) tell(format string, args ...any) {
	w.line = fmt.Appendf(w.line[:0], "%10.4f ", w.now.Seconds())
	w.line = fmt.Appendf(w.line, format, args...)
	h := fnv.New64a()
	h.Write(w.line)
	w.sum = w.sum*1099511628211 ^ h.Sum64()
	if w.keep == 0 {
		return
	}
	if len(w.lines) >= 2*w.keep {
		w.lines = append(w.lines[:0], w.lines[w.keep:]...)
	}
	w.lines = append(w.lines, string(w.line))
}

// trace returns the last lines.
func (w *world) trace() []string { return w.lines[max(0, len(w.lines)-w.keep):] }

// fail ends the run: a check does not hold.
func (w *world) fail(check, format string, args ...any) {
	panic(&Failure{Check: check, Text: fmt.Sprintf(format, args...), Trace: w.trace()})
}
