package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
	relsql "holdfast/release/driver/sql"
	"holdfast/release/driver/sql/sqlite"
	"holdfast/release/drivertest"
)

func open(t testing.TB, o sqlite.Options) *relsql.Driver {
	t.Helper()
	d, err := sqlite.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// raw is a connection past the driver.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(30000)&_pragma=foreign_keys(1)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func exec(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func TestDriver(t *testing.T) {
	drivertest.Run(t, func(t testing.TB, clock func() time.Time) drivertest.Backend {
		path := filepath.Join(t.TempDir(), "a b%20?#.db") // no name is special
		var opened []*relsql.Driver
		return drivertest.Backend{
			Open: func(t testing.TB) driver.Driver {
				d := open(t, sqlite.Options{Path: path, Clock: clock})
				opened = append(opened, d)
				return d
			},
			Corrupt: func(t testing.TB, key driver.Key) {
				db := raw(t, "file:"+strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path))
				var body []byte
				if err := db.QueryRowContext(t.Context(), `SELECT body FROM holdfast_bodies WHERE name = ? AND revision = ?`,
					key.Name, key.Revision).Scan(&body); err != nil {
					t.Fatal(err)
				}
				body[len(body)/2] ^= 1
				exec(t, db, `UPDATE holdfast_bodies SET body = ? WHERE name = ? AND revision = ?`, body, key.Name, key.Revision)
			},
			Stop: func(t testing.TB) {
				for _, d := range opened {
					if err := d.Close(); err != nil {
						t.Error(err)
					}
				}
			},
		}
	})
}

func BenchmarkList(b *testing.B) {
	drivertest.BenchmarkList(b, open(b, sqlite.Options{Path: filepath.Join(b.TempDir(), "db")}))
}

func record(revision int64) driver.Record {
	return drivertest.Record(drivertest.Key("web", revision), driver.StatusDeployed, "body")
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, bytes.Repeat([]byte("not a database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	later := filepath.Join(dir, "later")
	open(t, sqlite.Options{Path: later})
	exec(t, raw(t, later), `INSERT INTO holdfast_migrations (version) VALUES (99)`)
	for name, c := range map[string]struct {
		path string
		kind errkind.Kind
	}{
		"no path":   {"", errkind.Invalid},
		"no folder": {filepath.Join(dir, "none", "db"), errkind.NoLeader},
		"a folder":  {dir, errkind.NoLeader},
		"garbage":   {garbage, errkind.Internal},
		"later":     {later, errkind.Refused},
	} {
		d, err := sqlite.Open(t.Context(), sqlite.Options{Path: c.path})
		if d != nil || !errkind.Is(err, c.kind) {
			t.Errorf("%s: got %v, of kind %d", name, err, errkind.Of(err))
		}
		if corrupt := errors.Is(err, driver.ErrCorrupt); corrupt != (name == "garbage") {
			t.Errorf("%s: corrupt is %v: %v", name, corrupt, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqlite.Open(ended, sqlite.Options{Path: filepath.Join(dir, "db")}); !errkind.Is(err, errkind.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A database that another process has locked is busy: nothing is done, and it says so.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	d := open(t, sqlite.Options{Path: path, BusyWait: time.Millisecond})
	if _, err := d.Create(t.Context(), record(1)); err != nil {
		t.Fatal(err)
	}
	other := raw(t, path)
	exec(t, other, `BEGIN IMMEDIATE`)
	if _, err := d.Create(t.Context(), record(2)); !errkind.Is(err, errkind.NoLeader) || errkind.Hint(err) != "try again" {
		t.Errorf("got %v", err)
	}
	if _, err := d.Get(t.Context(), record(1).Key); err != nil {
		t.Errorf("a read beside a writer: %v", err)
	}
	exec(t, other, `ROLLBACK`)
	if err := d.Delete(t.Context(), record(1).Key, 0); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// What the database itself refuses is told apart, whoever wrote first.
func TestConstraintsAreTheDatabases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	d := open(t, sqlite.Options{Path: path})
	if _, err := d.Create(t.Context(), record(1)); err != nil {
		t.Fatal(err)
	}
	db := raw(t, path)
	const copyRow = `INSERT INTO holdfast_releases SELECT namespace, name, %s, kind, status, overlap, labels, created, modified, digest, size, version FROM holdfast_releases`
	for revision, want := range map[string]string{"revision": "UNIQUE constraint", "revision + 1": "UNIQUE constraint", "-1": "CHECK constraint"} {
		_, err := db.ExecContext(t.Context(), strings.Replace(copyRow, "%s", revision, 1))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a row with revision %s: %v", revision, err)
		}
	}
}

// A list reads no body: there need not be any.
func TestListNeedsNoBodies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	d := open(t, sqlite.Options{Path: path})
	if _, err := d.Create(t.Context(), record(1)); err != nil {
		t.Fatal(err)
	}
	exec(t, raw(t, path), `DROP TABLE holdfast_bodies`)
	n := 0
	for _, err := range d.Query(t.Context(), driver.Query{}) {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d heads", n)
	}
	if _, err := d.Get(t.Context(), record(1).Key); err == nil || errkind.Is(err, errkind.NotFound) {
		t.Errorf("got %v", err)
	}
}

// Rows that were damaged are reported, hide no other, and can be deleted.
func TestDamagedRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	d := open(t, sqlite.Options{Path: path})
	for i := range int64(4) {
		r := record(i + 1)
		r.Overlap = true
		if _, err := d.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	db := raw(t, path)
	exec(t, db, `UPDATE holdfast_releases SET labels = '{' WHERE revision = 1`)
	exec(t, db, `UPDATE holdfast_releases SET status = 'done' WHERE revision = 2`)
	exec(t, db, `DELETE FROM holdfast_bodies WHERE revision = 3`)
	var heads []driver.Head
	var last error
	for h, err := range d.Query(t.Context(), driver.Query{}) {
		if last = err; err == nil {
			heads = append(heads, h)
		}
	}
	if len(heads) != 2 || heads[0].Key.Revision != 3 || !errors.Is(last, driver.ErrCorrupt) {
		t.Errorf("got %v, %v", heads, last)
	}
	for i := range int64(3) {
		key := record(i + 1).Key
		_, err := d.Get(t.Context(), key)
		if e, ok := errors.AsType[*errkind.Error](err); !ok || !errors.Is(err, driver.ErrCorrupt) || e.ID != key.String() {
			t.Errorf("%v: %v", key, err)
		}
		if err := d.Delete(t.Context(), key, 0); err != nil {
			t.Errorf("%v: %v", key, err)
		}
	}
	var bodies int
	if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM holdfast_bodies`).Scan(&bodies); err != nil || bodies != 1 {
		t.Errorf("%d bodies are left, %v", bodies, err)
	}
}

func TestClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	d := open(t, sqlite.Options{Path: path})
	if _, err := d.Create(t.Context(), record(1)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	// The last connection that is closed takes these away: none was left open.
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + suffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", suffix, err)
		}
	}
	if _, err := d.Get(t.Context(), record(1).Key); !errkind.Is(err, errkind.NoLeader) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
}
