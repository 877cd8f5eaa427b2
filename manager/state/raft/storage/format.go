package storage

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	formatVersion = 1
	sealingNone   = 0

	sectorSize = 512 // what a disk writes whole or not at all
	batchAlign = 64  // a batch's header lies in one sector

	segmentHeaderSize = 512
	batchHeaderSize   = 64
	recordHeaderSize  = 40
	batchTrailerSize  = 16
	minBatchSize      = 128
	maxIDSize         = 128

	batchMagic   = 0x31424648 // "HFB1"
	trailerMagic = 0x45424648 // "HFBE"

	// A run is what one Open appends. Its records' sequence numbers begin at
	// run<<runBits, so that none is used again after a torn end.
	runBits = 40
)

const segmentMagic = "HOLDFLOG"

// Record kinds.
const (
	kindHardState = 1 // index commit, term; body raftpb.HardState
	kindEntry     = 2 // index, term, type of the entry; body raftpb.Entry
	kindMarker    = 3 // index, term; type one of the marker types; body raftpb.ConfState
	kindBase      = 4 // index, term of the last entry before this segment
	kindOpened    = 5 // a run begins
	kindClosed    = 6 // the closing mark
)

// Types of a marker record. A carried one repeats the latest at the start of
// a segment and voids nothing.
const (
	markerLocal           = 0
	markerReceived        = 1
	markerCarriedLocal    = 2
	markerCarriedReceived = 3
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func checksum(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli(), b) }

// extendChain adds a batch's (or chunk's) checksum to a running checksum of
// all of them.
func extendChain(chain, crc uint32) uint32 {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], crc)
	return checksum(chain, b[:])
}

// segmentHeader is the first sector of a segment file.
type segmentHeader struct {
	identity  Identity
	number    uint64
	firstSeq  uint64 // of the first record in the file
	prevSize  int64  // length of the segment before, 0 if this is number 1
	prevChain uint32 // and its running checksum
	created   int64  // bytes that were synced before the file got its name
	crc       uint32
}

// encode appends the header and sets its checksum.
func (h *segmentHeader) encode(b []byte) []byte {
	start := len(b)
	b = append(b, make([]byte, segmentHeaderSize)...)
	p := b[start:]
	le := binary.LittleEndian
	copy(p, segmentMagic)
	le.PutUint32(p[8:], formatVersion)
	le.PutUint32(p[12:], sealingNone)
	le.PutUint64(p[16:], h.number)
	le.PutUint64(p[24:], h.firstSeq)
	le.PutUint64(p[32:], uint64(h.prevSize))
	le.PutUint64(p[40:], uint64(h.created))
	le.PutUint32(p[48:], h.prevChain)
	le.PutUint16(p[52:], uint16(len(h.identity.ClusterID)))
	le.PutUint16(p[54:], uint16(len(h.identity.NodeID)))
	le.PutUint64(p[56:], h.identity.RaftID)
	copy(p[64:], h.identity.ClusterID)
	copy(p[64+maxIDSize:], h.identity.NodeID)
	h.crc = checksum(0, p[:segmentHeaderSize-4])
	le.PutUint32(p[segmentHeaderSize-4:], h.crc)
	return b
}

// decodeSegmentHeader reads the first sector of a file. Magic, version and the
// header's checksum keep their places in later versions.
func decodeSegmentHeader(file string, p []byte) (*segmentHeader, error) {
	damaged := func(reason string) error { return &DamageError{File: file, Reason: reason} }
	if len(p) < segmentHeaderSize {
		return nil, damaged(fmt.Sprintf("the file is %d bytes long, less than its header", len(p)))
	}
	p = p[:segmentHeaderSize]
	if string(p[:8]) != segmentMagic {
		return nil, damaged("it does not begin as a raft log does")
	}
	le := binary.LittleEndian
	crc := checksum(0, p[:segmentHeaderSize-4])
	if crc != le.Uint32(p[segmentHeaderSize-4:]) {
		return nil, damaged("header checksum")
	}
	if v := le.Uint32(p[8:]); v != formatVersion {
		return nil, &VersionError{File: file, What: "version", Have: v}
	}
	if s := le.Uint32(p[12:]); s != sealingNone {
		return nil, &VersionError{File: file, What: "sealing", Have: s}
	}
	nc, nn := int(le.Uint16(p[52:])), int(le.Uint16(p[54:]))
	h := &segmentHeader{
		number:    le.Uint64(p[16:]),
		firstSeq:  le.Uint64(p[24:]),
		prevSize:  int64(le.Uint64(p[32:])),
		created:   int64(le.Uint64(p[40:])),
		prevChain: le.Uint32(p[48:]),
		crc:       crc,
	}
	if nc > maxIDSize || nn > maxIDSize || h.number == 0 || h.created < segmentHeaderSize+minBatchSize {
		return nil, damaged("header fields out of range")
	}
	h.identity = Identity{
		ClusterID: string(p[64 : 64+nc]),
		NodeID:    string(p[64+maxIDSize : 64+maxIDSize+nn]),
		RaftID:    le.Uint64(p[56:]),
	}
	return h, nil
}

func (id Identity) check() error {
	if len(id.ClusterID) > maxIDSize || len(id.NodeID) > maxIDSize {
		return fmt.Errorf("cluster and node IDs are at most %d bytes", maxIDSize)
	}
	return nil
}

const (
	logFolder  = "log"
	snapFolder = "snap"
	logSuffix  = ".log"
	tempSuffix = ".tmp"
)

func logDir(dir string) string { return filepath.Join(dir, logFolder) }

func segmentName(number uint64) string { return fmt.Sprintf("%016x%s", number, logSuffix) }

// parseSegmentName is the inverse of segmentName.
func parseSegmentName(name string) (uint64, bool) {
	hex, ok := strings.CutSuffix(name, logSuffix)
	if !ok || len(hex) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(hex, 16, 64)
	return n, err == nil && segmentName(n) == name
}
