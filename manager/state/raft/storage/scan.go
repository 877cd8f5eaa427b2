package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// record is one decoded record. Its body lies in the segment's bytes.
type record struct {
	seq, index, term uint64
	kind, typ        byte
	body             []byte
	offset           int64
}

// batchHeader is a decoded batch header whose checksum is right.
type batchHeader struct {
	records uint32
	length  uint64
	synced  int64
	seq     uint64
	mask    uint64
}

// scanner reads the batches of one segment file held in memory.
type scanner struct {
	file   string
	data   []byte // changed: masks are taken off
	header *segmentHeader
	last   bool // the newest segment: its end may be torn

	end    int64  // of the last whole batch
	synced int64  // all before it is known to be synced
	chain  uint32 // running checksum of the batches
	next   uint64 // sequence number of the next record
	closed bool   // the last batch is the closing mark
}

// openedBatchSize is the length of the batch that Open writes: all that can be
// torn after a closing mark, as it is synced before anything follows it. There
// may be several, of runs that died before that.
const openedBatchSize = minBatchSize

// scan calls visit for each record of the segment, in order. After it, end is
// where the next batch goes; what lies beyond is a torn end.
func (s *scanner) scan(visit func(*record) error) error {
	s.end = segmentHeaderSize
	s.synced = s.header.created
	s.chain = s.header.crc
	s.next = s.header.firstSeq
	size := int64(len(s.data))
	if s.header.created > size {
		return s.damaged(size, "the file is %d bytes long and was %d when it was made", size, s.header.created)
	}
	for s.end < size {
		h, err := s.batchAt(s.end)
		if err != nil {
			return s.torn(err)
		}
		if err := s.records(h, visit); err != nil {
			return err
		}
		s.chain = extendChain(s.chain, binary.LittleEndian.Uint32(s.data[s.end+int64(h.length)-batchTrailerSize:]))
		s.synced = max(s.synced, h.synced)
		s.end += int64(h.length)
	}
	return nil
}

func (s *scanner) damaged(offset int64, format string, args ...any) *DamageError {
	return &DamageError{File: s.file, Offset: offset, Record: s.next, Reason: fmt.Sprintf(format, args...)}
}

// headerAt returns the batch header at an offset if there is a whole one there
// whose checksum, segment and offset are right.
func (s *scanner) headerAt(at int64) (batchHeader, bool) {
	if at+batchHeaderSize > int64(len(s.data)) {
		return batchHeader{}, false
	}
	le := binary.LittleEndian
	p := s.data[at:][:batchHeaderSize]
	if le.Uint32(p) != batchMagic || le.Uint32(p[60:]) != checksum(s.header.crc, p[:60]) ||
		le.Uint64(p[16:]) != s.header.number || le.Uint64(p[24:]) != uint64(at) {
		return batchHeader{}, false
	}
	h := batchHeader{
		records: le.Uint32(p[4:]),
		length:  le.Uint64(p[8:]),
		synced:  int64(le.Uint64(p[32:])),
		seq:     le.Uint64(p[40:]),
		mask:    le.Uint64(p[48:]),
	}
	ok := h.length >= minBatchSize && h.length <= MaxBatchSize+minBatchSize && h.length%batchAlign == 0 &&
		h.records > 0 && h.synced >= 0 && h.synced <= at
	return h, ok
}

// batchAt checks that a whole batch is at the offset. Its records are not
// looked at.
func (s *scanner) batchAt(at int64) (batchHeader, *DamageError) {
	h, ok := s.headerAt(at)
	if !ok {
		return h, s.damaged(at, "batch header")
	}
	if h.length > uint64(int64(len(s.data))-at) {
		return h, s.damaged(at, "the file ends within a batch of %d bytes", h.length)
	}
	le := binary.LittleEndian
	b := s.data[at:][:h.length]
	t := b[len(b)-batchTrailerSize:]
	if le.Uint32(t[4:]) != trailerMagic || le.Uint64(t[8:]) != h.length {
		return h, s.damaged(at+int64(h.length)-batchTrailerSize, "batch trailer")
	}
	if le.Uint32(t) != checksum(0, b[:len(b)-batchTrailerSize]) {
		return h, s.damaged(at, "batch checksum")
	}
	return h, nil
}

