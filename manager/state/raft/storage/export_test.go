package storage

import (
	"encoding/binary"
	"path/filepath"
)

// FixSegmentHeader sets the checksum of a segment's header.
func FixSegmentHeader(b []byte) {
	binary.LittleEndian.PutUint32(b[segmentHeaderSize-4:], checksum(0, b[:segmentHeaderSize-4]))
}

// SegmentNumber is the number in a segment's header.
func SegmentNumber(b []byte) uint64 {
	if len(b) < 24 {
		return 1
	}
	return max(binary.LittleEndian.Uint64(b[16:]), 1)
}

// SegmentFile is the path of a segment.
func SegmentFile(dir string, number uint64) string {
	return filepath.Join(logDir(dir), segmentName(number))
}

// FixSegment sets every checksum of a segment, as far as its lengths lead, so
// that a fuzzer gets behind them.
func FixSegment(b []byte) {
	le := binary.LittleEndian
	if len(b) < segmentHeaderSize {
		return
	}
	FixSegmentHeader(b)
	salt := le.Uint32(b[segmentHeaderSize-4:])
	for p := b[segmentHeaderSize:]; len(p) >= minBatchSize; {
		n := le.Uint64(p[8:])
		if n < minBatchSize || n > uint64(len(p)) {
			return
		}
		le.PutUint64(p[48:], 0)
		le.PutUint32(p[60:], checksum(salt, p[:60]))
		for r := p[batchHeaderSize : n-batchTrailerSize]; len(r) >= recordHeaderSize; {
			size := recordHeaderSize + uint64(le.Uint32(r))
			if size > uint64(len(r)) {
				break
			}
			le.PutUint32(r[36:], recordChecksum(r[:size]))
			r = r[min((size+7)&^7, uint64(len(r))):]
		}
		le.PutUint32(p[n-batchTrailerSize:], checksum(0, p[:n-batchTrailerSize]))
		p = p[n:]
	}
}

// FixSnapshot sets the checksums of a snapshot's header and chunks.
func FixSnapshot(b []byte) {
	le := binary.LittleEndian
	if len(b) < snapHeaderSize {
		return
	}
	le.PutUint32(b[snapHeaderSize-4:], checksum(0, b[:snapHeaderSize-4]))
	for p := b[snapHeaderSize:]; len(p) >= chunkHeaderSize; {
		n := chunkHeaderSize + uint64(le.Uint32(p))
		if n > uint64(len(p)) {
			return
		}
		le.PutUint32(p[28:], chunkChecksum(p[:n]))
		p = p[n:]
	}
}
