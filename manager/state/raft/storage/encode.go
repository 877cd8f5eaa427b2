package storage

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// keepBuffer is the largest buffer that an encoder keeps between batches.
const keepBuffer = 8 << 20

// encoder builds one batch after another in a buffer of its own.
type encoder struct {
	buf     []byte
	start   int    // where the batch begins in buf
	seq     uint64 // of the next record
	first   uint64 // of the batch's first
	records uint32
}

// reset empties the buffer and begins a batch after the prefix bytes, which
// the caller fills (a segment's header).
func (e *encoder) reset(prefix int) {
	if cap(e.buf) > keepBuffer {
		e.buf = nil
	}
	e.buf = append(e.buf[:0], make([]byte, prefix+batchHeaderSize)...)
	e.start = prefix
	e.first = e.seq
	e.records = 0
}

// open begins a record and returns its position for close.
func (e *encoder) open(kind, typ byte, index, term uint64) int {
	at := len(e.buf)
	var h [recordHeaderSize]byte
	h[4], h[5] = kind, typ
	le := binary.LittleEndian
	le.PutUint64(h[8:], e.seq)
	le.PutUint64(h[16:], index)
	le.PutUint64(h[24:], term)
	e.buf = append(e.buf, h[:]...)
	e.seq++
	e.records++
	return at
}

// close ends the record begun at at: length, checksum, padding to 8 bytes.
func (e *encoder) close(at int) {
	le := binary.LittleEndian
	le.PutUint32(e.buf[at:], uint32(len(e.buf)-at-recordHeaderSize))
	le.PutUint32(e.buf[at+36:], recordChecksum(e.buf[at:]))
	for len(e.buf)%8 != 0 {
		e.buf = append(e.buf, 0)
	}
}

// recordChecksum covers the header but for the checksum itself, and the body,
// which is the rest of b.
func recordChecksum(b []byte) uint32 {
	return checksum(checksum(0, b[:36]), b[recordHeaderSize:])
}

// message writes a record whose body is m; nil is an empty body.
func (e *encoder) message(kind, typ byte, index, term uint64, m proto.Message) error {
	at := e.open(kind, typ, index, term)
	if m != nil {
		var err error
		if e.buf, err = (proto.MarshalOptions{}).MarshalAppend(e.buf, m); err != nil {
			return fmt.Errorf("encode raft record %d/%d: %w", term, index, err)
		}
	}
	e.close(at)
	if len(e.buf) > MaxBatchSize {
		return fmt.Errorf("raft batch exceeds %d bytes", MaxBatchSize)
	}
	return nil
}

// batch writes the records of b: marker, entries, hard state.
func (e *encoder) batch(b *Batch) error {
	if m := b.Snapshot; m != nil {
		typ := byte(markerLocal)
		if m.Received {
			typ = markerReceived
		}
		if err := e.marker(typ, *m); err != nil {
			return err
		}
	}
	for _, ent := range b.Entries {
		if err := e.message(kindEntry, byte(ent.GetType()), ent.GetIndex(), ent.GetTerm(), ent); err != nil {
			return err
		}
	}
	if b.HardState != nil {
		return e.hardState(b.HardState)
	}
	return nil
}

func (e *encoder) hardState(hs *raftpb.HardState) error {
	return e.message(kindHardState, 0, hs.GetCommit(), hs.GetTerm(), hs)
}

func (e *encoder) marker(typ byte, m Marker) error {
	cs := m.ConfState
	if cs == nil {
		cs = &raftpb.ConfState{}
	}
	return e.message(kindMarker, typ, m.Index, m.Term, cs)
}

// carry writes what a new segment repeats, so that older ones can be removed.
func (e *encoder) carry(p *position) error {
	e.close(e.open(kindBase, 0, p.last, p.lastTerm))
	if err := e.hardState(p.hardState()); err != nil {
		return err
	}
	if p.marker.IsZero() {
		return nil
	}
	typ := byte(markerCarriedLocal)
	if p.marker.Received {
		typ = markerCarriedReceived
	}
	return e.marker(typ, p.marker)
}

// place says where a batch goes.
type place struct {
	segment uint64
	salt    uint32 // the segment header's checksum
	offset  int64  // in the file
	synced  int64  // all before this offset is synced
}

// finish completes the batch and returns its checksum, for the chain.
func (e *encoder) finish(at place) uint32 {
	for (len(e.buf)-e.start+batchTrailerSize)%batchAlign != 0 {
		e.buf = append(e.buf, 0)
	}
	body := e.buf[e.start+batchHeaderSize:]
	length := uint64(batchHeaderSize + len(body) + batchTrailerSize)
	mask := chooseMask(body, at.offset+batchHeaderSize, e.first)
	applyMask(body, mask)

	le := binary.LittleEndian
	h := e.buf[e.start:][:batchHeaderSize]
	le.PutUint32(h[0:], batchMagic)
	le.PutUint32(h[4:], e.records)
	le.PutUint64(h[8:], length)
	le.PutUint64(h[16:], at.segment)
	le.PutUint64(h[24:], uint64(at.offset))
	le.PutUint64(h[32:], uint64(at.synced))
	le.PutUint64(h[40:], e.first)
	le.PutUint64(h[48:], mask)
	le.PutUint32(h[56:], 0)
	le.PutUint32(h[60:], checksum(at.salt, h[:60]))

	crc := checksum(0, e.buf[e.start:])
	var t [batchTrailerSize]byte
	le.PutUint32(t[0:], crc)
	le.PutUint32(t[4:], trailerMagic)
	le.PutUint64(t[8:], length)
	e.buf = append(e.buf, t[:]...)
	return crc
}

// chooseMask returns a mask with which no sector of the body could be taken
// for one that was never written: each has at least two words that are not
// zero, so that no single bit flip makes it all zero either. 0, no mask, is
// nearly always right. offset is the body's in the file. The sectors that hold
// the batch's header and trailer need no check.
func chooseMask(body []byte, offset int64, seed uint64) uint64 {
	mask := uint64(0)
	for try := uint64(1); !distinct(body, offset, mask); try++ {
		mask = mix(seed + try)
	}
	return mask
}

func distinct(body []byte, offset int64, mask uint64) bool {
	from := int((sectorSize - offset%sectorSize) % sectorSize)
	for ; from+sectorSize <= len(body); from += sectorSize {
		words := 0
		for p := from; p < from+sectorSize && words < 2; p += 8 {
			if binary.LittleEndian.Uint64(body[p:]) != mask {
				words++
			}
		}
		if words < 2 {
			return false
		}
	}
	return true
}

func applyMask(body []byte, mask uint64) {
	if mask == 0 {
		return
	}
	for p := 0; p+8 <= len(body); p += 8 {
		binary.LittleEndian.PutUint64(body[p:], binary.LittleEndian.Uint64(body[p:])^mask)
	}
}

// mix is the splitmix64 finaliser; it never returns 0 for what chooseMask
// gives it twice in a row.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
