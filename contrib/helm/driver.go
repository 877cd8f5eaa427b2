package helm

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"helm.sh/helm/v4/pkg/release"
	v1 "helm.sh/helm/v4/pkg/release/v1"
	helmdriver "helm.sh/helm/v4/pkg/storage/driver"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

var _ helmdriver.Driver = (*Driver)(nil)

const (
	defaultTimeout = time.Minute
	// attempts is how often a change is made anew because another one came between.
	attempts = 10
)

// Options say what a Driver works on. Driver must be given.
type Options struct {
	// Driver keeps the records. It stays the caller's to close.
	Driver driver.Driver
	// Namespace is where the releases are, whatever their own Namespace says, as in Helm. If
	// it is empty, List and Query look into all namespaces, and nothing else works.
	Namespace string
	// Context is that of all calls, since Helm gives none; nil means context.Background().
	Context context.Context
	// Timeout bounds each call; 0 means a minute.
	Timeout time.Duration
	// Clock tells the times in labels; nil means time.Now.
	Clock func() time.Time
}

// Driver keeps releases of Helm. Make it with New.
//
// Its errors are Helm's (ErrReleaseNotFound, ErrReleaseExists, ErrInvalidKey) where Helm has
// one, and the *errkind.Error of the driver below in any case. A backend that cannot be reached
// is never taken for a release that is not there.
type Driver struct {
	o      Options
	logger atomic.Pointer[slog.Logger]
}

// New makes a driver. It does not ask the one below.
func New(o Options) *Driver {
	if o.Context == nil {
		o.Context = context.Background()
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	d := &Driver{o: o}
	d.logger.Store(slog.Default())
	return d
}

// Name returns "Holdfast/" and the name of the driver below.
func (d *Driver) Name() string { return "Holdfast/" + d.o.Driver.Name() }

// SetLogger replaces where is logged to; nil means nowhere. Helm's storage takes the logger of
// its driver.
func (d *Driver) SetLogger(h slog.Handler) {
	if h == nil {
		h = slog.DiscardHandler
	}
	d.logger.Store(slog.New(h))
}

// Logger returns the logger.
func (d *Driver) Logger() *slog.Logger { return d.logger.Load() }

func (d *Driver) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(d.o.Context, d.o.Timeout)
}

// key reads a key of Helm: "sh.helm.release.v1.NAME.vREVISION". It is kept as it is.
func (d *Driver) key(text string) (driver.Key, error) {
	name, revision, err := driver.ParseName(text)
	if err != nil {
		return driver.Key{}, invalidKey(err)
	}
	if d.o.Namespace == "" {
		return driver.Key{}, errkind.Field("namespace", "is empty").On("release", text).
			WithHint("make a driver for one namespace: one for all of them can only list and query")
	}
	return driver.Key{Namespace: d.o.Namespace, Name: name, Revision: revision}, nil
}

// Create stores a release. It fails with ErrReleaseExists and ErrInvalidKey.
func (d *Driver) Create(text string, rel release.Releaser) error {
	record, err := d.record(text, rel)
	if err != nil {
		return err
	}
	record.Labels[labelCreatedAt] = seconds(d.o.Clock())
	ctx, cancel := d.context()
	defer cancel()
	_, err = d.o.Driver.Create(ctx, record)
	return helmError(err)
}

// Update replaces a release, whatever it was: the last one wins, as in Helm. It fails with
// ErrReleaseNotFound and ErrInvalidKey.
func (d *Driver) Update(text string, rel release.Releaser) error {
	record, err := d.record(text, rel)
	if err != nil {
		return err
	}
	ctx, cancel := d.context()
	defer cancel()
	for range attempts {
		old, headErr := d.head(ctx, record.Key)
		if headErr != nil {
			return helmError(headErr)
		}
		if created, ok := old.Labels[labelCreatedAt]; ok {
			record.Labels[labelCreatedAt] = created
		}
		record.Labels[labelModifiedAt] = seconds(d.o.Clock())
		if _, err = d.o.Driver.Update(ctx, old.Version, record); !errkind.Is(err, errkind.OutOfSequence) {
			break
		}
	}
	return helmError(err)
}

