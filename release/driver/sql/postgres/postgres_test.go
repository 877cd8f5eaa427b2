package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/errkind"
	"holdfast/internal/testpostgres"
	"holdfast/release/driver"
	relsql "holdfast/release/driver/sql"
	"holdfast/release/driver/sql/postgres"
	"holdfast/release/drivertest"
)

// TestPostgres has all tests that want a server, so that they share one.
func TestPostgres(t *testing.T) {
	s := testpostgres.Start(t)
	t.Run("Driver", func(t *testing.T) { testDriver(t, s) })
	t.Run("Commit", func(t *testing.T) { testCommit(t, s) })
	t.Run("LostConnection", func(t *testing.T) { testLostConnection(t, s) })
	t.Run("Open", func(t *testing.T) { testOpen(t, s) })
	t.Run("OpenAtOnce", func(t *testing.T) { testOpenAtOnce(t, s) })
	t.Run("Rights", func(t *testing.T) { testRights(t, s) })
	t.Run("Constraints", func(t *testing.T) { testConstraints(t, s) })
	t.Run("CanceledWhileItWaits", func(t *testing.T) { testCanceledWhileItWaits(t, s) })
	t.Run("Close", func(t *testing.T) { testClose(t, s) })
	t.Run("Restart", func(t *testing.T) { testRestart(t, s) }) // the last: it ends the server
}

// newSchema makes an empty schema.
func newSchema(t testing.TB, s *testpostgres.Server) string {
	t.Helper()
	name := fmt.Sprint("t", schemas.Add(1))
	s.Exec(t, `CREATE SCHEMA `+name)
	return name
}

var schemas atomic.Int64

func open(t testing.TB, o postgres.Options) *relsql.Driver {
	t.Helper()
	d, err := postgres.Open(t.Context(), o)
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

func record(revision int64) driver.Record {
	return drivertest.Record(drivertest.Key("web", revision), driver.StatusDeployed, "body")
}

func testDriver(t *testing.T, s *testpostgres.Server) {
	drivertest.Run(t, func(t testing.TB, clock func() time.Time) drivertest.Backend {
		p, dir := newProxy(t, s)
		schema := newSchema(t, s)
		return drivertest.Backend{
			Open: func(t testing.TB) driver.Driver {
				return open(t, postgres.Options{DSN: testpostgres.DSN(dir, schema), Clock: clock})
			},
			Corrupt: func(t testing.TB, key driver.Key) {
				s.Exec(t, `UPDATE `+schema+`.holdfast_bodies SET body = set_byte(body, 0, 255 - get_byte(body, 0))
					WHERE namespace = $1 AND name = $2 AND revision = $3`, key.Namespace, key.Name, key.Revision)
			},
			Stop: func(testing.TB) { p.stop() },
		}
	})
}

// A connection that breaks at the commit leaves nobody knowing, whether it was done or not.
func testCommit(t *testing.T, s *testpostgres.Server) {
	for _, after := range []bool{false, true} {
		p, dir := newProxy(t, s)
		d := open(t, postgres.Options{DSN: testpostgres.DSN(dir, newSchema(t, s)), MaxConns: 1})
		p.cutAt("commit", after)
		_, err := d.Create(t.Context(), record(1))
		if !errkind.Is(err, errkind.UnknownOutcome) || errkind.Hint(err) == "" {
			t.Errorf("after %v: got %v, of kind %d", after, err, errkind.Of(err))
		}
		// The server works on a commit that it got, whether or not the client is still there.
		_, err = d.Get(t.Context(), record(1).Key)
		if !after && !errkind.Is(err, errkind.NotFound) || after && err != nil && !errkind.Is(err, errkind.NotFound) {
			t.Errorf("after %v: got %v", after, err)
		}
		if _, err := d.Create(t.Context(), record(1)); err != nil && !errkind.Is(err, errkind.Exists) {
			t.Errorf("after %v: the driver does not go on: %v", after, err)
		}
		if _, err := d.Get(t.Context(), record(1).Key); err != nil {
			t.Errorf("after %v: %v", after, err)
		}
	}
}

// A connection that breaks before the commit has done nothing, and the driver says so.
func testLostConnection(t *testing.T, s *testpostgres.Server) {
	for _, at := range []string{"begin", "holdfast_clock", "INSERT INTO holdfast_releases", "INSERT INTO holdfast_bodies"} {
		for _, after := range []bool{false, true} {
			p, dir := newProxy(t, s)
			schema := newSchema(t, s)
			d := open(t, postgres.Options{DSN: testpostgres.DSN(dir, schema), MaxConns: 1})
			p.cutAt(at, after)
			_, err := d.Create(t.Context(), record(1))
			// A connection that broke before anything was sent on it may be replaced without a word.
			if err != nil && !errkind.Is(err, errkind.NoLeader) {
				t.Errorf("at %s, after %v: got %v, of kind %d", at, after, err, errkind.Of(err))
			}
			want := 0
			if err == nil {
				want = 1
			}
			if n := s.Count(t, `SELECT COUNT(*) FROM `+schema+`.holdfast_releases`); n != want {
				t.Errorf("at %s, after %v: %v, but %d records", at, after, err, n)
			}
		}
	}
}

func testOpen(t *testing.T, s *testpostgres.Server) {
	later := newSchema(t, s)
	open(t, postgres.Options{DSN: s.DSN(later)})
	s.Exec(t, `INSERT INTO `+later+`.holdfast_migrations (version) VALUES (99)`)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		dsn  string
		kind errkind.Kind
	}{
		"no DSN":      {t.Context(), "host=/x port=many", errkind.Invalid},
		"nobody":      {t.Context(), testpostgres.DSN(testpostgres.ShortDir(t), ""), errkind.NoLeader},
		"no database": {t.Context(), strings.Replace(s.DSN(""), "dbname=postgres", "dbname=none", 1), errkind.NoLeader},
		"later":       {t.Context(), s.DSN(later), errkind.Refused},
		"ended":       {ended, s.DSN(""), errkind.Canceled},
	} {
		d, err := postgres.Open(c.ctx, postgres.Options{DSN: c.dsn})
		if d != nil || !errkind.Is(err, c.kind) {
			t.Errorf("%s: got %v, of kind %d", name, err, errkind.Of(err))
		}
	}
	if _, err := postgres.Open(t.Context(), postgres.Options{DSN: "postgres://u:hunter2@host:x/db"}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error tells the password: %v", err)
	}
}

