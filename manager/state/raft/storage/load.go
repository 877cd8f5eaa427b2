package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"holdfast/internal/mutant"
)

// segment is what is remembered of a segment file.
type segment struct {
	number uint64
	size   int64
	max    uint64 // highest index of an entry in it that is in force; 0 if none
	cut    bool   // entries above max are void
}

// loaded is a log that was read.
type loaded struct {
	state    *State
	pos      position
	segments []segment // oldest first
	header   *segmentHeader
	tail     *scanner // of the newest segment; its data is released
	torn     int64    // bytes after tail.end
	temps    []string // names of temporary files
}

// Exists tells whether dir holds a log. A Create that did not finish leaves
// none. It reads the folder only.
func Exists(fsys FS, dir string) (bool, error) {
	numbers, _, err := listSegments(fsys, dir)
	return len(numbers) > 0, err
}

// Verify reads the log and the snapshot that it names, and changes nothing.
// A torn end is no error: State.Dropped tells. The errors are Open's and
// OpenSnapshot's. The log must not be open for appending meanwhile.
func Verify(fsys FS, dir string) (*State, error) {
	ld, err := load(fsys, dir, mutant.Set{})
	if err != nil {
		return nil, err
	}
	if m := ld.state.Snapshot; !m.IsZero() {
		if err := verifySnapshot(fsys, dir, m.Index, m.Term); err != nil {
			return nil, err
		}
	}
	return ld.state, nil
}

// listSegments returns the numbers of the segments in order, and the names of
// temporary files. Other files are left alone.
func listSegments(fsys FS, dir string) (numbers []uint64, temps []string, err error) {
	names, err := fsys.ReadDir(logDir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("raft log: %w", err)
	}
	for _, name := range names {
		if n, ok := parseSegmentName(name); ok {
			numbers = append(numbers, n)
		} else if base, ok := strings.CutSuffix(name, tempSuffix); ok {
			if _, ok := parseSegmentName(base); ok {
				temps = append(temps, name)
			}
		}
	}
	return numbers, temps, nil
}

// load reads and checks the whole log. It changes nothing.
func load(fsys FS, dir string, planted mutant.Set) (*loaded, error) {
	numbers, temps, err := listSegments(fsys, dir)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return nil, fmt.Errorf("%s: %w", logDir(dir), ErrNoLog)
	}
	ld := &loaded{temps: temps}
	r := &replay{pos: position{planted: planted}}
	var buf []byte
	for i, n := range numbers {
		path := filepath.Join(logDir(dir), segmentName(n))
		if buf, err = readFile(fsys, path, buf); err != nil {
			return nil, fmt.Errorf("raft log: %w", err)
		}
		h, err := decodeSegmentHeader(path, buf)
		if err != nil {
			return nil, err
		}
		if err := ld.follows(path, n, h); err != nil {
			return nil, err
		}
		ld.header = h
		ld.tail = &scanner{file: path, data: buf, header: h, last: i == len(numbers)-1}
		ld.segments = append(ld.segments, segment{number: n, size: int64(len(buf))})
		if err := ld.scan(r); err != nil {
			return nil, err
		}
	}
	ld.pos = r.pos
	ld.state, err = r.finish(logDir(dir), segmentName(numbers[0]))
	if err != nil {
		return nil, err
	}
	ld.torn = int64(len(buf)) - ld.tail.end
	ld.tail.data = nil
	ld.segments[len(ld.segments)-1].size = ld.tail.end
	ld.state.Identity = ld.header.identity
	ld.state.Clean = ld.tail.closed && ld.torn == 0
	ld.state.Dropped = ld.torn
	return ld, nil
}

// follows checks that a segment is the successor of the one read before it.
func (ld *loaded) follows(path string, number uint64, h *segmentHeader) error {
	damaged := func(format string, args ...any) error {
		return &DamageError{File: path, Record: h.firstSeq, Reason: fmt.Sprintf(format, args...)}
	}
	if h.number != number {
		return damaged("it is segment %d", h.number)
	}
	if ld.tail == nil {
		return nil
	}
	prev := ld.segments[len(ld.segments)-1]
	switch {
	case number != prev.number+1:
		return damaged("the segment before it, %s, is missing", segmentName(number-1))
	case h.identity != ld.header.identity:
		return damaged("it belongs to another log: %+v, not %+v", h.identity, ld.header.identity)
	case h.prevSize != prev.size || h.prevChain != ld.tail.chain || h.firstSeq != ld.tail.next:
		return damaged("it does not continue %s: that had %d bytes (checksum %08x, next record %#x) and has %d (%08x, %#x)",
			segmentName(prev.number), h.prevSize, h.prevChain, h.firstSeq, prev.size, ld.tail.chain, ld.tail.next)
	}
	return nil
}

// scan replays the newest segment read so far and keeps account of which
// segments hold entries in force.
func (ld *loaded) scan(r *replay) error {
	begin := true
	return ld.tail.scan(func(rec *record) error {
		if err := r.record(rec, begin); err != nil {
			return err
		}
		begin = false
		switch {
		case rec.kind == kindEntry:
			account(ld.segments, rec.index)
		case rec.kind == kindMarker && rec.typ == markerReceived:
			account(ld.segments, 0)
		}
		return nil
	})
}

// account notes that an entry with this index was written to the last of the
// segments; index 0: that all entries so far are void.
func account(segments []segment, index uint64) {
	for i := range segments {
		if s := &segments[i]; s.max >= index {
			s.max, s.cut = max(index, 1)-1, true
		}
	}
	last := &segments[len(segments)-1]
	last.max, last.cut = index, false
}

// readFile reads a whole file into buf, which it grows if needed.
func readFile(fsys FS, path string, buf []byte) (_ []byte, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > MaxSegmentSize+2*MaxBatchSize {
		return nil, &DamageError{File: path, Reason: fmt.Sprintf("the file is %d bytes long, more than any segment", size)}
	}
	if int64(cap(buf)) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if _, err := io.ReadFull(f, buf); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return buf, nil
}