// head returns the head with a key.
func (d *Driver) head(ctx context.Context, key driver.Key) (driver.Head, error) {
	q := driver.Query{Namespace: key.Namespace, Name: key.Name, Revision: key.Revision, Kind: Kind}
	for h, err := range d.o.Driver.Query(ctx, q) {
		if err != nil || h.Key == key {
			return h, err
		}
	}
	return driver.Head{}, driver.NotFound(key)
}

// Delete removes a release and returns what it was. It fails with ErrReleaseNotFound and
// ErrInvalidKey.
func (d *Driver) Delete(text string) (release.Releaser, error) {
	key, err := d.key(text)
	if err != nil {
		return nil, err
	}
	ctx, cancel := d.context()
	defer cancel()
	for range attempts {
		r, head, getErr := d.get(ctx, key)
		if getErr != nil {
			return nil, helmError(getErr)
		}
		if err = d.o.Driver.Delete(ctx, key, head.Version); err == nil {
			return r, nil
		}
		if !errkind.Is(err, errkind.OutOfSequence) {
			break
		}
	}
	return nil, helmError(err)
}

// Get returns a release, with the labels that are not Helm's own. It fails with
// ErrReleaseNotFound and ErrInvalidKey.
func (d *Driver) Get(text string) (release.Releaser, error) {
	key, err := d.key(text)
	if err != nil {
		return nil, err
	}
	ctx, cancel := d.context()
	defer cancel()
	r, _, err := d.get(ctx, key)
	if err != nil {
		return nil, helmError(err) // not r, which would be an interface that holds nil
	}
	return r, nil
}

func (d *Driver) get(ctx context.Context, key driver.Key) (*v1.Release, driver.Head, error) {
	record, err := d.o.Driver.Get(ctx, key)
	if err != nil {
		return nil, driver.Head{}, err
	}
	if record.Kind != Kind {
		return nil, driver.Head{}, driver.NotFound(key)
	}
	r, err := decode(record.Body)
	if err != nil {
		return nil, driver.Head{}, driver.On(err, key)
	}
	r.Labels = custom(record.Labels)
	return r, record.Head, nil
}

// List returns the releases that pass the filter, by namespace, name and revision, with all
// their labels. The filter wants whole releases, so each is read; to list heads alone, query
// the driver below.
func (d *Driver) List(filter func(release.Releaser) bool) ([]release.Releaser, error) {
	all, err := d.query(map[string]string{labelOwner: owner})
	if err != nil {
		return nil, err
	}
	var picked []release.Releaser
	for _, r := range all {
		if filter(r) {
			picked = append(picked, r)
		}
	}
	return picked, nil
}

// Query returns the releases that have all of the labels, Helm's own among them, by namespace,
// name and revision. It fails with ErrReleaseNotFound if there is none. Only what has the
// labels is read.
func (d *Driver) Query(labels map[string]string) ([]release.Releaser, error) {
	all, err := d.query(labels)
	if err == nil && len(all) == 0 {
		err = helmdriver.ErrReleaseNotFound
	}
	return all, err
}

func (d *Driver) query(labels map[string]string) ([]release.Releaser, error) {
	ctx, cancel := d.context()
	defer cancel()
	var all []release.Releaser
	for h, err := range d.o.Driver.Query(ctx, driver.Query{Namespace: d.o.Namespace, Kind: Kind, Labels: labels}) {
		if err != nil {
			return nil, helmError(err)
		}
		r, read, err := d.get(ctx, h.Key)
		switch {
		case errkind.Is(err, errkind.NotFound):
			continue // it was removed meanwhile
		case err != nil:
			return nil, helmError(err)
		}
		r.Labels = read.Labels
		all = append(all, r)
	}
	return all, nil
}

// record makes the record of a release but for the labels that tell times.
func (d *Driver) record(text string, rel release.Releaser) (driver.Record, error) {
	key, err := d.key(text)
	if err != nil {
		return driver.Record{}, err
	}
	var r *v1.Release
	switch rel := rel.(type) {
	case *v1.Release:
		r = rel
	case v1.Release:
		r = &rel
	default:
		return driver.Record{}, errkind.Field("release", "is a %T, which is not known here", rel).On("release", key.String())
	}
	if r == nil || r.Info == nil {
		return driver.Record{}, errkind.Field("release.info", "is empty").On("release", key.String())
	}
	body, err := encode(r)
	if err != nil {
		return driver.Record{}, fmt.Errorf("release %s: %w", key, err)
	}
	return driver.Record{Head: head(key, r), Body: body}, nil
}
