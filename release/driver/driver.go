package driver

import (
	"context"
	"iter"
	"slices"
	"time"
)

// Driver keeps records. Its methods may be called by many goroutines. They block until the
// backend has answered or the context ends.
//
// Errors are *errkind.Error and name the record. Besides the kinds that a method lists, each
// can fail with
//
//   - errkind.Invalid or errkind.Limit: an argument is wrong, or too large; the field is named;
//   - errkind.NoLeader: the backend cannot be reached, and nothing was done;
//   - errkind.Canceled or errkind.DeadlineReached: the context ended, and nothing was done;
//   - errkind.UnknownOutcome: of a write, nobody can tell whether it was done. See whether it
//     was before you do it again.
//
// A backend that cannot be reached is never reported as a record that is not there.
type Driver interface {
	// Name names the kind of backend, for people: "sqlite".
	Name() string

	// Create adds a record and returns its head as it was stored. Of the head it takes Key,
	// Kind, Status, Labels and Overlap; the rest is the driver's. The body must not be empty.
	//
	// It fails with errkind.Exists if there is a record with the key or, see Head.Overlap, if
	// another revision is deployed: that error is ErrDeployed too.
	Create(ctx context.Context, r Record) (Head, error)

	// Update replaces Status, Labels and Overlap of a record and, unless the body is nil, its
	// body, and returns the head as it was stored. Version is that of the head which the change
	// was made from.
	//
	// It fails with errkind.NotFound, with errkind.OutOfSequence if the record has another
	// version, and with errkind.Exists as Create does.
	Update(ctx context.Context, version uint64, r Record) (Head, error)

	// Delete removes a record. Unless version is 0, it must be that of the record.
	//
	// It fails with errkind.NotFound, and with errkind.OutOfSequence if the record has another
	// version.
	Delete(ctx context.Context, key Key, version uint64) error

	// Get returns a record with its body. It fails with errkind.NotFound. A body that is not
	// what was stored is an error that is ErrCorrupt.
	Get(ctx context.Context, key Key) (Record, error)

	// Query yields the heads that q picks, in the order of their keys: by namespace, name and
	// revision. It reads no body. It yields an error at most once, as the last thing; picking
	// nothing is no error. What is changed while it runs may be seen or not. The driver may be
	// called, and written to, from within the loop.
	Query(ctx context.Context, q Query) iter.Seq2[Head, error]
}

// Record is one revision of a release.
type Record struct {
	Head
	// Body is what the caller stored. The driver does not look into it.
	Body []byte
}

// Head tells what a record is.
type Head struct {
	Key Key
	// Kind says what the body is: "stack". It does not change.
	Kind   string
	Status Status
	// Labels are the caller's own.
	Labels map[string]string
	// Overlap lets the record be deployed beside other revisions of its name. Of those
	// without it, at most one is deployed at a time.
	Overlap bool

	// What follows is set by the driver.

	// Created and Modified are of the driver's clock, in UTC and whole microseconds.
	Created  time.Time
	Modified time.Time
	// Digest is that of the body: "sha256:" and 64 hexadecimal digits.
	Digest string
	// Size is the number of bytes of the body.
	Size int64
	// Version changes with each change of the record, and is never 0. Two records that have
	// the same key one after the other do not have a version in common.
	Version uint64
}

// Exclusive tells whether no other such record of the name can be at the same time: the
// record is deployed, and does not Overlap.
func (h Head) Exclusive() bool { return h.Status == StatusDeployed && !h.Overlap }

// Query picks heads. What is empty does not matter; so a revision that is 0 cannot be asked
// for alone.
type Query struct {
	Namespace string
	Name      string
	Revision  int64
	Kind      string
	// Statuses picks records that have any of these.
	Statuses []Status
	// Labels picks records that have all of these, with these values.
	Labels map[string]string
}

// Match tells whether q picks a head.
func (q Query) Match(h Head) bool {
	if q.Namespace != "" && q.Namespace != h.Key.Namespace || q.Name != "" && q.Name != h.Key.Name ||
		q.Revision != 0 && q.Revision != h.Key.Revision || q.Kind != "" && q.Kind != h.Kind ||
		len(q.Statuses) > 0 && !slices.Contains(q.Statuses, h.Status) {
		return false
	}
	for key, value := range q.Labels {
		if have, ok := h.Labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}
