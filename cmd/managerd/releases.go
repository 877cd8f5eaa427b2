package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"holdfast/internal/errkind"
	"holdfast/manager"
	"holdfast/release/driver/lazy"
	"holdfast/release/driver/memory"
	"holdfast/release/driver/sql/postgres"
	"holdfast/release/driver/sql/sqlite"
)

// Forms of --release-driver.
const (
	driverObject = "object"
	driverMemory = "memory"
	sqlPrefix    = "sql="
	sqlitePrefix = "sqlite:"
)

// databaseTimeout bounds the attempt to reach a database at the start.
const databaseTimeout = 5 * time.Second

// releases is where releases of stacks are kept, and what closes it.
type releases struct {
	manager.Releases
	database *lazy.Driver // nil if there is none
}

// parseReleases reads --release-driver. It opens nothing.
func parseReleases(value string) (releases, error) {
	dsn, isSQL := strings.CutPrefix(value, sqlPrefix)
	path, isSQLite := strings.CutPrefix(dsn, sqlitePrefix)
	switch {
	case value == driverObject:
		return releases{}, nil
	case value == driverMemory:
		return releases{Releases: manager.Releases{Driver: memory.New(time.Now), Alone: true}}, nil
	case !isSQL:
		return releases{}, releaseField("is none of object, sql=DSN, memory")
	case dsn == "" || isSQLite && path == "":
		return releases{}, releaseField("names no database after sql=")
	case isSQLite:
		d := lazy.New("sqlite", func(ctx context.Context) (lazy.Opened, error) {
			return sqlite.Open(ctx, sqlite.Options{Path: path})
		})
		return releases{manager.Releases{Driver: d, Alone: true}, d}, nil
	}
	d := lazy.New("postgresql", func(ctx context.Context) (lazy.Opened, error) {
		return postgres.Open(ctx, postgres.Options{DSN: dsn})
	})
	return releases{manager.Releases{Driver: d}, d}, nil
}

// releaseField is the error of a value of --release-driver. It does not repeat it: a DSN may have a
// password.
func releaseField(says string) error {
	return errkind.Field("--release-driver", "%s", says).
		WithHint("sql=postgres://USER@HOST/DATABASE for PostgreSQL, sql=sqlite:FILE for SQLite")
}

// reach opens the database, so that a mistake is told at once. One of PostgreSQL that is only away
// can be reached later: until then stacks can be listed, and not deployed.
func (r releases) reach(ctx context.Context, logger *slog.Logger) error {
	if r.database == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	_, err := r.database.Open(ctx)
	switch {
	case err == nil:
		return nil
	case !r.Alone && (errkind.Is(err, errkind.NoLeader) || errkind.Is(err, errkind.DeadlineReached)):
		logger.Warn("the database of releases cannot be reached; until it can, no stack is deployed", "err", err)
		return nil
	}
	return &errkind.Error{Kind: errkind.Of(err), Field: "--release-driver", Msg: err.Error(), Hint: errkind.Hint(err), Err: err}
}

// close closes the database.
func (r releases) close() error {
	if r.database == nil {
		return nil
	}
	return r.database.Close()
}
