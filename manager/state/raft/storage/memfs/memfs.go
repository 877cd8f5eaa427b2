// Package memfs is a disk in memory that breaks as disks do, for tests and
// the simulator.
//
// Each file has bytes that readers see and a durable image. What was written
// and not synced is kept sector by sector (512 bytes), one version for each
// write: in a crash each sector keeps any one of them, or what was durable, and
// the length is one of those the file had. Names likewise: what was created,
// renamed or removed in a folder and not synced survives a crash in part, in
// order or not. A rename is atomic. The choices come from the seed.
//
// A sync that an injected fault makes fail behaves as Linux does: what it
// should have written stays readable, is not durable, and no later sync writes
// it unless it is written again.
//
// All methods may be called from any goroutine; a File from one at a time.
package memfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"

	"holdfast/manager/state/raft/storage"
)

// ErrCrashed is returned by everything after the crash that CrashAt set until
// Crash was called, and by files opened before a Crash or Restart.
var ErrCrashed = errors.New("memfs: crashed")

// Op is a kind of operation that changes the disk.
type Op string

// The operations that count as effects and that a fault is asked about.
const (
	OpMkdir    Op = "mkdir"
	OpCreate   Op = "create"
	OpWrite    Op = "write"
	OpTruncate Op = "truncate"
	OpSync     Op = "sync"
	OpRename   Op = "rename"
	OpRemove   Op = "remove"
	OpSyncDir  Op = "syncdir"
)

// FS is a disk. Make one with New.
type FS struct {
	mu      sync.Mutex
	rng     *rand.Rand
	now     tree
	durable tree
	pending []dirOp
	gen     int // goes up with each crash: older files are dead

	effects int
	crashAt int
	crashed bool
	fault   func(Op, string) error
}

var _ storage.FS = (*FS)(nil)

// tree is the names of a disk.
type tree struct {
	files map[string]*inode
	dirs  map[string]bool
}

func newTree() tree {
	return tree{files: map[string]*inode{}, dirs: map[string]bool{"/": true, ".": true}}
}

func (t tree) clone() tree { return tree{maps.Clone(t.files), maps.Clone(t.dirs)} }

// dirOp is a change of names that is not durable yet.
type dirOp struct {
	op       Op
	dir      string
	path, to string
	ino      *inode
}

func (o dirOp) apply(t tree) {
	switch o.op {
	case OpMkdir:
		t.dirs[o.path] = true
	case OpCreate:
		t.files[o.path] = o.ino
	case OpRemove:
		if t.files[o.path] == o.ino {
			delete(t.files, o.path)
		}
	case OpRename:
		if t.files[o.path] == o.ino {
			delete(t.files, o.path)
		}
		t.files[o.to] = o.ino
	}
}

// New returns an empty disk, whose folders "/" and "." exist. The seed decides
// what crashes keep.
func New(seed uint64) *FS {
	return &FS{rng: rand.New(rand.NewPCG(seed, 0x68f)), now: newTree(), durable: newTree()}
}

// SetFault has f asked before each operation that changes the disk; an error
// it returns fails the operation: a write after a part of it was written, a
// sync as described above. nil sets none. f must not call the FS.
func (m *FS) SetFault(f func(op Op, path string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

// Effects returns how many operations have changed the disk.
func (m *FS) Effects() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.effects
}

// CrashAt makes the n-th effect from now fail half done, and everything after
// it, until Crash. 0 sets none.
func (m *FS) CrashAt(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crashAt = 0
	if n > 0 {
		m.crashAt = m.effects + n
	}
}

// Crashed tells whether the crash that CrashAt set has come.
func (m *FS) Crashed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.crashed
}

// Crash is a power loss and the start after it: only what was durable, and
// some of what was not, is there. Files opened before are dead.
func (m *FS) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	inOrder, all := m.rng.IntN(2) == 0, m.rng.IntN(4)
	for _, op := range m.pending {
		keep := all == 1 || all > 1 && m.rng.IntN(2) == 0
		if !keep && inOrder {
			break
		}
		if keep {
			op.apply(m.durable)
		}
	}
	m.pending = nil
	for _, path := range slices.Sorted(maps.Keys(m.durable.files)) {
		if !m.durable.dirs[filepath.Dir(path)] {
			delete(m.durable.files, path)
			continue
		}
		m.durable.files[path].crash(m.rng)
	}
	for _, dir := range slices.Sorted(maps.Keys(m.durable.dirs)) {
		if !m.durable.dirs[filepath.Dir(dir)] {
			delete(m.durable.dirs, dir)
		}
	}
	m.now = m.durable.clone()
	m.restart()
}

// Restart is the death of the process and the start of another: the disk is
// as it was seen, what was not synced is still not durable.
func (m *FS) Restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restart()
}

func (m *FS) restart() {
	m.gen++
	m.crashAt, m.crashed = 0, false
}

// Clone returns a copy of the disk as it is seen, all of it durable, without
// faults.
func (m *FS) Clone(seed uint64) *FS {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := New(seed)
	c.now.dirs = maps.Clone(m.now.dirs)
	for path, ino := range m.now.files {
		c.now.files[path] = newInode(ino.data)
	}
	c.durable = c.now.clone()
	return c
}

// ReadFile returns a copy of a file's bytes.
func (m *FS) ReadFile(path string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ino := m.now.files[filepath.Clean(path)]
	if ino == nil {
		return nil, notExist("read", path)
	}
	return slices.Clone(ino.data), nil
}

// WriteFile makes a file, and its folders, with these bytes, all durable.
func (m *FS) WriteFile(path string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	path = filepath.Clean(path)
	for _, t := range []tree{m.now, m.durable} {
		for dir := filepath.Dir(path); !t.dirs[dir]; dir = filepath.Dir(dir) {
			t.dirs[dir] = true
		}
	}
	ino := newInode(data)
	m.now.files[path], m.durable.files[path] = ino, ino
}

func notExist(op, path string) error {
	return &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
}

// effect counts an operation and asks the fault. half is set for the one at
// which the disk crashes: it is done in part, and the error returned.
func (m *FS) effect(op Op, path string) (half bool, err error) {
	if m.crashed {
		return false, ErrCrashed
	}
	m.effects++
	if m.effects == m.crashAt {
		m.crashed = true
		return true, ErrCrashed
	}
	if m.fault != nil {
		if err := m.fault(op, path); err != nil {
			return false, fmt.Errorf("memfs: %s %s: %w", op, path, err)
		}
	}
	return false, nil
}

// names carries out a change of names. At the crash it is done or not.
func (m *FS) names(o dirOp) error {
	half, err := m.effect(o.op, o.path)
	if err != nil && (!half || m.rng.IntN(2) == 0) {
		return err
	}
	o.apply(m.now)
	m.pending = append(m.pending, o)
	return err
}
