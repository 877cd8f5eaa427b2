package sql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"holdfast/internal/errkind"
)

// oneDeployed is the index that lets one revision of a name be deployed. Dialects look for it
// in errors.
const oneDeployed = "holdfast_releases_one_deployed"

// OneDeployed is the name of the index that lets one revision of a name be deployed.
func OneDeployed() string { return oneDeployed }

const migrationsTable = "holdfast_migrations"

// migrations returns the statements of each version of the schema, from 1. What was released
// is never changed, only added to.
func migrations(d Dialect) [][]string {
	types := strings.NewReplacer("{{text}}", d.Text, "{{bytes}}", d.Bytes)
	all := [][]string{{
		`CREATE TABLE holdfast_clock (
			id      BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
			version BIGINT NOT NULL
		)`,
		`INSERT INTO holdfast_clock (id, version) VALUES (1, 0)`,
		`CREATE TABLE holdfast_releases (
			namespace {{text}} NOT NULL,
			name      {{text}} NOT NULL,
			revision  BIGINT   NOT NULL CHECK (revision >= 0),
			kind      {{text}} NOT NULL,
			status    {{text}} NOT NULL,
			overlap   SMALLINT NOT NULL CHECK (overlap IN (0, 1)),
			labels    {{text}} NOT NULL,
			created   BIGINT   NOT NULL,
			modified  BIGINT   NOT NULL,
			digest    {{text}} NOT NULL,
			size      BIGINT   NOT NULL,
			version   BIGINT   NOT NULL,
			PRIMARY KEY (namespace, name, revision)
		)`,
		`CREATE UNIQUE INDEX ` + oneDeployed + ` ON holdfast_releases (namespace, name)
			WHERE status = 'deployed' AND overlap = 0`,
		`CREATE TABLE holdfast_bodies (
			namespace {{text}}  NOT NULL,
			name      {{text}}  NOT NULL,
			revision  BIGINT    NOT NULL,
			body      {{bytes}} NOT NULL,
			PRIMARY KEY (namespace, name, revision),
			FOREIGN KEY (namespace, name, revision)
				REFERENCES holdfast_releases (namespace, name, revision) ON DELETE CASCADE
		)`,
	}}
	for _, statements := range all {
		for i, s := range statements {
			statements[i] = types.Replace(s)
		}
	}
	return all
}

// migrate brings the schema to the version that this program knows, in one transaction.
func (d *Driver) migrate(ctx context.Context) error {
	all := migrations(d.dialect)
	return d.transaction(ctx, func(tx *sql.Tx) error {
		if d.dialect.Lock != "" {
			if _, err := tx.ExecContext(ctx, d.dialect.Lock); err != nil {
				return err
			}
		}
		have, err := d.schemaVersion(ctx, tx)
		if err != nil {
			return err
		}
		if have > len(all) {
			return errkind.New(errkind.Refused, "the database has version %d of the schema, this program knows %d", have, len(all)).
				On(d.dialect.Name, "").WithHint("use the version of Holdfast that made it, or a later one")
		}
		for version := have + 1; version <= len(all); version++ {
			for _, statement := range all[version-1] {
				if _, err := tx.ExecContext(ctx, statement); err != nil {
					return fmt.Errorf("migration %d: %w", version, err)
				}
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO `+migrationsTable+` (version) VALUES ($1)`, version); err != nil {
				return fmt.Errorf("migration %d: %w", version, err)
			}
		}
		return nil
	})
}

// schemaVersion returns the version of the schema that there is, and makes the table that
// tells it.
func (d *Driver) schemaVersion(ctx context.Context, tx *sql.Tx) (int, error) {
	var tables, version int
	if err := tx.QueryRowContext(ctx, d.dialect.TableExists, migrationsTable).Scan(&tables); err != nil {
		return 0, err
	}
	if tables == 0 { // not IF NOT EXISTS, which asks for the right to create one in any case
		_, err := tx.ExecContext(ctx, `CREATE TABLE `+migrationsTable+` (version BIGINT NOT NULL PRIMARY KEY)`)
		return 0, err
	}
	err := tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(version), 0) FROM `+migrationsTable).Scan(&version)
	return version, err
}
