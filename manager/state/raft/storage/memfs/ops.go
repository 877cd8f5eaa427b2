package memfs

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/manager/state/raft/storage"
)

// MkdirAll implements storage.FS. A new folder is durable once its parent was
// synced.
func (m *FS) MkdirAll(path string, _ fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var missing []string
	for dir := filepath.Clean(path); !m.now.dirs[dir]; dir = filepath.Dir(dir) {
		missing = append(missing, dir)
	}
	for _, dir := range slices.Backward(missing) {
		if err := m.names(dirOp{op: OpMkdir, dir: filepath.Dir(dir), path: dir}); err != nil {
			return err
		}
	}
	if m.crashed {
		return ErrCrashed
	}
	return nil
}

// Create implements storage.FS.
func (m *FS) Create(path string) (storage.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	path = filepath.Clean(path)
	if !m.now.dirs[filepath.Dir(path)] {
		return nil, notExist("create", path)
	}
	if m.now.files[path] != nil || m.now.dirs[path] {
		return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	ino := newInode(nil)
	if err := m.names(dirOp{op: OpCreate, dir: filepath.Dir(path), path: path, ino: ino}); err != nil {
		return nil, err
	}
	return &file{fs: m, ino: ino, path: path, gen: m.gen, writable: true}, nil
}

// OpenAppend implements storage.FS.
func (m *FS) OpenAppend(path string) (storage.File, error) { return m.open(path, true) }

// Open implements storage.FS.
func (m *FS) Open(path string) (storage.File, error) { return m.open(path, false) }

func (m *FS) open(path string, writable bool) (storage.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.crashed {
		return nil, ErrCrashed
	}
	path = filepath.Clean(path)
	ino := m.now.files[path]
	if ino == nil {
		return nil, notExist("open", path)
	}
	return &file{fs: m, ino: ino, path: path, gen: m.gen, writable: writable}, nil
}

// ReadDir implements storage.FS.
func (m *FS) ReadDir(path string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.crashed {
		return nil, ErrCrashed
	}
	path = filepath.Clean(path)
	if !m.now.dirs[path] {
		return nil, notExist("readdir", path)
	}
	var names []string
	add := func(p string) {
		if p != path && filepath.Dir(p) == path {
			names = append(names, strings.TrimPrefix(filepath.Base(p), "/"))
		}
	}
	for p := range m.now.files {
		add(p)
	}
	for p := range m.now.dirs {
		add(p)
	}
	slices.Sort(names)
	return names, nil
}

// Rename implements storage.FS, for files within one folder.
func (m *FS) Rename(oldPath, newPath string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	oldPath, newPath = filepath.Clean(oldPath), filepath.Clean(newPath)
	ino := m.now.files[oldPath]
	if ino == nil || filepath.Dir(oldPath) != filepath.Dir(newPath) {
		return notExist("rename", oldPath)
	}
	return m.names(dirOp{op: OpRename, dir: filepath.Dir(newPath), path: oldPath, to: newPath, ino: ino})
}

// Remove implements storage.FS, for files.
func (m *FS) Remove(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	path = filepath.Clean(path)
	ino := m.now.files[path]
	if ino == nil {
		return notExist("remove", path)
	}
	return m.names(dirOp{op: OpRemove, dir: filepath.Dir(path), path: path, ino: ino})
}

// SyncDir implements storage.FS.
func (m *FS) SyncDir(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	path = filepath.Clean(path)
	if !m.now.dirs[path] {
		return notExist("syncdir", path)
	}
	if _, err := m.effect(OpSyncDir, path); err != nil {
		return err
	}
	m.pending = slices.DeleteFunc(m.pending, func(o dirOp) bool {
		if o.dir != path {
			return false
		}
		o.apply(m.durable)
		return true
	})
	return nil
}
