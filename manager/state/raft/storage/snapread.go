package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// SnapshotReader reads one snapshot file. One goroutine uses it at a time.
type SnapshotReader struct {
	closer io.Closer
	in     chunkReader
	names  map[string]bool
	name   string // the section
	rest   []byte // of the records chunk, not yet returned
	left   uint32 // records in it
	err    error  // final
}

// chunkReader reads the chunks of a container. It is handed the container's
// length, so that no length in it makes it allocate more.
type chunkReader struct {
	file   string
	r      io.Reader
	size   int64
	offset int64
	totals snapTotals
	buf    []byte
}

// OpenSnapshot opens the snapshot file at an index and term. The header is
// checked at once, the rest as it is read. Errors: fs.ErrNotExist,
// *DamageError, *VersionError, those of the disk. The caller closes it.
func OpenSnapshot(fsys FS, dir string, index, term uint64) (*SnapshotReader, error) {
	path := snapPath(dir, index, term)
	f, err := fsys.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open snapshot: %w", err), f.Close())
	}
	r, err := newSnapshotReader(path, f, size, index, term)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.closer = f
	return r, nil
}

func newSnapshotReader(file string, in io.Reader, size int64, index, term uint64) (*SnapshotReader, error) {
	r := &SnapshotReader{
		in:    chunkReader{file: file, r: in, size: size},
		names: make(map[string]bool),
	}
	p, err := r.in.read(nil, snapHeaderSize)
	if err != nil {
		return nil, err
	}
	r.in.totals.chain, err = decodeSnapHeader(file, p, index, term)
	return r, err
}

// Next returns the next record and the section it is in. The record is valid
// until the next call: a caller that keeps it copies it (a decoded gogo
// message has copied its bytes). io.EOF comes only after the trailer was read
// and agrees with everything before it; until then nothing that was read may
// be put to use. Any error is final. It blocks on the disk.
func (r *SnapshotReader) Next() (section string, record []byte, err error) {
	if r.err == nil {
		record, r.err = r.next()
	}
	if r.err != nil {
		return "", nil, r.err
	}
	return r.name, record, nil
}

func (r *SnapshotReader) next() ([]byte, error) {
	for r.left == 0 {
		h, payload, err := r.in.next()
		if err != nil {
			return nil, err
		}
		switch h.kind {
		case chunkSection:
			r.name = string(payload)
			if err := checkSectionName(r.name); err != nil || h.records != 0 {
				return nil, r.in.damaged("chunk %d: section without a proper name", h.number)
			}
			if r.names[r.name] || len(r.names) >= MaxSections {
				return nil, r.in.damaged("section %q comes twice or is one too many", r.name)
			}
			r.names[r.name] = true
			r.in.totals.sections++
		case chunkRecords:
			if r.name == "" || h.records == 0 {
				return nil, r.in.damaged("chunk %d: records out of place", h.number)
			}
			r.rest, r.left = payload, h.records
		default:
			return nil, r.in.damaged("chunk %d: unknown kind %d", h.number, h.kind)
		}
	}
	return r.split()
}

// split takes the next record off the chunk.
func (r *SnapshotReader) split() ([]byte, error) {
	number := r.in.totals.chunks - 1
	if len(r.rest) < 4 {
		return nil, r.in.damaged("chunk %d has fewer records than it says", number)
	}
	n := uint64(binary.LittleEndian.Uint32(r.rest))
	r.rest = r.rest[4:]
	if n > uint64(len(r.rest)) || n > MaxRecordSize {
		return nil, r.in.damaged("chunk %d has a record of %d bytes and %d are left", number, n, len(r.rest))
	}
	rec := r.rest[:n:n]
	r.rest = r.rest[n:]
	r.left--
	if r.left == 0 && len(r.rest) > 0 {
		return nil, r.in.damaged("chunk %d has %d bytes after its last record", number, len(r.rest))
	}
	r.in.totals.records++
	r.in.totals.bytes += n
	return rec, nil
}

// Close closes the file. It says nothing about the snapshot: io.EOF does.
func (r *SnapshotReader) Close() error {
	if r.closer == nil {
		return nil
	}
	c := r.closer
	r.closer = nil
	r.err = fmt.Errorf("snapshot reader: %w", ErrClosed)
	return c.Close()
}

func (c *chunkReader) damaged(format string, args ...any) error {
	return &DamageError{File: c.file, Offset: c.offset, Record: c.totals.chunks, Reason: fmt.Sprintf(format, args...)}
}

// read reads n bytes, which are within the container, after those in buf.
func (c *chunkReader) read(buf []byte, n int64) ([]byte, error) {
	if n > c.size-c.offset {
		return nil, c.damaged("it ends at %d, without a trailer", c.size)
	}
	at := len(buf)
	if need := at + int(n); cap(buf) < need {
		buf = append(make([]byte, 0, need), buf...)
	}
	buf = buf[:at+int(n)]
	if _, err := io.ReadFull(c.r, buf[at:]); err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", c.file, err)
	}
	c.offset += n
	return buf, nil
}

// next returns the next chunk, checked, or io.EOF after the trailer. The
// payload is valid until the next call.
func (c *chunkReader) next() (chunkHeader, []byte, error) {
	b, err := c.read(c.buf[:0], chunkHeaderSize)
	if err != nil {
		return chunkHeader{}, nil, err
	}
	h, ok := decodeChunkHeader(b)
	if !ok || h.length > maxChunkSize || h.number != c.totals.chunks {
		return h, nil, c.damaged("header of chunk %d", c.totals.chunks)
	}
	if b, err = c.read(b, int64(h.length)); err != nil {
		return h, nil, err
	}
	c.buf = b
	if chunkChecksum(b) != h.crc {
		return h, nil, c.damaged("checksum of chunk %d, which ends here", h.number)
	}
	payload := b[chunkHeaderSize:]
	if h.kind == chunkTrailer {
		return h, nil, c.trailer(payload)
	}
	c.totals.chunks++
	c.totals.chain = extendChain(c.totals.chain, h.crc)
	return h, payload, nil
}

// trailer returns io.EOF if the trailer agrees with what was read and nothing
// follows it.
func (c *chunkReader) trailer(payload []byte) error {
	if want := c.totals.append(make([]byte, 0, snapTrailerSize)); string(want) != string(payload) {
		return c.damaged("the trailer does not agree with what comes before it")
	}
	if c.offset != c.size {
		return c.damaged("%d bytes after the trailer", c.size-c.offset)
	}
	return io.EOF
}

// drain reads to the end and reports whether all is well.
func (r *SnapshotReader) drain() error {
	for {
		if _, _, err := r.Next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// verifySnapshot reads a whole snapshot file.
func verifySnapshot(fsys FS, dir string, index, term uint64) error {
	r, err := OpenSnapshot(fsys, dir, index, term)
	if err != nil {
		return err
	}
	return errors.Join(r.drain(), r.Close())
}
