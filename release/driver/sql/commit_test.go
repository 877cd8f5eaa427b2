package sql_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"testing"
	"time"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
	relsql "holdfast/release/driver/sql"
	"holdfast/release/drivertest"
)

// scripted is a database that takes every statement, and whose commits end as the test says.
type scripted struct {
	commit    error
	committed int
	rolled    int
	onExec    func(query string) error
	open      int
}

func (s *scripted) Connect(context.Context) (sqldriver.Conn, error) { s.open++; return conn{s}, nil }
func (s *scripted) Driver() sqldriver.Driver                        { return nil }

type conn struct{ s *scripted }

func (c conn) Prepare(string) (sqldriver.Stmt, error) { return nil, errors.New("not used") }
func (c conn) Close() error                           { c.s.open--; return nil }
func (c conn) Begin() (sqldriver.Tx, error)           { return tx(c), nil }

func (c conn) ExecContext(_ context.Context, query string, _ []sqldriver.NamedValue) (sqldriver.Result, error) {
	if c.s.onExec != nil {
		if err := c.s.onExec(query); err != nil {
			return nil, err
		}
	}
	return sqldriver.RowsAffected(1), nil
}

func (c conn) QueryContext(_ context.Context, query string, _ []sqldriver.NamedValue) (sqldriver.Rows, error) {
	switch {
	case query == tablesQuery, len(query) > 7 && query[:7] == "SELECT " && query[7:15] == "COALESCE":
		return &rows{values: []sqldriver.Value{int64(1)}}, nil
	case len(query) > 6 && query[:6] == "UPDATE":
		return &rows{values: []sqldriver.Value{int64(7)}}, nil
	}
	return &rows{}, nil
}

// rows is one row, or none.
type rows struct{ values []sqldriver.Value }

func (r *rows) Columns() []string { return make([]string, max(1, len(r.values))) }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(dest []sqldriver.Value) error {
	if r.values == nil {
		return io.EOF
	}
	copy(dest, r.values)
	r.values = nil
	return nil
}

type tx conn

func (t tx) Commit() error {
	if t.s.commit == nil {
		t.s.committed++
	}
	return t.s.commit
}

func (t tx) Rollback() error { t.s.rolled++; return nil }

const tablesQuery = "tables"

var (
	errRefused = errors.New("refused")
	errLost    = errors.New("lost")
	errTaken   = errors.New("taken")
)

func newScripted(t *testing.T) (*scripted, *relsql.Driver) {
	t.Helper()
	s := &scripted{}
	d, err := relsql.New(t.Context(), sql.OpenDB(s), relsql.Dialect{
		Name: "scripted", TableExists: tablesQuery,
		Classify: func(err error) relsql.Class {
			switch {
			case errors.Is(err, errTaken):
				return relsql.KeyTaken
			case errors.Is(err, errRefused):
				return relsql.Retry
			}
			return relsql.Other
		},
		Refused: func(err error) bool { return errors.Is(err, errRefused) },
	}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s.committed = 0
	t.Cleanup(func() {
		if err := d.Close(); err != nil || s.open != 0 {
			t.Errorf("%v, %d connections are left open", err, s.open)
		}
	})
	return s, d
}

// A commit that was refused did nothing; of one that ended in any other way nobody knows.
func TestCommitErrors(t *testing.T) {
	for _, c := range []struct {
		commit error
		kind   errkind.Kind
	}{
		{errRefused, errkind.NoLeader},
		{errLost, errkind.UnknownOutcome},
		{sqldriver.ErrBadConn, errkind.UnknownOutcome},
		{context.Canceled, errkind.UnknownOutcome},
		{context.DeadlineExceeded, errkind.UnknownOutcome},
	} {
		s, d := newScripted(t)
		s.commit = c.commit
		key := drivertest.Key("web", 1)
		_, err := d.Create(t.Context(), drivertest.Record(key, driver.StatusDeployed, "x"))
		e, ok := errors.AsType[*errkind.Error](err)
		if !ok || e.Kind != c.kind || e.ID != key.String() || !errors.Is(err, c.commit) {
			t.Errorf("%v: got %v, of kind %d", c.commit, err, errkind.Of(err))
		}
	}
}

// A context that ends before the commit leaves nothing.
func TestContextEndsBeforeTheCommit(t *testing.T) {
	s, d := newScripted(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.onExec = func(string) error { cancel(); return nil }
	_, err := d.Create(ctx, drivertest.Record(drivertest.Key("web", 1), driver.StatusDeployed, "x"))
	if !errkind.Is(err, errkind.Canceled) || s.committed != 0 {
		t.Errorf("got %v, %d commits", err, s.committed)
	}
}

// A key that another writer took between the look and the insert is told as what it is.
func TestKeyTakenInBetween(t *testing.T) {
	s, d := newScripted(t)
	s.onExec = func(string) error { return errTaken }
	_, err := d.Create(t.Context(), drivertest.Record(drivertest.Key("web", 1), driver.StatusDeployed, "x"))
	if !errkind.Is(err, errkind.Exists) || s.committed != 0 || s.rolled != 1 {
		t.Errorf("got %v, %d commits, %d rollbacks", err, s.committed, s.rolled)
	}
}

// New closes what it cannot use.
func TestNewFails(t *testing.T) {
	s := &scripted{commit: errRefused}
	d, err := relsql.New(t.Context(), sql.OpenDB(s), relsql.Dialect{
		Name: "scripted", TableExists: tablesQuery,
		Classify: func(error) relsql.Class { return relsql.Unreachable },
		Refused:  func(error) bool { return true },
	}, time.Now)
	if d != nil || !errkind.Is(err, errkind.NoLeader) || s.open != 0 {
		t.Errorf("got %v, %v, %d connections are open", d, err, s.open)
	}
}
