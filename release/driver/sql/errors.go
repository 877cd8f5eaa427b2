package sql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

// errClosed is the cause of all errors after Close.
var errClosed = errors.New("the driver is closed")

// explain turns an error of the database, which did nothing, into one of our kinds.
func (d *Driver) explain(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*errkind.Error](err); ok || err == nil {
		return err
	}
	if ended := driver.Ended(ctx); ended != nil {
		return ended
	}
	e := &errkind.Error{Kind: errkind.Internal, Msg: d.dialect.Name + ": " + err.Error(), Err: err}
	if d.closed.Load() {
		e.Kind, e.Msg, e.Err = errkind.NoLeader, d.dialect.Name+": "+errClosed.Error(), errors.Join(errClosed, err)
		return e
	}
	class := d.dialect.Classify(err)
	if errors.Is(err, sqldriver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		class = Unreachable
	}
	switch class {
	case Unreachable:
		e.Kind, e.Hint = errkind.NoLeader, "is the database running, and is this its address?"
	case Retry:
		e.Kind, e.Hint = errkind.NoLeader, "try again"
	case Full:
		e.Kind, e.Hint = errkind.Limit, "make room for the database"
	case Denied:
		e.Kind, e.Hint = errkind.NotAllowed, "give the database's user the right to do this"
	case Damaged:
		e.Err, e.Hint = errors.Join(driver.ErrCorrupt, err), "restore the database from a backup"
	case KeyTaken, DeployedTaken, Other:
	}
	return e
}

// unsure is the error of a commit whose outcome is not known.
func (d *Driver) unsure(err error) error {
	return &errkind.Error{
		Kind: errkind.UnknownOutcome, Err: err,
		Msg:  d.dialect.Name + ": whether it was done is not known, the commit ended with: " + err.Error(),
		Hint: "see whether it was done before you do it again",
	}
}

// on is explain for a call on one record.
func (d *Driver) on(ctx context.Context, err error, key driver.Key) error {
	if err == nil {
		return nil
	}
	return driver.On(d.explain(ctx, err), key)
}
