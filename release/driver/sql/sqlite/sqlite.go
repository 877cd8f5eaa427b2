// Package sqlite opens a file of SQLite as a driver for records of releases.
//
// The state belongs to the file; other processes of the machine may work on it at the same
// time. It must not be on a network file system, whose locks SQLite cannot rely on. Everything
// that is said of package sql's Driver holds.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"holdfast/internal/errkind"
	relsql "holdfast/release/driver/sql"
)

// defaultBusyWait is how long a write waits for those of other processes.
const defaultBusyWait = 30 * time.Second

// Options say which file to open. All but Path may be left out.
type Options struct {
	// Path is the file. It is made if it is not there; its folder must be.
	Path string
	// Clock tells when records are created and changed; nil means time.Now.
	Clock func() time.Time
	// BusyWait bounds how long a call waits for others; 0 means 30 seconds.
	BusyWait time.Duration
}

// Open opens a file, and makes its tables. It fails as sql.New does; errkind.Invalid tells of
// the options. What is written is on the disk when a call returns.
func Open(ctx context.Context, o Options) (*relsql.Driver, error) {
	if o.Path == "" {
		return nil, errkind.Field("path", "is empty")
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.BusyWait == 0 {
		o.BusyWait = defaultBusyWait
	}
	settings := url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", o.BusyWait.Milliseconds()), "foreign_keys(1)", "journal_mode(WAL)", "synchronous(FULL)",
	}}
	name := url.URL{Scheme: "file", OmitHost: true, Path: o.Path, RawQuery: settings.Encode()}
	connector, err := sqlite.NewConnector(name.String())
	if err != nil {
		return nil, &errkind.Error{Kind: errkind.Invalid, Field: "path", Msg: err.Error(), Err: err}
	}
	db := sql.OpenDB(connector)
	// Writes come one after another in any case; so the calls of a process do not wait by polling.
	db.SetMaxOpenConns(1)
	return relsql.New(ctx, db, dialect(), o.Clock)
}

func dialect() relsql.Dialect {
	return relsql.Dialect{
		Name: "sqlite", Text: "TEXT COLLATE BINARY", Bytes: "BLOB",
		TableExists: `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = $1`,
		Classify:    classify, Refused: refused,
	}
}

func classify(err error) relsql.Class {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return relsql.Other
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return relsql.KeyTaken
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE: // the one index besides primary keys
		return relsql.DeployedTaken
	}
	switch primary(e) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT:
		return relsql.Retry
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR:
		return relsql.Unreachable
	case sqlite3.SQLITE_FULL:
		return relsql.Full
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return relsql.Denied
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return relsql.Damaged
	}
	return relsql.Other
}

// refused tells whether a commit did nothing. After an error of the disk nobody can tell.
func refused(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	switch primary(e) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_FULL:
		return true
	}
	return false
}

// primary gives the code of an error without what extends it.
func primary(e *sqlite.Error) int { return e.Code() & 0xff }
