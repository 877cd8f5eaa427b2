package memfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
)

const sectorSize = 512

// inode is a file's content.
type inode struct {
	data    []byte // as readers see it
	durable []byte
	sectors map[int64]*sector // those written since they were last synced

	sizes     []int // lengths since the last one that was synced
	sizeDirty bool
}

// sector has the versions that a sector went through and that are not durable.
type sector struct {
	versions [][sectorSize]byte
	dirty    bool // a sync writes it; false after a sync that failed
}

func newInode(data []byte) *inode {
	return &inode{data: slices.Clone(data), durable: slices.Clone(data), sectors: map[int64]*sector{}}
}

// write puts b at an offset.
func (n *inode) write(off int64, b []byte) {
	if len(b) == 0 {
		return
	}
	end := int(off) + len(b)
	if end > len(n.data) {
		n.resize(end)
	}
	if end > len(n.durable) {
		n.sizeDirty = true
	}
	copy(n.data[off:], b)
	n.touch(off, int64(end))
}

// touch adds a version to each sector between two offsets.
func (n *inode) touch(from, to int64) {
	for i := from / sectorSize; i*sectorSize < to; i++ {
		s := n.sectors[i]
		if s == nil {
			s = &sector{}
			n.sectors[i] = s
		}
		var v [sectorSize]byte
		if at := int(i * sectorSize); at < len(n.data) {
			copy(v[:], n.data[at:])
		}
		s.versions = append(s.versions, v)
		s.dirty = true
	}
}

func (n *inode) resize(size int) {
	n.data = resized(n.data, size)
	n.sizes = append(n.sizes, size)
	n.sizeDirty = true
}

func resized(b []byte, size int) []byte {
	if size <= len(b) {
		return b[:size:size]
	}
	return append(b, make([]byte, size-len(b))...)
}

func (n *inode) truncate(size int) {
	old := len(n.data)
	n.resize(size)
	if size < old {
		n.touch(int64(size), int64(old))
	}
}

// sync makes durable what is dirty.
func (n *inode) sync() {
	if n.sizeDirty {
		n.durable = resized(n.durable, len(n.data))
		n.sizes, n.sizeDirty = nil, false
	}
	for i, s := range n.sectors {
		if !s.dirty {
			continue
		}
		if at := int(i * sectorSize); at < len(n.durable) {
			copy(n.durable[at:], s.versions[len(s.versions)-1][:])
		}
		delete(n.sectors, i)
	}
}

// lose is a sync that fails: no sector is dirty any more, nor durable. The
// length is the journal's: the next sync writes it.
func (n *inode) lose() {
	for _, s := range n.sectors {
		s.dirty = false
	}
}

// crash leaves the durable bytes and some of the others.
func (n *inode) crash(rng *rand.Rand) {
	mode := rng.IntN(4) // 0: nothing survives, 1: everything, else some
	pick := func(versions int) int {
		switch mode {
		case 0:
			return 0
		case 1:
			return versions
		}
		return rng.IntN(versions + 1)
	}
	if k := pick(len(n.sizes)); k > 0 {
		n.durable = resized(n.durable, n.sizes[k-1])
	}
	for _, i := range slices.Sorted(maps.Keys(n.sectors)) {
		s := n.sectors[i]
		k, at := pick(len(s.versions)), int(i*sectorSize)
		if k > 0 && at < len(n.durable) {
			copy(n.durable[at:], s.versions[k-1][:])
		}
	}
	*n = *newInode(n.durable)
}

// file is an open file.
type file struct {
	fs       *FS
	ino      *inode
	path     string
	gen      int
	pos      int64
	writable bool
	closed   bool
}

// usable returns why the file cannot be used. The FS is locked.
func (f *file) usable(write bool) error {
	switch {
	case f.closed:
		return fs.ErrClosed
	case f.fs.crashed || f.gen != f.fs.gen:
		return ErrCrashed
	case write && !f.writable:
		return fs.ErrPermission
	}
	return nil
}

func (f *file) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.pos)
	f.pos += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usable(false); err != nil {
		return 0, err
	}
	if off >= int64(len(f.ino.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.ino.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) Write(p []byte) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usable(true); err != nil {
		return 0, err
	}
	n := len(p)
	_, err := f.fs.effect(OpWrite, f.path)
	if err != nil {
		n = f.fs.rng.IntN(n + 1)
	}
	f.ino.write(f.pos, p[:n])
	f.pos += int64(n)
	return n, err
}

func (f *file) Seek(offset int64, whence int) (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += f.pos
	case io.SeekEnd:
		offset += int64(len(f.ino.data))
	}
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	f.pos = offset
	return offset, nil
}

func (f *file) Truncate(size int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usable(true); err != nil {
		return err
	}
	half, err := f.fs.effect(OpTruncate, f.path)
	if err == nil || half && f.fs.rng.IntN(2) == 0 {
		f.ino.truncate(int(size))
	}
	return err
}

func (f *file) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.usable(false); err != nil {
		return err
	}
	half, err := f.fs.effect(OpSync, f.path)
	switch {
	case err == nil:
		f.ino.sync()
	case !half:
		f.ino.lose()
	}
	return err
}

func (f *file) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return int64(len(f.ino.data)), f.usable(false)
}

func (f *file) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	return nil
}
