package storage

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	snapMagic       = "HOLDSNAP"
	snapHeaderSize  = 64
	chunkHeaderSize = 32
	snapTrailerSize = 40

	chunkSection = 1 // payload: the section's name
	chunkRecords = 2 // payload: records, each a 32-bit length and its bytes
	chunkTrailer = 3 // payload: counts and checksum of everything

	chunkTarget  = 256 << 10 // a records chunk is written once it has this
	maxChunkSize = chunkTarget + 4 + MaxRecordSize

	snapPrefix   = "snap-"
	snapSuffix   = ".snap"
	makeSuffix   = ".make" + tempSuffix // being written here
	streamSuffix = ".recv" + tempSuffix // being received
)

func snapDir(dir string) string { return filepath.Join(dir, snapFolder) }

// snapName is the name of the snapshot file at an index and term.
func snapName(index, term uint64) string {
	return fmt.Sprintf("%s%016x-%016x%s", snapPrefix, index, term, snapSuffix)
}

func snapPath(dir string, index, term uint64) string {
	return filepath.Join(snapDir(dir), snapName(index, term))
}

// parseSnapName is the inverse of snapName; temp is set for the name of a
// temporary file.
func parseSnapName(name string) (index, term uint64, temp, ok bool) {
	base := strings.TrimSuffix(strings.TrimSuffix(name, makeSuffix), streamSuffix)
	hex, found := strings.CutPrefix(base, snapPrefix)
	if !found || len(hex) != 33+len(snapSuffix) {
		return 0, 0, false, false
	}
	index, err1 := strconv.ParseUint(hex[:16], 16, 64)
	term, err2 := strconv.ParseUint(hex[17:33], 16, 64)
	ok = err1 == nil && err2 == nil && snapName(index, term) == base
	return index, term, base != name, ok
}

func encodeSnapHeader(index, term uint64) ([snapHeaderSize]byte, uint32) {
	var p [snapHeaderSize]byte
	le := binary.LittleEndian
	copy(p[:], snapMagic)
	le.PutUint32(p[8:], formatVersion)
	le.PutUint32(p[12:], sealingNone)
	le.PutUint64(p[16:], index)
	le.PutUint64(p[24:], term)
	crc := checksum(0, p[:snapHeaderSize-4])
	le.PutUint32(p[snapHeaderSize-4:], crc)
	return p, crc
}

// decodeSnapHeader returns the header's checksum, with which the file's
// running checksum begins.
func decodeSnapHeader(file string, p []byte, index, term uint64) (uint32, error) {
	le := binary.LittleEndian
	damaged := func(format string, args ...any) error {
		return &DamageError{File: file, Reason: fmt.Sprintf(format, args...)}
	}
	crc := checksum(0, p[:snapHeaderSize-4])
	switch {
	case string(p[:8]) != snapMagic:
		return 0, damaged("it does not begin as a snapshot does")
	case crc != le.Uint32(p[snapHeaderSize-4:]):
		return 0, damaged("header checksum")
	case le.Uint32(p[8:]) != formatVersion:
		return 0, &VersionError{File: file, What: "version", Have: le.Uint32(p[8:])}
	case le.Uint32(p[12:]) != sealingNone:
		return 0, &VersionError{File: file, What: "sealing", Have: le.Uint32(p[12:])}
	}
	if i, t := le.Uint64(p[16:]), le.Uint64(p[24:]); i != index || t != term {
		return 0, damaged("it is the snapshot at index %d of term %d", i, t)
	}
	return crc, nil
}

// chunkHeader stands before each chunk's payload. Its checksum covers it and
// the payload.
type chunkHeader struct {
	length  uint32
	kind    byte
	number  uint64
	records uint32
	crc     uint32
}

// put writes the header over the first bytes of chunk, which has the payload
// after them, and returns the checksum.
func (h chunkHeader) put(chunk []byte) uint32 {
	le := binary.LittleEndian
	p := chunk[:chunkHeaderSize]
	clear(p)
	le.PutUint32(p[0:], uint32(len(chunk)-chunkHeaderSize))
	p[4] = h.kind
	le.PutUint64(p[8:], h.number)
	le.PutUint32(p[16:], h.records)
	crc := chunkChecksum(chunk)
	le.PutUint32(p[28:], crc)
	return crc
}

func chunkChecksum(chunk []byte) uint32 {
	return checksum(checksum(0, chunk[:28]), chunk[chunkHeaderSize:])
}

func decodeChunkHeader(p []byte) (h chunkHeader, ok bool) {
	le := binary.LittleEndian
	h = chunkHeader{
		length: le.Uint32(p[0:]), kind: p[4], number: le.Uint64(p[8:]),
		records: le.Uint32(p[16:]), crc: le.Uint32(p[28:]),
	}
	return h, p[5] == 0 && le.Uint16(p[6:]) == 0 && le.Uint64(p[20:]) == 0
}

// snapTotals are the trailer's payload.
type snapTotals struct {
	sections, records, bytes, chunks uint64
	chain                            uint32
}

func (t *snapTotals) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, t.sections)
	b = le.AppendUint64(b, t.records)
	b = le.AppendUint64(b, t.bytes)
	b = le.AppendUint64(b, t.chunks)
	b = le.AppendUint32(b, t.chain)
	return le.AppendUint32(b, 0)
}

func checkSectionName(name string) error {
	if name == "" || len(name) > MaxSectionName {
		return fmt.Errorf("section name of %d bytes", len(name))
	}
	for _, c := range []byte(name) {
		if c < '!' || c > '~' {
			return fmt.Errorf("section name %q", name)
		}
	}
	return nil
}
