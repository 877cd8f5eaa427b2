package storage

import (
	"io"
	"io/fs"
)

// FS is the disk, passed in so that a simulator can break it. An
// implementation may be used from several goroutines at once.
//
// The package relies on what POSIX file systems promise and no more: what a
// file holds survives a crash once its Sync has returned nil; that a name
// exists, was renamed or removed survives once SyncDir of its folder has
// returned nil; before that each may or may not, sector by sector and name by
// name; a rename is atomic.
type FS interface {
	// MkdirAll makes the folder and its parents where they do not exist.
	MkdirAll(path string, perm fs.FileMode) error
	// Create makes a new file of mode 0600, open for reading and writing. It
	// is an error (fs.ErrExist) if the name exists.
	Create(path string) (File, error)
	// OpenAppend opens an existing file for reading and writing. The position
	// is the start of the file: the caller seeks.
	OpenAppend(path string) (File, error)
	// Open opens an existing file for reading only.
	Open(path string) (File, error)
	// ReadDir returns the names in the folder, sorted.
	ReadDir(path string) ([]string, error)
	// Rename moves a file to another name, which it replaces, at once.
	Rename(oldPath, newPath string) error
	// Remove removes a name. A file still open stays readable.
	Remove(path string) error
	// SyncDir makes the names in the folder durable.
	SyncDir(path string) error
}

// File is an open file of an FS. One goroutine uses it at a time.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.Seeker
	io.Closer
	// Sync makes the file's bytes and its length durable. An error is final:
	// what was written before it may or may not be on the disk, and a second
	// Sync that succeeds says nothing about it.
	Sync() error
	// Truncate changes the length.
	Truncate(size int64) error
	// Size returns the length.
	Size() (int64, error)
}
