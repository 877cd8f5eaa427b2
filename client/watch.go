package client

import (
	"context"
	"iter"

	"holdfast/api/holdfast"
)

// WatchOptions say what to watch. The zero value watches all that changes from now on.
type WatchOptions struct {
	// Kinds and Actions to see. No kinds: all that have the fields that the selector asks for;
	// no actions: all.
	Kinds   []holdfast.Kind
	Actions []holdfast.Action
	// Selector picks objects. One that a change brings into the selector is created, and one
	// that it takes out is removed, for this watch.
	Selector holdfast.Selector
	// Start is where to begin, if not now.
	Start Start
	// Initial gives the objects that are there first. It goes without a Start only.
	Initial bool
	// Previous gives objects as they were before, too.
	Previous bool
	// Progress gives marks that tell how far the watch is when nothing else does.
	Progress bool

	// OnConnect, if it is set, is told the endpoint each time that the watch stands: when it
	// begins, and when it goes on after a break. OnBreak is told of each break. Both are
	// called between events, by the goroutine that watches.
	OnConnect func(endpoint string)
	OnBreak   func(err error)
}

// Start is where a watch begins. The zero value is after the present revision.
type Start struct {
	kind     startKind
	revision uint64
}

type startKind int

const (
	startNow startKind = iota
	startFrom
	startAfter
)

// From begins with a revision: it is the first that is seen.
func From(revision uint64) Start { return Start{startFrom, revision} }

// After begins after a revision: it is the last that is not seen.
func After(revision uint64) Start { return Start{startAfter, revision} }

// position is the revision up to which all is taken as seen; that of now is not known yet.
func (s Start) position() uint64 {
	if s.kind == startFrom && s.revision > 0 {
		return s.revision - 1
	}
	return s.revision
}

// EventType says what an Event is: a change, an object, or a mark.
type EventType int

// The types of events.
const (
	// Changed is a change of an object.
	Changed EventType = iota + 1
	// Present is an object that was there at the start, as Initial asks for.
	Present
	// Synced comes once: all that was there at the start, or that happened since a past start,
	// was given. What comes after it happens as it is told.
	Synced
	// Restarted takes back all objects that were Present so far: giving them was broken off,
	// and begins anew, maybe at another revision.
	Restarted
	// Progressed tells that all changes up to its revision were given.
	Progressed
)

// Event is what a watch gives.
type Event struct {
	Type EventType
	// Revision of the change, or that the object is shown at. Of a mark, all changes up to it
	// were given; Restarted has none.
	Revision uint64
	// What happened to which object. Of one that was removed, Object has the ID, the name and
	// the last meta only. Previous is the object as it was before, if that was asked for and
	// there was one.
	Action           holdfast.Action
	Kind             holdfast.Kind
	Object, Previous *holdfast.Object
	// Left tells of a removal that the object is still there, and not selected any more.
	Left bool
}

// Watch tells of changes, in the order of their revisions: each once and none left out. The
// changes of one revision follow each other.
//
// When a watch is broken off, because the connection or the manager is gone, it goes on through
// the next endpoint, exactly where it stopped. It does so for as long as ctx lives, but for the
// first time: if no manager can be reached then, it fails as other calls do. It ends with an
// error when ctx ends (errkind.Canceled, errkind.DeadlineReached), and when a manager refuses
// it: with errkind.OutOfRange if changes that it has not seen yet were compacted, with the
// floor in the error's Now.
//
// A loop that is slow makes the manager wait with what it sends. To leave the loop ends the
// watch, and each loop over the sequence is a watch of its own.
func (c *Client) Watch(ctx context.Context, opts WatchOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := &watcher{
			c: c, opts: opts, yield: yield, position: opts.Start.position(),
			call: newCall(c, false, ""),
		}
		w.call.retried = w.broke
		if err := w.call.run(ctx, w.run); err != nil {
			yield(Event{}, w.failed(ctx, err))
		}
	}
}
