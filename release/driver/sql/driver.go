package sql

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"holdfast/release/driver"
)

// Driver keeps records in a database. Make it with New, or with Open of postgres or sqlite.
type Driver struct {
	db      *sql.DB
	dialect Dialect
	clock   func() time.Time
	closed  atomic.Bool
}

// New makes a driver on a database and brings its schema up to date. The driver closes the
// database, also if New fails. It fails with errkind.NoLeader if the database cannot be
// reached, and with errkind.Refused if its schema is of a later version.
func New(ctx context.Context, db *sql.DB, dialect Dialect, clock func() time.Time) (*Driver, error) {
	d := &Driver{db: db, dialect: dialect, clock: clock}
	if err := d.migrate(ctx); err != nil {
		return nil, errors.Join(d.explain(ctx, err), d.Close())
	}
	return d, nil
}

// Close ends all connections. It waits for calls that are under way. After it every call fails
// with errkind.NoLeader; a second Close does nothing.
func (d *Driver) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	return d.db.Close()
}

// Name returns the name of the database's kind.
func (d *Driver) Name() string { return d.dialect.Name }

// transaction runs a function in a transaction. An error is the function's, or one of ours.
func (d *Driver) transaction(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		// What a rollback could say is no news: the connection broke, and so did the transaction.
		_ = tx.Rollback()
		return err
	}
	if err := driver.Ended(ctx); err != nil { // from here on, nobody could tell
		_ = tx.Rollback() // as above
		return err
	}
	switch err := tx.Commit(); {
	case err == nil:
		return nil
	case d.dialect.Refused(err):
		return d.explain(ctx, err)
	default:
		return d.unsure(err)
	}
}

// write runs a function in a transaction, alone among all that write. It passes the version
// that the change gets.
func (d *Driver) write(ctx context.Context, key driver.Key, do func(tx *sql.Tx, version uint64) error) error {
	err := driver.Ended(ctx)
	if err == nil {
		err = d.transaction(ctx, func(tx *sql.Tx) error {
			var version int64
			const tick = `UPDATE holdfast_clock SET version = version + 1 WHERE id = 1 RETURNING version`
			if err := tx.QueryRowContext(ctx, tick).Scan(&version); err != nil {
				return err
			}
			return do(tx, uint64(version)) //nolint:gosec // it counts up from 0
		})
	}
	return d.on(ctx, err, key)
}

