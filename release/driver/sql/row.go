package sql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"holdfast/release/driver"
)

// columns are those of a head, in the order in which scan reads them.
const columns = `namespace, name, revision, kind, status, overlap, labels, created, modified, digest, size, version`

// qualified gives the columns of the table that a statement calls r.
func qualified() string { return "r." + strings.ReplaceAll(columns, ", ", ", r.") }

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

// scan reads a head, and what comes after it.
func scan(row scanner, more ...any) (driver.Head, error) {
	var h driver.Head
	var status, labels string
	var overlap, created, modified, version int64
	into := append([]any{
		&h.Key.Namespace, &h.Key.Name, &h.Key.Revision, &h.Kind, &status, &overlap, &labels,
		&created, &modified, &h.Digest, &h.Size, &version,
	}, more...)
	if err := row.Scan(into...); err != nil {
		return driver.Head{}, err
	}
	h.Status, h.Overlap = driver.Status(status), overlap != 0
	h.Created, h.Modified = time.UnixMicro(created).UTC(), time.UnixMicro(modified).UTC()
	h.Version = uint64(version) //nolint:gosec // it counts up from 0
	if err := json.Unmarshal([]byte(labels), &h.Labels); err != nil {
		return driver.Head{}, driver.Corrupt(h.Key, "labels", "%v", err)
	}
	if !h.Status.Valid() {
		return driver.Head{}, driver.Corrupt(h.Key, "status", "%q is not a status", status)
	}
	return h, nil
}

// find returns the head with a key, or sql.ErrNoRows.
func find(ctx context.Context, tx *sql.Tx, key driver.Key) (driver.Head, error) {
	return scan(tx.QueryRowContext(ctx, `SELECT `+columns+` FROM holdfast_releases
		WHERE namespace = $1 AND name = $2 AND revision = $3`, key.Namespace, key.Name, key.Revision))
}

// found returns the head with a key, which must be there.
func found(ctx context.Context, tx *sql.Tx, key driver.Key) (driver.Head, error) {
	h, err := find(ctx, tx, key)
	if errors.Is(err, sql.ErrNoRows) {
		return driver.Head{}, driver.NotFound(key)
	}
	return h, err
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
