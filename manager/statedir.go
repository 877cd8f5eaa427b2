package manager

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/errkind"
	"holdfast/internal/id"
)

// stateDir is a manager's folder: the lock, the node's ID, and the log.
type stateDir struct {
	path string
	lock *os.File
}

// openStateDir locks the folder. No other manager can have it until close.
func openStateDir(path string) (*stateDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil { //nolint:gosec // a file descriptor
		lock.Close() //nolint:errcheck,gosec // nothing was written
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errkind.Field("--state-dir", "%s is in use by another manager", path).
				WithHint("stop that one, or give this one a folder of its own")
		}
		return nil, fmt.Errorf("lock state folder %s: %w", path, err)
	}
	return &stateDir{path: path, lock: lock}, nil
}

func (d *stateDir) close() error { return d.lock.Close() }

func (d *stateDir) raft() string { return filepath.Join(d.path, "raft") }

// nodeID returns the ID that this node has made for itself, and makes it the first time. It
// is durable before it is told to anybody.
func (d *stateDir) nodeID() (string, error) {
	path := filepath.Join(d.path, "node-id")
	data, err := os.ReadFile(path)
	switch {
	case err == nil && len(strings.TrimSpace(string(data))) == id.Length:
		return strings.TrimSpace(string(data)), nil
	case err == nil:
		return "", fmt.Errorf("state folder: %s does not hold a node ID", path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("state folder: %w", err)
	}
	made := id.New()
	if err := writeDurably(path, made+"\n"); err != nil {
		return "", fmt.Errorf("state folder: %w", err)
	}
	return made, nil
}

// writeDurably makes a file that is there whole, or not at all.
func writeDurably(path, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// listenControl listens on a unix socket that only this user can open. A socket that nobody
// serves is replaced.
func listenControl(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if info, err := os.Lstat(path); err == nil {
		// To connect to a file of another kind is refused as if nobody served a socket.
		if info.Mode().Type() != fs.ModeSocket {
			return nil, errkind.Field("--listen-control-api", "%s is there and is no socket", path).
				WithHint("give a path at which nothing is")
		}
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			conn.Close() //nolint:errcheck,gosec // nothing was sent
			return nil, errkind.Field("--listen-control-api", "another process serves unix://%s", path)
		}
		if !errors.Is(err, unix.ECONNREFUSED) {
			return nil, errkind.Field("--listen-control-api", "cannot tell who serves unix://%s: %v", path, err)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("control socket: %w", err)
		}
	}
	// Made in a folder of its own, closed to others, and moved when its mode is set: at no
	// moment can anybody else connect.
	tmp, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	made := filepath.Join(tmp, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err == nil {
		l.SetUnlinkOnClose(false)
		if err = os.Chmod(made, 0o600); err == nil {
			err = os.Rename(made, path)
		}
	}
	if err = errors.Join(err, os.RemoveAll(tmp)); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return socket{UnixListener: l, path: path}, nil
}

// socket removes its file when it is closed.
type socket struct {
	*net.UnixListener
	path string
}

// Close implements net.Listener.
func (s socket) Close() error {
	err := s.UnixListener.Close()
	if removeErr := os.Remove(s.path); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}
