package storage

import "encoding/binary"

// FixSegmentHeader sets the checksum of a segment's header.
func FixSegmentHeader(b []byte) {
	binary.LittleEndian.PutUint32(b[segmentHeaderSize-4:], checksum(0, b[:segmentHeaderSize-4]))
}
