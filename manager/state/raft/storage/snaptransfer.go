package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// OpenSnapshotFile opens the raw bytes of a snapshot file, to send them to a
// peer, and tells their length. They are not checked: the receiver does. The
// caller closes it; the file may be removed meanwhile. The error is
// fs.ErrNotExist if there is no such snapshot, or one of the disk.
func OpenSnapshotFile(fsys FS, dir string, index, term uint64) (io.ReadCloser, int64, error) {
	f, err := fsys.Open(snapPath(dir, index, term))
	if err != nil {
		return nil, 0, fmt.Errorf("open snapshot: %w", err)
	}
	size, err := f.Size()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open snapshot: %w", err), f.Close())
	}
	return f, size, nil
}

// SnapshotReceiver takes the raw bytes of a snapshot file from a peer. One
// goroutine uses it at a time.
type SnapshotReceiver struct {
	temp        tempFile
	index, term uint64
	size        int64
	err         error // final
}

// ReceiveSnapshot begins to receive the snapshot at an index and term, under a
// temporary name of its own (fs.ErrExist while another receiver has it in
// hand). The caller ends it with Commit or Abort, and bounds how much it
// writes. It blocks on the disk.
func ReceiveSnapshot(fsys FS, dir string, index, term uint64) (*SnapshotReceiver, error) {
	t, err := newTempFile(fsys, dir, snapName(index, term), streamSuffix)
	if err != nil {
		return nil, fmt.Errorf("receive snapshot: %w", err)
	}
	return &SnapshotReceiver{temp: t, index: index, term: term}, nil
}

// Write adds bytes. An error is final. It blocks on the disk.
func (r *SnapshotReceiver) Write(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.temp.file.Write(p)
	r.size += int64(n)
	if err != nil {
		r.err = fmt.Errorf("receive snapshot: %w", err)
	}
	return n, r.err
}

// Commit checks the whole container that was received (every checksum, the
// trailer, that it is the snapshot at the index and term asked for), syncs it,
// gives it its name and syncs the folder. Once it has returned nil the
// snapshot is complete and durable. A container that is not what it should be
// is a *DamageError or *VersionError, and the temporary file is removed. It
// blocks on the disk.
func (r *SnapshotReceiver) Commit() error {
	if r.err != nil {
		return r.err
	}
	err := r.temp.file.Sync()
	if err == nil {
		err = r.verify()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("receive snapshot: %w", err), r.Abort())
	}
	r.err = fmt.Errorf("snapshot receiver: %w", ErrClosed)
	if err := r.temp.place(); err != nil {
		return fmt.Errorf("receive snapshot: %w", err)
	}
	return nil
}

func (r *SnapshotReceiver) verify() error {
	in := io.NewSectionReader(r.temp.file, 0, r.size)
	sr, err := newSnapshotReader(r.temp.path(), in, r.size, r.index, r.term)
	if err != nil {
		return err
	}
	return sr.drain()
}

// Abort gives up and removes the temporary file. After Commit or Abort it does
// nothing.
func (r *SnapshotReceiver) Abort() error {
	if errors.Is(r.err, ErrClosed) {
		return nil
	}
	r.err = fmt.Errorf("snapshot receiver: %w", ErrClosed)
	return r.temp.drop()
}

// RemoveSnapshots removes every snapshot file that keep does not name, newer
// ones too, and all temporary ones, and syncs the folder. It is for the start,
// after Open: no snapshot may be in the making, nor be complete and without
// its marker yet. It blocks on the disk.
func RemoveSnapshots(fsys FS, dir string, keep ...Marker) error {
	return removeSnapshots(fsys, dir, func(index, term uint64, temp bool) bool {
		for _, m := range keep {
			if !temp && m.Index == index && m.Term == term {
				return false
			}
		}
		return true
	})
}

// RemoveOldSnapshots removes the complete snapshot files below an index and
// syncs the folder. It leaves temporary files and newer snapshots alone, so it
// may be called at any time, from any goroutine. It blocks on the disk.
func RemoveOldSnapshots(fsys FS, dir string, below uint64) error {
	return removeSnapshots(fsys, dir, func(index, _ uint64, temp bool) bool {
		return !temp && index < below
	})
}

func removeSnapshots(fsys FS, dir string, remove func(index, term uint64, temp bool) bool) error {
	names, err := fsys.ReadDir(snapDir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove snapshots: %w", err)
	}
	removed := false
	for _, name := range names {
		index, term, temp, ok := parseSnapName(name)
		if !ok || !remove(index, term, temp) {
			continue
		}
		if err := fsys.Remove(filepath.Join(snapDir(dir), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove snapshots: %w", err)
		}
		removed = true
	}
	if !removed {
		return nil
	}
	if err := fsys.SyncDir(snapDir(dir)); err != nil {
		return fmt.Errorf("remove snapshots: %w", err)
	}
	return nil
}
