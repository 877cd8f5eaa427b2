package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

// DefaultMaxHistory is how many revisions of a name are kept.
const DefaultMaxHistory = 10

// Errors that a kind alone does not tell.
var (
	// ErrNoDeployed is an errkind.NotFound: no revision of the name is deployed.
	ErrNoDeployed = errors.New("has no deployed release")
	// ErrNotPruned is the error of a Create that created the release, and could not remove the
	// old revisions that are too many. The next Create removes them too.
	ErrNotPruned = errors.New("created, but old revisions could not be removed")
)

// Options say what a Storage works on. Driver and Kind must be given.
type Options struct {
	Driver driver.Driver
	// Kind is that of all its records: "stack". Records of other kinds are not seen.
	Kind string
	// MaxHistory is how many revisions of a name are kept; 0 means DefaultMaxHistory, and less
	// than 0 all. More are kept only where they are deployed.
	MaxHistory int
}

// Storage keeps releases. Make it with New.
type Storage struct {
	driver     driver.Driver
	kind       string
	maxHistory int
}

// Release is one revision.
type Release struct {
	// Head tells all but the content. Its Kind is the storage's.
	driver.Head
	// Content is JSON of the caller's own.
	Content json.RawMessage
}

// ListOptions pick releases. What is empty does not matter.
type ListOptions struct {
	Namespace string
	Statuses  []driver.Status
	Labels    map[string]string
}

// New makes a storage. It fails with errkind.Invalid.
func New(o Options) (*Storage, error) {
	switch {
	case o.Driver == nil:
		return nil, errkind.Field("driver", "is empty")
	case o.Kind == "":
		return nil, errkind.Field("kind", "is empty")
	}
	if o.MaxHistory == 0 {
		o.MaxHistory = DefaultMaxHistory
	}
	return &Storage{driver: o.Driver, kind: o.Kind, maxHistory: o.MaxHistory}, nil
}

// Create adds a revision, then removes the oldest ones of its name that are too many; never
// one that is deployed, nor the one that was added. It takes Key, Status, Labels, Overlap and
// Content, and returns the release as it was stored.
//
// It fails as driver.Driver.Create does. An error that is ErrNotPruned comes with the release,
// which was created.
func (s *Storage) Create(ctx context.Context, r Release) (Release, error) {
	record, err := s.record(r)
	if err != nil {
		return Release{}, err
	}
	h, err := s.driver.Create(ctx, record)
	if err != nil {
		return Release{}, err
	}
	created := Release{Head: h, Content: r.Content}
	if err := s.prune(ctx, h.Key); err != nil {
		return created, notPruned(h.Key, err)
	}
	return created, nil
}

// Update replaces status, labels and Overlap of a release and, unless it is nil, its content.
// The Version must be the one that was read. It returns the release as it was stored, without
// the content if that was not given. It fails as driver.Driver.Update does.
func (s *Storage) Update(ctx context.Context, r Release) (Release, error) {
	record := driver.Record{Head: r.Head}
	record.Kind = s.kind
	if r.Content != nil {
		var err error
		if record, err = s.record(r); err != nil {
			return Release{}, err
		}
	}
	h, err := s.driver.Update(ctx, r.Version, record)
	if err != nil {
		return Release{}, err
	}
	return Release{Head: h, Content: r.Content}, nil
}

func (s *Storage) record(r Release) (driver.Record, error) {
	body, err := Encode(r.Content)
	if err != nil {
		return driver.Record{}, driver.On(err, r.Key)
	}
	record := driver.Record{Head: r.Head, Body: body}
	record.Kind = s.kind
	return record, nil
}

// Delete removes a revision, whatever its status. Unless version is 0, it must be that of the
// release. It fails as driver.Driver.Delete does; a record of another kind is not found.
func (s *Storage) Delete(ctx context.Context, key driver.Key, version uint64) error {
	if err := key.Check(); err != nil {
		return err
	}
	found, err := s.query(ctx, driver.Query{Namespace: key.Namespace, Name: key.Name, Revision: key.Revision})
	switch {
	case err != nil:
		return err
	case !slices.ContainsFunc(found, func(h driver.Head) bool { return h.Key == key }):
		return driver.NotFound(key)
	}
	return s.driver.Delete(ctx, key, version)
}

// Get returns a release. It fails with errkind.NotFound, also if the record with the key is of
// another kind, and with an error that is driver.ErrCorrupt.
func (s *Storage) Get(ctx context.Context, key driver.Key) (Release, error) {
	r, err := s.driver.Get(ctx, key)
	if err != nil {
		return Release{}, err
	}
	if r.Kind != s.kind {
		return Release{}, driver.NotFound(key)
	}
	content, err := Decode(r.Body)
	if err != nil {
		return Release{}, driver.On(err, key)
	}
	return Release{Head: r.Head, Content: content}, nil
}

