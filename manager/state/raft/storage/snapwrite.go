package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// SnapshotWriter writes one snapshot file. One goroutine uses it at a time.
type SnapshotWriter struct {
	temp   tempFile
	totals snapTotals
	names  map[string]bool
	chunk  []byte // the records chunk being filled, with room for its header
	inside uint32 // records in it
	err    error  // final
}

// tempFile is a file under a temporary name, on its way to its own.
type tempFile struct {
	fs     FS
	file   File
	folder string
	name   string // the final one
	temp   string
}

func newTempFile(fsys FS, dir, name, suffix string) (tempFile, error) {
	if err := makeFolders(fsys, dir); err != nil {
		return tempFile{}, err
	}
	t := tempFile{fs: fsys, folder: snapDir(dir), name: name, temp: name + suffix}
	f, err := fsys.Create(filepath.Join(t.folder, t.temp))
	t.file = f
	return t, err
}

// path is what errors name.
func (t *tempFile) path() string { return filepath.Join(t.folder, t.temp) }

// place closes the file, which is complete and synced, and gives it its name.
func (t *tempFile) place() error {
	if err := t.file.Close(); err != nil {
		return err
	}
	if err := t.fs.Rename(t.path(), filepath.Join(t.folder, t.name)); err != nil {
		return err
	}
	return t.fs.SyncDir(t.folder)
}

func (t *tempFile) drop() error {
	err := t.file.Close()
	if rerr := t.fs.Remove(t.path()); !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

// CreateSnapshot begins the snapshot file at an index and term, under a
// temporary name, in dir's snapshot folder, which it makes if need be. It
// fails with fs.ErrExist while another writer has the same one in hand, or
// left it behind in a crash and RemoveSnapshots was not called. The caller
// ends it with Commit or Abort. It blocks on the disk.
func CreateSnapshot(fsys FS, dir string, index, term uint64) (*SnapshotWriter, error) {
	t, err := newTempFile(fsys, dir, snapName(index, term), makeSuffix)
	if err != nil {
		return nil, fmt.Errorf("create snapshot: %w", err)
	}
	w := &SnapshotWriter{temp: t, names: make(map[string]bool)}
	header, crc := encodeSnapHeader(index, term)
	w.totals.chain = crc
	if err := w.write(header[:]); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	w.chunk = make([]byte, chunkHeaderSize, chunkHeaderSize+chunkTarget+4<<10)
	return w, nil
}

func (w *SnapshotWriter) write(b []byte) error {
	if _, err := w.temp.file.Write(b); err != nil {
		return w.fail(err)
	}
	return nil
}

func (w *SnapshotWriter) fail(err error) error {
	w.err = fmt.Errorf("write snapshot: %w", err)
	return w.err
}

// Section begins a section: the records that follow are in it. A name is 1 to
// MaxSectionName printable ASCII characters without a space and is used once;
// there are at most MaxSections. A section without records leaves no trace for
// the reader. An error is final. It may block on the disk.
func (w *SnapshotWriter) Section(name string) error {
	if w.err != nil {
		return w.err
	}
	if err := checkSectionName(name); err != nil {
		return w.fail(err)
	}
	if w.names[name] || len(w.names) >= MaxSections {
		return w.fail(fmt.Errorf("section %q comes twice or is one too many", name))
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.names[name] = true
	w.totals.sections++
	w.chunk = append(w.chunk, name...)
	return w.emit(chunkSection, 0)
}

// Record writes one record, at most MaxRecordSize bytes, to the section. It
// copies b. An error is final. It blocks on the disk when the buffer is full.
func (w *SnapshotWriter) Record(b []byte) error {
	switch {
	case w.err != nil:
		return w.err
	case w.totals.sections == 0:
		return w.fail(errors.New("record before the first section"))
	case len(b) > MaxRecordSize:
		return w.fail(fmt.Errorf("record of %d bytes exceeds %d", len(b), MaxRecordSize))
	}
	w.chunk = binary.LittleEndian.AppendUint32(w.chunk, uint32(len(b)))
	w.chunk = append(w.chunk, b...)
	w.inside++
	w.totals.records++
	w.totals.bytes += uint64(len(b))
	if len(w.chunk) < chunkHeaderSize+chunkTarget {
		return nil
	}
	return w.flush()
}

// flush writes the records chunk, if there is one.
func (w *SnapshotWriter) flush() error {
	if w.inside == 0 {
		return nil
	}
	n := w.inside
	w.inside = 0
	return w.emit(chunkRecords, n)
}

// emit writes the chunk whose payload is in the buffer.
func (w *SnapshotWriter) emit(kind byte, records uint32) error {
	crc := chunkHeader{kind: kind, number: w.totals.chunks, records: records}.put(w.chunk)
	if err := w.write(w.chunk); err != nil {
		return err
	}
	w.totals.chunks++
	w.totals.chain = extendChain(w.totals.chain, crc)
	if cap(w.chunk) > keepBuffer {
		w.chunk = make([]byte, chunkHeaderSize, chunkHeaderSize+chunkTarget)
	}
	w.chunk = w.chunk[:chunkHeaderSize]
	return nil
}

// Commit writes the trailer, syncs the file, gives it its name and syncs the
// folder: once it has returned nil the snapshot is complete and durable, and a
// marker that names it may be written. On an error the temporary file is
// removed as far as possible. It blocks on the disk.
func (w *SnapshotWriter) Commit() error {
	if w.err != nil {
		return w.err
	}
	err := w.flush()
	if err == nil {
		w.chunk = w.totals.append(w.chunk)
		err = w.emit(chunkTrailer, 0)
	}
	if err == nil {
		err = w.temp.file.Sync()
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	w.err = fmt.Errorf("snapshot writer: %w", ErrClosed)
	if err := w.temp.place(); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// Abort gives the snapshot up and removes the temporary file. After Commit or
// Abort it does nothing.
func (w *SnapshotWriter) Abort() error {
	if errors.Is(w.err, ErrClosed) {
		return nil
	}
	w.err = fmt.Errorf("snapshot writer: %w", ErrClosed)
	return w.temp.drop()
}