// Many programs may start at once on an empty database.
func testOpenAtOnce(t *testing.T, s *testpostgres.Server) {
	schema := newSchema(t, s)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			d, err := postgres.Open(t.Context(), postgres.Options{DSN: s.DSN(schema), MaxConns: 1})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := d.Create(t.Context(), drivertest.Record(drivertest.Key(fmt.Sprint(i), 1), driver.StatusDeployed, "x")); err != nil {
				t.Error(err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := s.Count(t, `SELECT COUNT(*) FROM `+schema+`.holdfast_migrations`); n != 1 {
		t.Errorf("%d migrations were noted", n)
	}
}

// A user who may read and write, and not make tables, can use what there is; one who may only
// read is told what is missing.
func testRights(t *testing.T, s *testpostgres.Server) {
	schema := newSchema(t, s)
	open(t, postgres.Options{DSN: s.DSN(schema)})
	s.Exec(t, `CREATE ROLE writer LOGIN; CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA `+schema+` TO writer, reader;
		GRANT SELECT ON ALL TABLES IN SCHEMA `+schema+` TO writer, reader;
		GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA `+schema+` TO writer`)
	as := func(user string) *relsql.Driver {
		return open(t, postgres.Options{DSN: strings.Replace(s.DSN(schema), "user=holdfast", "user="+user, 1)})
	}
	if _, err := as("writer").Create(t.Context(), record(1)); err != nil {
		t.Error(err)
	}
	reader := as("reader")
	if _, err := reader.Get(t.Context(), record(1).Key); err != nil {
		t.Error(err)
	}
	if _, err := reader.Create(t.Context(), record(2)); !errkind.Is(err, errkind.NotAllowed) {
		t.Errorf("got %v", err)
	}
}

// What the database itself refuses, whoever writes.
func testConstraints(t *testing.T, s *testpostgres.Server) {
	schema := newSchema(t, s)
	d := open(t, postgres.Options{DSN: s.DSN(schema)})
	if _, err := d.Create(t.Context(), record(1)); err != nil {
		t.Fatal(err)
	}
	copyRow := `DO $$ BEGIN
		INSERT INTO ` + schema + `.holdfast_releases SELECT namespace, name, %s, kind, status, overlap, labels, created, modified, digest, size, version
			FROM ` + schema + `.holdfast_releases;
		RAISE EXCEPTION 'it was inserted';
		EXCEPTION WHEN %s THEN NULL; END $$`
	s.Exec(t, fmt.Sprintf(copyRow, "revision", "unique_violation"))
	s.Exec(t, fmt.Sprintf(copyRow, "revision + 1", "unique_violation"))
	s.Exec(t, fmt.Sprintf(copyRow, "-1", "check_violation"))
	// A list reads no body: there need not be any.
	s.Exec(t, `DROP TABLE `+schema+`.holdfast_bodies`)
	n := 0
	for _, err := range d.Query(t.Context(), driver.Query{}) {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d heads", n)
	}
}

// A write that waits for another one ends when its context does, and did nothing.
func testCanceledWhileItWaits(t *testing.T, s *testpostgres.Server) {
	schema := newSchema(t, s)
	d := open(t, postgres.Options{DSN: s.DSN(schema)})
	blocker := open(t, postgres.Options{DSN: s.DSN(schema)}) // only to know that the schema is there
	if err := blocker.Close(); err != nil {
		t.Fatal(err)
	}
	release := s.Hold(t, `UPDATE `+schema+`.holdfast_clock SET version = version`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := d.Create(ctx, record(1))
		done <- err
	}()
	for s.Count(t, `SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`) == 0 {
		select {
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
	}
	cancel()
	if err := <-done; !errkind.Is(err, errkind.Canceled) {
		t.Errorf("got %v, of kind %d", err, errkind.Of(err))
	}
	release()
	if _, err := d.Create(t.Context(), record(1)); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

func testClose(t *testing.T, s *testpostgres.Server) {
	count := func() int {
		return s.Count(t, `SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'closes'`)
	}
	d := open(t, postgres.Options{DSN: s.DSN(newSchema(t, s)) + " application_name=closes"})
	if _, err := d.Create(t.Context(), record(1)); err != nil {
		t.Fatal(err)
	}
	if count() == 0 {
		t.Error("no connection was seen")
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for count() > 0 { // the server takes note of it when it comes to it
		time.Sleep(time.Millisecond)
	}
	_, err := d.Get(t.Context(), record(1).Key)
	if !errkind.Is(err, errkind.NoLeader) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
}

// The server dies and comes back: what was acknowledged is there, and the driver goes on.
func testRestart(t *testing.T, s *testpostgres.Server) {
	d := open(t, postgres.Options{DSN: s.DSN(newSchema(t, s))})
	if _, err := d.Create(t.Context(), record(1)); err != nil {
		t.Fatal(err)
	}
	s.Stop(t, syscall.SIGQUIT)
	_, getErr := d.Get(t.Context(), record(1).Key)
	_, createErr := d.Create(t.Context(), record(2))
	for _, err := range []error{getErr, createErr} {
		if !errkind.Is(err, errkind.NoLeader) {
			t.Errorf("got %v, of kind %d", err, errkind.Of(err))
		}
	}
	s.Restart(t)
	r, err := d.Get(t.Context(), record(1).Key)
	if err != nil || string(r.Body) != "body" {
		t.Errorf("got %v, %v", r, err)
	}
	if _, err := d.Create(t.Context(), record(2)); !errors.Is(err, driver.ErrDeployed) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkList(b *testing.B) {
	s := testpostgres.Start(b)
	drivertest.BenchmarkList(b, open(b, postgres.Options{DSN: s.DSN(newSchema(b, s))}))
}
