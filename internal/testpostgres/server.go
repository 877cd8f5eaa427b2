// Package testpostgres starts a PostgreSQL of a test's own, for tests that want a real one.
package testpostgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a PostgreSQL on a unix socket in a temporary folder.
type Server struct {
	Dir string // of the socket

	bin  string // folder of its programs
	data string
	as   *syscall.Credential
	cmd  *exec.Cmd
}

// programs finds the folder that PostgreSQL's programs are in, the newest of several.
func programs() (string, error) {
	var folders []string
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		folders = append(folders, string(bytes.TrimSpace(out)))
	}
	installed, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	slices.Reverse(installed)
	folders = append(folders, installed...)
	if path, err := exec.LookPath("initdb"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}
	for _, folder := range folders {
		if isProgram(folder, "initdb") && isProgram(folder, "postgres") {
			return folder, nil
		}
	}
	return "", errors.New("PostgreSQL is not installed: no initdb and postgres where pg_config tells, " +
		"in /usr/lib/postgresql, or in PATH; run scripts/postgres")
}

func isProgram(folder, name string) bool {
	info, err := os.Stat(filepath.Join(folder, name))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Start makes a database cluster and starts it, or skips the test, saying why. It is stopped when
// the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Skipf("left out: %v", err)
	}
	dir := ShortDir(t)
	s := &Server{bin: bin, Dir: dir, data: filepath.Join(dir, "data")}
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		s.as = ordinaryUser(t)
		if err := os.Chown(dir, int(s.as.Uid), int(s.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	s.init(t)
	s.Restart(t)
	t.Cleanup(func() { s.Stop(t, syscall.SIGINT) })
	return s
}

// ShortDir makes a temporary folder that another user can reach.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	const socket = "/.s.PGSQL.5432"
	if len(dir)+len(socket) > 107 {
		t.Skipf("left out: a socket in %s would have too long a name; set TMPDIR to a shorter folder", dir)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil { //nolint:gosec // others must pass through
		t.Fatal(err)
	}
	return dir
}

func ordinaryUser(t testing.TB) *syscall.Credential {
	t.Helper()
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			t.Fatal(err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	t.Skip("left out: PostgreSQL does not run as root, and there is no user postgres or nobody")
	return nil
}

func (s *Server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Dir = s.Dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

// init makes the cluster, if possible with an order of text that is not that of bytes.
func (s *Server) init(t testing.TB) {
	t.Helper()
	args := []string{"-D", s.data, "-U", "holdfast", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"}
	out, err := s.command(t.Context(), "initdb", append(args, "--locale-provider=icu", "--icu-locale=en")...).CombinedOutput()
	if err == nil {
		return
	}
	t.Logf("without ICU: %s", out)
	if err := os.RemoveAll(s.data); err != nil {
		t.Fatal(err)
	}
	if out, err := s.command(t.Context(), "initdb", args...).CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
}

// Restart starts a server that was stopped, and waits until it answers.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	s.cmd = s.command(context.Background(), "postgres", "-D", s.data, "-k", s.Dir, "-F",
		"-c", "listen_addresses=", "-c", "max_connections=60", "-c", "shared_buffers=16MB")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	err = s.cmd.Start()
	log.Close() //nolint:errcheck,gosec // the server has its own
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := pgx.Connect(t.Context(), s.DSN(""))
		if err == nil {
			if err := c.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			return
		}
		if time.Now().After(deadline) {
			text, readErr := os.ReadFile(log.Name())
			t.Fatalf("PostgreSQL does not answer: %v\n%s%v", err, text, readErr)
		}
	}
}

// Stop ends the server: SIGINT lets it end in order, SIGQUIT does not.
func (s *Server) Stop(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if s.cmd.ProcessState != nil {
		return
	}
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Error(err)
	}
	if err := s.cmd.Wait(); err != nil && signal == syscall.SIGINT {
		t.Errorf("postgres: %v", err)
	}
}

// DSN tells how to connect, to a schema if one is given.
func (s *Server) DSN(schema string) string { return DSN(s.Dir, schema) }

// DSN tells how to connect to a server whose socket is in a folder.
func DSN(dir, schema string) string {
	text := fmt.Sprintf("host=%s port=5432 user=holdfast dbname=postgres connect_timeout=60", dir)
	if schema != "" {
		text += " search_path=" + schema
	}
	return text
}

// connect makes a connection past all drivers.
func (s *Server) connect(t testing.TB) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Exec does a statement.
func (s *Server) Exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	c := s.connect(t)
	_, err := c.Exec(t.Context(), statement, args...)
	if err := errors.Join(err, c.Close(t.Context())); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Count gives the number that a query yields.
func (s *Server) Count(t testing.TB, query string) int {
	t.Helper()
	var n int
	s.scan(t, query, &n)
	return n
}

// Text gives the text that a query yields.
func (s *Server) Text(t testing.TB, query string) string {
	t.Helper()
	var text string
	s.scan(t, query, &text)
	return text
}

func (s *Server) scan(t testing.TB, query string, to any) {
	t.Helper()
	c := s.connect(t)
	err := c.QueryRow(t.Context(), query).Scan(to)
	if err := errors.Join(err, c.Close(t.Context())); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// Hold does a statement in a transaction that stays open until the function is called.
func (s *Server) Hold(t testing.TB, statement string) (release func()) {
	t.Helper()
	c := s.connect(t)
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Rollback(t.Context()), c.Close(t.Context())); err != nil {
			t.Error(err)
		}
	}
}
