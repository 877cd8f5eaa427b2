package stacks_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/testpostgres"
	"holdfast/test/testcluster"
)

// archived starts a cluster whose managers keep releases somewhere else.
func archived(t *testing.T, n int, driver string) *testcluster.Cluster {
	t.Helper()
	c := testcluster.Empty(t)
	for range n {
		m := c.Add()
		m.Args = []string{"--release-driver", driver}
		m.Start()
	}
	return c
}

// rows gives what the database has: "1 superseded, 2 deployed".
func rows(t testing.TB, db *testpostgres.Server) string {
	t.Helper()
	return db.Text(t, `SELECT COALESCE(string_agg(revision || ' ' || status, ', ' ORDER BY revision), '') FROM holdfast_releases`)
}

// wantRows waits until the database has some rows: it follows the cluster, and may be a moment late.
func wantRows(t testing.TB, db *testpostgres.Server, want string) {
	t.Helper()
	testcluster.Wait(t, "the database", func(context.Context) error {
		if got := rows(t, db); got != want {
			return fmt.Errorf("it has %q, want %q", got, want)
		}
		return nil
	})
}

// gate stands in the way of writes to the database: those of records that get a status wait until
// open is called.
func gate(t testing.TB, db *testpostgres.Server, status string) (open func()) {
	t.Helper()
	db.Exec(t, `CREATE OR REPLACE FUNCTION gate() RETURNS trigger AS $$ BEGIN
		IF NEW.status = '`+status+`' THEN PERFORM pg_advisory_xact_lock(4711); END IF; RETURN NEW; END $$ LANGUAGE plpgsql`)
	db.Exec(t, `CREATE OR REPLACE TRIGGER gate BEFORE INSERT OR UPDATE ON holdfast_releases
		FOR EACH ROW EXECUTE FUNCTION gate()`)
	return db.Hold(t, `SELECT pg_advisory_xact_lock(4711)`)
}

// waitAtGate waits until a write waits.
func waitAtGate(t testing.TB, db *testpostgres.Server) {
	t.Helper()
	testcluster.Wait(t, "a write to the database", func(context.Context) error {
		if db.Count(t, `SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`) == 0 {
			return errors.New("no write waits")
		}
		return nil
	})
}

// TestDatabase takes a stack through its releases, which are kept in a PostgreSQL, while leaders
// die before and after they changed the cluster, and the database dies, too.
func TestDatabase(t *testing.T) {
	t.Parallel()
	db := testpostgres.Start(t)
	c := archived(t, 3, "sql="+db.DSN(""))
	s := newSession(t, c)
	ctx := testcluster.Context(t, 3*testcluster.Bound)
	deploy := func(version int) {
		t.Helper()
		if _, err := s.client.Stacks().Deploy(ctx, s.loaded(version)); err != nil {
			t.Fatal(err)
		}
		s.serves(version)
	}
	deploy(1)
	s.wantHistory("shop", "1 deployed")
	// The cluster is not changed yet: another leader deploys. The database has taken back what the
	// first one began.
	s.killedAtGate(db, 2, "pending-upgrade")
	s.wantHistory("shop", "1 superseded, 2 deployed")
	wantRows(t, db, "1 superseded, 2 deployed")
	// The cluster is changed: another leader lets the database follow, and the call that is
	// repeated is told of that release.
	s.killedAtGate(db, 3, "deployed")
	s.wantHistory("shop", "1 superseded, 2 superseded, 3 deployed")
	wantRows(t, db, "1 superseded, 2 superseded, 3 deployed")

	db.Stop(t, syscall.SIGQUIT)
	_, err := c.Leader().Once().Stacks().Deploy(ctx, s.loaded(4))
	_, historyErr := history(ctx, c.Followers()[0].Once().Stacks(), "shop")
	for _, err := range []error{err, historyErr} {
		if !errkind.Is(err, errkind.NoLeader) || !strings.Contains(err.Error(), "releases in postgresql: ") {
			t.Errorf("without the database: %v", err)
		}
	}
	s.serves(3)
	s.says(s.run(0, "stack", "ls").Out, "shop   3         deployed")
	db.Restart(t)
	deploy(4)
	if _, err := s.client.Stacks().Rollback(ctx, &holdfast.RollbackRequest{Name: "shop", Number: 1}); err != nil {
		t.Fatal(err)
	}
	s.serves(1)
	wantRows(t, db, "1 superseded, 2 superseded, 3 superseded, 4 superseded, 5 deployed")
	s.run(0, "stack", "rm", "shop")
	wantRows(t, db, "")
	s.nothingLeft()
}

// killedAtGate deploys a version, and kills the leader while it waits to write that a release has a
// status.
func (s *session) killedAtGate(db *testpostgres.Server, version int, status string) {
	s.t.Helper()
	ctx := testcluster.Context(s.t, testcluster.Bound)
	open := gate(s.t, db, status)
	request := s.loaded(version)
	done := make(chan error, 1)
	go func() {
		_, err := s.client.Stacks().Deploy(ctx, request)
		done <- err
	}()
	waitAtGate(s.t, db)
	lead := s.cluster.Leader()
	lead.Kill()
	open()
	if err := <-done; err != nil {
		s.t.Fatal(err)
	}
	s.serves(version)
	lead.Start()
	s.cluster.Same()
}

// TestAlone keeps releases where no other manager reaches them.
func TestAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "releases.db")
	c := archived(t, 1, "sql=sqlite:"+file)
	s := newSession(t, c)
	ctx := testcluster.Context(t, 2*testcluster.Bound)
	for version := range 2 {
		if _, err := s.client.Stacks().Deploy(ctx, s.loaded(1+version)); err != nil {
			t.Fatal(err)
		}
	}
	alone := c.Members[0]
	alone.Kill()
	alone.Start()
	s.wantHistory("shop", "1 superseded, 2 deployed")

	other := c.Add()
	other.Launch()
	s.refusedToStart(other, "sqlite is for a cluster of one manager: no other can reach it; this one's manager keeps its releases there")
	other.Args = []string{"--release-driver", "memory"}
	other.Launch()
	s.refusedToStart(other, "with --join-addr there are more")
	other.Args = nil

	// As an object of the cluster, the deployed release is there for others, too.
	exported := s.run(0, "stack", "export").Out
	alone.Stop()
	alone.Args = nil
	alone.Start()
	s.wantHistory("shop", "2 deployed")
	s.input(0, exported, "stack", "import", "-")
	s.wantHistory("shop", "1 superseded, 2 deployed")
	other.Start()
	s.wantHistory("shop", "1 superseded, 2 deployed")
	s.run(0, "stack", "rollback", "shop")
	s.serves(1)
	alone.Stop()
	alone.Args = []string{"--release-driver", "memory"}
	alone.Launch()
	s.refusedToStart(alone, "memory is for a cluster of one manager: no other can reach it; this one has 2")
}

// refusedToStart expects that a member that was launched ends, and says why.
func (s *session) refusedToStart(m *testcluster.Member, why string) {
	s.t.Helper()
	code, err := m.Process.WaitExit(testcluster.Bound)
	said, complaintErr := m.Process.Complaint()
	if err := errors.Join(err, complaintErr); err != nil || code != 1 && code != 2 {
		s.t.Fatalf("exit code %d, %v", code, err)
	}
	s.says(said, "error: ", why, "hint: use object, or a PostgreSQL that all managers reach")
}
