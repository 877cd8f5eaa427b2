// Package kinds says, for each kind of object, how ctl finds, prints and removes one. It keeps
// no state: each kind is made anew by a function.
package kinds

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/gogo/protobuf/types"

	"holdfast/client"
	"holdfast/internal/cli"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
)

// maxListed is how many candidates an error names.
const maxListed = 10

// Query picks objects: values of one field are ORed, fields are ANDed.
type Query struct {
	Names, NamePrefixes, IDPrefixes []string
	Labels                          map[string]string // an empty value asks only that the key is there
	ServiceIDs                      []string          // of tasks
}

// Kind is a kind of object. Remove is nil where objects are not removed by ctl.
type Kind[T any] struct {
	Noun   string // in the singular: "service"
	View   cli.View[T]
	Labels func(T) map[string]string
	List   func(ctx context.Context, c *client.Client, q Query) iter.Seq2[T, error]
	Get    func(ctx context.Context, c *client.Client, id string) (T, error)
	Remove func(ctx context.Context, c *client.Client, id string) error
}

// Resolve finds the one object that a person means: by its ID, else by its name, else by the
// beginning of its ID.
func (k Kind[T]) Resolve(ctx context.Context, c *client.Client, arg string) (T, error) {
	byID := Query{IDPrefixes: []string{arg}}
	steps := []Query{{Names: []string{arg}}}
	switch {
	case id.Valid(arg):
		steps = []Query{byID, steps[0]}
	case id.ValidPrefix(arg):
		steps = append(steps, byID)
	case arg == "":
		var none T
		return none, errkind.Field(k.Noun, "is empty")
	}
	for _, q := range steps {
		found, more, err := some(k.List(ctx, c, q))
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

// formatTime gives a time as people and programs read it, or "" if there is none.
func formatTime(t *types.Timestamp) string {
	if t == nil {
		return ""
	}
	at, err := types.TimestampFromProto(t)
	if err != nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
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