// List returns the heads of the releases that the options pick, in the order of their keys.
// It reads no content. None is no error.
func (s *Storage) List(ctx context.Context, o ListOptions) ([]driver.Head, error) {
	return s.query(ctx, driver.Query{Namespace: o.Namespace, Statuses: o.Statuses, Labels: o.Labels})
}

// History returns the heads of all revisions of a name, the oldest first. It fails with
// errkind.NotFound if there is none.
func (s *Storage) History(ctx context.Context, namespace, name string) ([]driver.Head, error) {
	all, err := s.named(ctx, namespace, name)
	if err == nil && len(all) == 0 {
		err = errkind.New(errkind.NotFound, "not found").On("release", namespace+"/"+name)
	}
	return all, err
}

// Last returns the newest revision of a name. It fails with errkind.NotFound if there is none,
// and as Get does.
func (s *Storage) Last(ctx context.Context, namespace, name string) (Release, error) {
	all, err := s.History(ctx, namespace, name)
	if err != nil {
		return Release{}, err
	}
	return s.Get(ctx, all[len(all)-1].Key)
}

// DeployedAll returns the heads of the deployed revisions of a name, the oldest first. There
// is more than one only where they Overlap. It fails with ErrNoDeployed if there is none.
func (s *Storage) DeployedAll(ctx context.Context, namespace, name string) ([]driver.Head, error) {
	all, err := s.named(ctx, namespace, name, driver.StatusDeployed)
	if err == nil && len(all) == 0 {
		err = (&errkind.Error{Kind: errkind.NotFound, Msg: ErrNoDeployed.Error(), Err: ErrNoDeployed}).
			On("release", namespace+"/"+name)
	}
	return all, err
}

// Deployed returns the deployed revision of a name, the newest if there are several. It fails
// with ErrNoDeployed if there is none, and as Get does.
func (s *Storage) Deployed(ctx context.Context, namespace, name string) (Release, error) {
	all, err := s.DeployedAll(ctx, namespace, name)
	if err != nil {
		return Release{}, err
	}
	return s.Get(ctx, all[len(all)-1].Key)
}

func (s *Storage) named(ctx context.Context, namespace, name string, statuses ...driver.Status) ([]driver.Head, error) {
	key := driver.Key{Namespace: namespace, Name: name, Revision: 1}
	if err := key.Check(); err != nil { // an empty one would pick others
		return nil, err
	}
	return s.query(ctx, driver.Query{Namespace: namespace, Name: name, Statuses: statuses})
}

func (s *Storage) query(ctx context.Context, q driver.Query) ([]driver.Head, error) {
	q.Kind = s.kind
	var all []driver.Head
	for h, err := range s.driver.Query(ctx, q) {
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

// prune removes the oldest revisions of the name of a key until no more than MaxHistory are
// left, those that are deployed and the one with the key being kept in any case.
func (s *Storage) prune(ctx context.Context, key driver.Key) error {
	if s.maxHistory < 0 {
		return nil
	}
	all, err := s.named(ctx, key.Namespace, key.Name)
	if err != nil {
		return err
	}
	left := len(all)
	var errs []error
	for _, h := range all {
		if left <= s.maxHistory {
			break
		}
		if h.Key == key || h.Status == driver.StatusDeployed {
			continue
		}
		// With the version: one that was deployed since it was listed stays.
		err := s.driver.Delete(ctx, h.Key, h.Version)
		if err != nil && !errkind.Is(err, errkind.OutOfSequence) && !errkind.Is(err, errkind.NotFound) {
			errs = append(errs, err)
			continue
		}
		left--
	}
	return errors.Join(errs...)
}

func notPruned(key driver.Key, err error) error {
	e := &errkind.Error{
		Kind: errkind.Of(err), Msg: fmt.Sprintf("%v: %v", ErrNotPruned, err),
		Hint: "the release was created; the next one removes what is too many",
		Err:  errors.Join(ErrNotPruned, err),
	}
	return e.On("release", key.String())
}

// Next returns the key of the revision that comes after all that there are of a name: 1 if
// there is none. Another caller may take it first; Create tells.
func (s *Storage) Next(ctx context.Context, namespace, name string) (driver.Key, error) {
	all, err := s.named(ctx, namespace, name)
	if err != nil {
		return driver.Key{}, err
	}
	key := driver.Key{Namespace: namespace, Name: name, Revision: 1}
	if len(all) > 0 {
		key.Revision = all[len(all)-1].Key.Revision + 1
	}
	return key, nil
}
