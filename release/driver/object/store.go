package object

import (
	"context"
	"iter"
	"time"
)

// Limits of a store that the driver keeps to.
const (
	maxOps        = 512
	maxChunk      = 256 << 10 // bytes of data of an object
	maxChunksOnce = 15        // created in one transaction: with all else they are below 4 MiB
)

// Store is what the driver asks of a cluster's store: its secrets, or its configs. Names are
// unique without regard to case.
//
// Errors are of the kinds of errkind: NotFound, Exists, OutOfSequence; NoLeader if nothing was
// done and nothing can be said; and of Write UnknownOutcome. Methods may be called by many
// goroutines, and block until the store has answered or the context ends.
type Store interface {
	// Get returns the object with a name, with its data. It fails with errkind.NotFound.
	Get(ctx context.Context, name string) (Object, error)
	// List yields the objects that have all of the labels, none of which is empty, in any
	// order; their data may be left out, and so may be objects whose name does not begin with
	// what NamesOf says. It yields an error at most once, as the last thing.
	List(ctx context.Context, labels map[string]string) iter.Seq2[Object, error]
	// Write does all operations in their order, or none, and returns what each left: an object
	// with at least its version, for a Remove the zero object. It fails with errkind.Exists if a
	// name or ID is taken, errkind.NotFound if there is no object to change or remove, and
	// errkind.OutOfSequence if one has another version.
	Write(ctx context.Context, ops []Op) ([]Object, error)
}

// Object is a secret or a config.
type Object struct {
	ID      string
	Name    string
	Version uint64 // changes when the labels change
	Created time.Time
	Labels  map[string]string
	Data    []byte
}

// Action is what an operation does.
type Action int

// The actions.
const (
	// Create makes an object of ID, Name, Labels and Data. The store makes an ID if it is empty.
	Create Action = iota + 1
	// SetLabels replaces the labels of the object with ID and Name, which must have the Version.
	SetLabels
	// Remove removes the object with ID. Unless Version is 0, it must have that.
	Remove
)

// Op is one operation of a transaction.
type Op struct {
	Do Action
	Object
}
