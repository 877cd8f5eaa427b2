// Package postgres opens a database of PostgreSQL as a driver for records of releases.
//
// The state belongs to the database: the tables are made in the first schema of the search
// path. Any number of processes may work on it. Everything that is said of package sql's
// Driver holds.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"holdfast/internal/errkind"
	relsql "holdfast/release/driver/sql"
)

const (
	defaultConns = 4
	idleTime     = 5 * time.Minute
	// migrationLock is any number: all who migrate take the same lock.
	migrationLock = 0x686f6c6466617374
)

// Options say which database to open. All but DSN may be left out.
type Options struct {
	// DSN is the connection string, as libpq has it: "postgres://USER@HOST/DATABASE" or
	// "host=FOLDER user=USER".
	DSN string
	// Clock tells when records are created and changed; nil means time.Now.
	Clock func() time.Time
	// MaxConns is how many connections there may be; 0 means 4.
	MaxConns int
}

// Open connects to a database, and makes the tables. It fails as sql.New does; errkind.Invalid
// tells of the options.
func Open(ctx context.Context, o Options) (*relsql.Driver, error) {
	config, err := pgx.ParseConfig(o.DSN)
	if err != nil { // its text has no password
		return nil, &errkind.Error{Kind: errkind.Invalid, Field: "dsn", Msg: err.Error(), Err: err}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.MaxConns == 0 {
		o.MaxConns = defaultConns
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(o.MaxConns)
	db.SetMaxIdleConns(o.MaxConns)
	db.SetConnMaxIdleTime(idleTime)
	return relsql.New(ctx, db, dialect(), o.Clock)
}

func dialect() relsql.Dialect {
	return relsql.Dialect{
		Name: "postgresql", Text: `TEXT COLLATE "C"`, Bytes: "BYTEA",
		Lock: fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, int64(migrationLock)),
		TableExists: `SELECT COUNT(*) FROM information_schema.tables
			WHERE table_schema = current_schema() AND table_name = $1`,
		Classify: classify, Refused: refused,
	}
}

// Codes of PostgreSQL's errors, and the classes that they begin with.
const (
	uniqueViolation    = "23505"
	deadlock           = "40P01"
	serialization      = "40001"
	lockNotAvailable   = "55P03"
	insufficientRights = "42501"
	dataCorrupted      = "XX001"
	indexCorrupted     = "XX002"
	classConnection    = "08"
	classResources     = "53"
	classShutdown      = "57P"
	tooManyConnections = "53300"
	classRights        = "28"
)

func classify(err error) relsql.Class {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if lost(err) {
			return relsql.Unreachable
		}
		return relsql.Other
	}
	switch e.Code {
	case uniqueViolation:
		if e.ConstraintName == relsql.OneDeployed() {
			return relsql.DeployedTaken
		}
		return relsql.KeyTaken
	case deadlock, serialization, lockNotAvailable, tooManyConnections:
		return relsql.Retry
	case insufficientRights:
		return relsql.Denied
	case dataCorrupted, indexCorrupted:
		return relsql.Damaged
	}
	switch {
	case strings.HasPrefix(e.Code, classRights):
		return relsql.Denied
	case strings.HasPrefix(e.Code, classConnection), strings.HasPrefix(e.Code, classShutdown), lost(err):
		return relsql.Unreachable // also where there is no such database
	case strings.HasPrefix(e.Code, classResources):
		return relsql.Full
	}
	return relsql.Other
}

// lost tells whether the connection broke, or could not be made.
func lost(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgconn.ErrConnClosed) || pgconn.SafeToRetry(err)
}

// refused tells whether a commit did nothing: the server said so, and lives on.
func refused(err error) bool {
	if errors.Is(err, pgx.ErrTxCommitRollback) {
		return true
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.SeverityUnlocalized == "ERROR"
}
