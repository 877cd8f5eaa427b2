// Package kinds says, for each kind of object, how ctl finds, prints and removes one. It keeps
// no state: each kind is made anew by a function.
package kinds

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/gogo/protobuf/types"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/cli"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
)

// maxListed is how many candidates an error names.
const maxListed = 10

// Object is what all objects have.
type Object interface {
	GetID() string
	GetMeta() api.Meta
}

// Kind is a kind of object.
type Kind[T Object] struct {
	Noun   string // in the singular: "service"
	Number holdfast.Kind
	// Unwrap takes an object of this kind out of one of any.
	Unwrap func(*holdfast.Object) T
	View   cli.View[T]
	Labels func(T) map[string]string
	Get    func(ctx context.Context, c *client.Client, id string) (T, error)
	// Sole tells that there is one object only, which need not be named.
	Sole bool
	// State is what an object does at the moment, in a word. It is nil where objects do nothing.
	State func(T) string
	// Remove is nil where objects are not removed by ctl.
	Remove func(ctx context.Context, c *client.Client, id string) error
}

// List goes through the objects that a selector picks.
func (k Kind[T]) List(ctx context.Context, c *client.Client, s holdfast.Selector) iter.Seq2[T, error] {
	return k.Find(ctx, c, holdfast.ListRequest{Selector: s})
}

// Find goes through the objects that a request asks for, in its order.
func (k Kind[T]) Find(ctx context.Context, c *client.Client, r holdfast.ListRequest) iter.Seq2[T, error] {
	r.Kind = k.Number
	return func(yield func(T, error) bool) {
		for o, err := range c.Find(ctx, &r) {
			var found T
			if err == nil {
				found, err = k.Take(o)
			}
			if !yield(found, err) {
				return
			}
		}
	}
}

// Take is Unwrap for what a manager sent, which may be of another kind if that has a fault.
func (k Kind[T]) Take(o *holdfast.Object) (T, error) {
	found := k.Unwrap(o)
	if found.GetID() == "" {
		return found, errkind.New(errkind.Internal, "the manager sent an object that is no %s, or has no ID", k.Noun)
	}
	return found, nil
}

// Resolve finds the one object that a person means: by its ID, else by its name, else by the
// beginning of its ID.
func (k Kind[T]) Resolve(ctx context.Context, c *client.Client, arg string) (T, error) {
	byID := holdfast.Selector{IDPrefixes: []string{arg}}
	steps := []holdfast.Selector{{Names: []string{arg}}}
	switch {
	case id.Valid(arg):
		steps = []holdfast.Selector{byID, steps[0]}
	case id.ValidPrefix(arg):
		steps = append(steps, byID)
	case arg == "":
		var none T
		return none, errkind.Field(k.Noun, "is empty")
	}
	for _, s := range steps {
		found, more, err := some(k.List(ctx, c, s))
		switch {
		case err != nil:
			return *new(T), err
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return *new(T), k.ambiguous(arg, found, more)
		}
	}
	return *new(T), errkind.New(errkind.NotFound, "not found").On(k.Noun, arg)
}

// ResolveAll finds the objects that people mean. It goes on after an error.
func (k Kind[T]) ResolveAll(ctx context.Context, c *client.Client, args []string) ([]T, error) {
	var found []T
	var errs cli.Errors
	for _, arg := range args {
		o, err := k.Resolve(ctx, c, arg)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, o)
	}
	if len(errs) > 0 {
		return found, errs
	}
	return found, nil
}

func (k Kind[T]) ambiguous(arg string, found []T, more bool) error {
	ids := make([]string, len(found))
	for i, o := range found {
		ids[i] = k.View.ID(o)
	}
	list := strings.Join(ids, ", ")
	if more {
		list += " and more"
	}
	return errkind.New(errkind.Invalid, "is ambiguous: %s", list).On(k.Noun, arg).
		WithHint("give more of the ID")
}

// some returns the first objects of a list, and whether there are more.
func some[T any](seq iter.Seq2[T, error]) (found []T, more bool, err error) {
	for o, err := range seq {
		if err != nil {
			return nil, false, err
		}
		if len(found) == maxListed {
			return found, true, nil
		}
		found = append(found, o)
	}
	return found, false, nil
}

// column makes a column of a table.
func column[T any](title string, value func(T) string) cli.Column[T] {
	return cli.Column[T]{Title: title, Value: value}
}

// FormatTime gives a time as people and programs read it, or "" if there is none.
func FormatTime(t *types.Timestamp) string {
	at, ok := timeOf(t)
	if !ok {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// timeOf tells a time, if there is one.
func timeOf(t *types.Timestamp) (at time.Time, ok bool) {
	at, err := types.TimestampFromProto(t) // nil is an error, too
	return at, err == nil
}

// FormatAge gives how long ago a time was, in the unit that says enough: "90s", "5m", "30h", "12d";
// or "" if there is none.
func FormatAge(t *types.Timestamp, now time.Time) string {
	at, ok := timeOf(t)
	if !ok {
		return ""
	}
	age := max(0, now.Sub(at)) // clocks differ
	const day = 24 * time.Hour
	switch {
	case age < 2*time.Minute:
		return fmt.Sprintf("%ds", age/time.Second)
	case age < 2*time.Hour:
		return fmt.Sprintf("%dm", age/time.Minute)
	case age < 2*day:
		return fmt.Sprintf("%dh", age/time.Hour)
	}
	return fmt.Sprintf("%dd", age/day)
}

// formatLabels gives labels as k=v, sorted.
func formatLabels(labels map[string]string) string {
	var all []string
	for k, v := range labels {
		all = append(all, k+"="+v)
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// lower gives the name of an enum's value as people write it.
func lower(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "-")) }