// Create implements driver.Driver.
func (d *Driver) Create(ctx context.Context, r driver.Record) (driver.Head, error) {
	h, err := driver.Begin(r, d.clock())
	if err != nil {
		return driver.Head{}, err
	}
	labels, err := encodeLabels(h)
	if err != nil {
		return driver.Head{}, err
	}
	err = d.write(ctx, h.Key, func(tx *sql.Tx, version uint64) error {
		_, err := find(ctx, tx, h.Key)
		if err == nil {
			return driver.Exists(h.Key)
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		h.Version = version
		if _, err := tx.ExecContext(ctx, `INSERT INTO holdfast_releases (`+columns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			h.Key.Namespace, h.Key.Name, h.Key.Revision, h.Kind, string(h.Status), number(h.Overlap), labels,
			h.Created.UnixMicro(), h.Modified.UnixMicro(), h.Digest, h.Size, int64(version)); err != nil { //nolint:gosec // from an int64
			return d.taken(err, h.Key)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO holdfast_bodies (namespace, name, revision, body) VALUES ($1, $2, $3, $4)`,
			h.Key.Namespace, h.Key.Name, h.Key.Revision, r.Body)
		return err
	})
	if err != nil {
		return driver.Head{}, err
	}
	return h, nil
}

// taken tells what of a record is taken, if that is what an error says.
func (d *Driver) taken(err error, key driver.Key) error {
	switch d.dialect.Classify(err) {
	case KeyTaken:
		return driver.Exists(key)
	case DeployedTaken:
		return driver.Deployed(key)
	default:
		return err
	}
}

// Update implements driver.Driver.
func (d *Driver) Update(ctx context.Context, version uint64, r driver.Record) (driver.Head, error) {
	if err := driver.CheckUpdate(version, r); err != nil {
		return driver.Head{}, err
	}
	var h driver.Head
	err := d.write(ctx, r.Key, func(tx *sql.Tx, next uint64) error {
		old, err := found(ctx, tx, r.Key)
		if err != nil {
			return err
		}
		if h, err = driver.Next(old, version, r, d.clock()); err != nil {
			return err
		}
		h.Version = next
		labels, err := encodeLabels(h)
		if err != nil {
			return err
		}
		if err := one(tx.ExecContext(ctx, `UPDATE holdfast_releases
			SET status = $1, overlap = $2, labels = $3, modified = $4, digest = $5, size = $6, version = $7
			WHERE namespace = $8 AND name = $9 AND revision = $10 AND version = $11`,
			string(h.Status), number(h.Overlap), labels, h.Modified.UnixMicro(), h.Digest, h.Size, int64(next), //nolint:gosec // from an int64
			h.Key.Namespace, h.Key.Name, h.Key.Revision, int64(version))); err != nil { //nolint:gosec // it was read as one
			return d.taken(err, h.Key)
		}
		if r.Body == nil {
			return nil
		}
		return one(tx.ExecContext(ctx, `INSERT INTO holdfast_bodies (namespace, name, revision, body) VALUES ($1, $2, $3, $4)
			ON CONFLICT (namespace, name, revision) DO UPDATE SET body = excluded.body`,
			h.Key.Namespace, h.Key.Name, h.Key.Revision, r.Body))
	})
	if err != nil {
		return driver.Head{}, err
	}
	return h, nil
}

// Delete implements driver.Driver.
func (d *Driver) Delete(ctx context.Context, key driver.Key, version uint64) error {
	if err := key.Check(); err != nil {
		return err
	}
	return d.write(ctx, key, func(tx *sql.Tx, _ uint64) error {
		// Not the whole head, so that one that cannot be read can be deleted.
		var have int64
		err := tx.QueryRowContext(ctx, `SELECT version FROM holdfast_releases
			WHERE namespace = $1 AND name = $2 AND revision = $3`, key.Namespace, key.Name, key.Revision).Scan(&have)
		switch now := uint64(have); { //nolint:gosec // it counts up from 0
		case errors.Is(err, sql.ErrNoRows):
			return driver.NotFound(key)
		case err != nil:
			return err
		case version != 0 && version != now:
			return driver.Changed(key, version, now)
		}
		// Its body goes with it.
		return one(tx.ExecContext(ctx, `DELETE FROM holdfast_releases WHERE namespace = $1 AND name = $2 AND revision = $3`,
			key.Namespace, key.Name, key.Revision))
	})
}

// one makes sure that a statement changed one row.
func one(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("a statement that should change one row changed %d", n)
	}
	return err
}

// Get implements driver.Driver.
func (d *Driver) Get(ctx context.Context, key driver.Key) (driver.Record, error) {
	if err := key.Check(); err != nil {
		return driver.Record{}, err
	}
	if err := driver.Ended(ctx); err != nil {
		return driver.Record{}, driver.On(err, key)
	}
	row := d.db.QueryRowContext(ctx, `SELECT `+qualified()+`, b.body FROM holdfast_releases r
		LEFT JOIN holdfast_bodies b ON b.namespace = r.namespace AND b.name = r.name AND b.revision = r.revision
		WHERE r.namespace = $1 AND r.name = $2 AND r.revision = $3`, key.Namespace, key.Name, key.Revision)
	var body []byte
	h, err := scan(row, &body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return driver.Record{}, driver.NotFound(key)
	case err != nil:
		return driver.Record{}, d.on(ctx, err, key)
	}
	if err := h.CheckBody(body); err != nil {
		return driver.Record{}, err
	}
	return driver.Record{Head: h, Body: body}, nil
}

// Query implements driver.Driver. It shows one state. A head that cannot be read is an error
// after all others.
func (d *Driver) Query(ctx context.Context, q driver.Query) iter.Seq2[driver.Head, error] {
	return func(yield func(driver.Head, error) bool) {
		// All is read first: the loop may call the driver, and have the connection.
		heads, err := d.pick(ctx, q)
		for _, h := range heads {
			if !yield(h, nil) {
				return
			}
		}
		if err != nil {
			yield(driver.Head{}, d.explain(ctx, err))
		}
	}
}

func (d *Driver) pick(ctx context.Context, q driver.Query) ([]driver.Head, error) {
	if err := driver.Ended(ctx); err != nil {
		return nil, err
	}
	where, args := conditions(q)
	rows, err := d.db.QueryContext(ctx, `SELECT `+columns+` FROM holdfast_releases`+where+
		` ORDER BY namespace, name, revision`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var heads []driver.Head
	var bad error
	for rows.Next() {
		h, err := scan(rows)
		switch {
		case errors.Is(err, driver.ErrCorrupt):
			bad = cmp.Or(bad, err)
		case err != nil:
			return nil, err
		case q.Match(h):
			heads = append(heads, h)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return heads, bad
}

// conditions turns a query into SQL, but for its labels, which are few: Match looks at them.
func conditions(q driver.Query) (where string, args []any) {
	var all []string
	add := func(column string, value any) {
		args = append(args, value)
		all = append(all, fmt.Sprintf("%s = $%d", column, len(args)))
	}
	if q.Namespace != "" {
		add("namespace", q.Namespace)
	}
	if q.Name != "" {
		add("name", q.Name)
	}
	if q.Revision != 0 {
		add("revision", q.Revision)
	}
	if q.Kind != "" {
		add("kind", q.Kind)
	}
	if len(q.Statuses) == 1 {
		add("status", string(q.Statuses[0]))
	}
	if len(all) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(all, " AND "), args
}

func encodeLabels(h driver.Head) (string, error) {
	labels, err := json.Marshal(h.Labels)
	if err != nil {
		return "", fmt.Errorf("encode labels: %w", err)
	}
	return string(labels), nil
}