// torn decides about the batch at s.end, found damaged: nil if it is the torn
// end of the log, where a missing end or a sector of zeros shows that it was
// never synced, and nothing after it says that it was. Else the error.
func (s *scanner) torn(found *DamageError) error {
	at, size := s.end, int64(len(s.data))
	h, ok := s.headerAt(at)
	if !s.last || at < s.header.created {
		return s.name(at, h, ok, found)
	}
	from := at + batchAlign
	switch {
	case ok && h.length > uint64(size-at):
		from = size // the end is missing
	case ok:
		from = at + int64(h.length)
		if !zeroSector(s.data[:from], at) {
			return s.name(at, h, ok, found)
		}
	case size-at < batchHeaderSize:
		// the end is missing
	default:
		if to := min(nextSector(at), size); !allZero(s.data[at:to]) {
			return found
		}
	}
	if ok && s.closed && h.length != openedBatchSize {
		return s.damaged(at, "%s, after the closing mark", found.Reason)
	}
	for p := from; p+batchHeaderSize <= size; p += batchAlign {
		later, ok := s.headerAt(p)
		if ok && later.synced > at {
			return s.damaged(at, "%s, below offset %d, up to which the batch at %d says that all is synced",
				found.Reason, later.synced, p)
		}
		if ok && s.closed && later.length != openedBatchSize {
			return s.damaged(at, "%s, after the closing mark and before the batch at %d", found.Reason, p)
		}
	}
	return nil
}

// name makes the error for a damaged batch name the first damaged record, if
// its header is whole.
func (s *scanner) name(at int64, h batchHeader, ok bool, found *DamageError) error {
	end := at + int64(min(h.length, MaxBatchSize+minBatchSize))
	if !ok || end > int64(len(s.data)) {
		return found
	}
	body := bytes.Clone(s.data[at+batchHeaderSize : end-batchTrailerSize])
	applyMask(body, h.mask)
	_, off, err := splitRecords(body, h, func(*record) error { return nil })
	if err != nil {
		found.Offset = at + batchHeaderSize + int64(off)
		found.Reason = fmt.Sprintf("%s: %v", found.Reason, err)
	}
	return found
}

// records takes off the mask of the batch at s.end and visits its records.
func (s *scanner) records(h batchHeader, visit func(*record) error) error {
	start := s.end + batchHeaderSize
	body := s.data[start : s.end+int64(h.length)-batchTrailerSize]
	applyMask(body, h.mask)
	s.closed = false
	n, off, err := splitRecords(body, h, func(r *record) error {
		r.offset += start
		if r.seq != s.next && (r.kind != kindOpened || r.seq != nextRun(s.next)) {
			return fmt.Errorf("sequence number %#x", r.seq)
		}
		s.next = r.seq + 1
		s.closed = r.kind == kindClosed
		return visit(r)
	})
	if err == nil && n != h.records {
		err = fmt.Errorf("%d records in a batch of %d", n, h.records)
	}
	if err != nil {
		return s.damaged(start+int64(off), "%v", err)
	}
	return nil
}

// nextRun is the first sequence number of the run after the one that next is
// in.
func nextRun(next uint64) uint64 { return ((next-1)>>runBits + 1) << runBits }

// splitRecords calls visit for each record in the body of a batch and returns
// how many there were, and where it stopped.
func splitRecords(body []byte, h batchHeader, visit func(*record) error) (n uint32, off int, err error) {
	le := binary.LittleEndian
	for n < h.records {
		p := body[off:]
		if len(p) < recordHeaderSize || uint64(le.Uint32(p)) > uint64(len(p)-recordHeaderSize) {
			return n, off, fmt.Errorf("record %d of the batch is longer than the batch", n)
		}
		length := recordHeaderSize + int(le.Uint32(p))
		if le.Uint32(p[36:]) != recordChecksum(p[:length]) {
			return n, off, fmt.Errorf("checksum of record %d of the batch", n)
		}
		r := record{
			seq: le.Uint64(p[8:]), index: le.Uint64(p[16:]), term: le.Uint64(p[24:]),
			kind: p[4], typ: p[5],
			body:   p[recordHeaderSize:length:length],
			offset: int64(off),
		}
		if le.Uint16(p[6:]) != 0 || le.Uint32(p[32:]) != 0 || n == 0 && r.seq != h.seq {
			return n, off, fmt.Errorf("header of record %d of the batch", n)
		}
		if err := visit(&r); err != nil {
			return n, off, err
		}
		n++
		off = min(off+(length+7)&^7, len(body))
	}
	if rest := body[off:]; len(rest) >= batchAlign || !allZero(rest) {
		return n, off, fmt.Errorf("%d bytes after the last record of the batch", len(rest))
	}
	return n, off, nil
}

func nextSector(at int64) int64 { return (at/sectorSize + 1) * sectorSize }

// zeroSector reports whether data, from an offset on, has a sector, or the
// part of one, that is all zero.
func zeroSector(data []byte, from int64) bool {
	for size := int64(len(data)); from < size; from = nextSector(from) {
		if allZero(data[from:min(nextSector(from), size)]) {
			return true
		}
	}
	return false
}

func allZero(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
