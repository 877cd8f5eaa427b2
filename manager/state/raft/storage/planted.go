package storage

import (
	"errors"
	"path/filepath"

	"go.etcd.io/raft/v3/raftpb"

	"holdfast/internal/mutant"
)

// What planted faults do, where it is more than a line. Nothing here runs in the product.

// cutMore cuts off the torn end that was found and the whole batch before it too, but not the
// one that the segment was made with, and reads the log again.
func (ld *loaded) cutMore(fsys FS, dir string, planted mutant.Set) (*loaded, error) {
	path := filepath.Join(logDir(dir), segmentName(ld.header.number))
	data, err := readFile(fsys, path, nil)
	if err != nil {
		return nil, err
	}
	s := &scanner{file: path, data: data, header: ld.header}
	at := int64(segmentHeaderSize)
	for {
		h, ok := s.headerAt(at)
		if !ok || at+int64(h.length) >= ld.tail.end {
			break
		}
		at += int64(h.length)
	}
	if at < ld.header.created {
		return ld, nil
	}
	f, err := fsys.OpenAppend(path)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(at), f.Close()); err != nil {
		return nil, err
	}
	return load(fsys, dir, planted)
}

// keepsSuffix tells whether a received snapshot leaves the entries after its index alive.
func (p *position) keepsSuffix(m Marker) bool {
	return p.planted.Has(mutant.SuffixKept) && m.Received && m.Index < p.last
}

// keepSuffix makes a received snapshot the beginning of the log, and keeps the entries after
// its index.
func (r *replay) keepSuffix(m Marker) {
	var entries []*raftpb.Entry
	if r.at(m.Index+1) != nil {
		entries = r.entries[m.Index+1-r.first:]
	}
	r.restart(m.Index, m.Term, true)
	r.entries = entries
}
