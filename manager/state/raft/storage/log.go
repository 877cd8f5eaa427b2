package storage

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"

	"go.etcd.io/raft/v3/raftpb"

	"holdfast/internal/mutant"
)

// Log is a log open for appending. Append, Compact and Close are for one
// goroutine; Metrics is for any.
type Log struct {
	fs      FS
	dir     string
	limit   int64 // size at which a new segment is begun
	planted mutant.Set

	file     File
	header   segmentHeader // of the newest segment
	segments []segment     // oldest first; the last one is being written
	size     int64         // of the newest segment
	synced   int64         // all before it is synced
	chain    uint32
	pos      position
	enc      encoder
	err      error // final

	metrics counters
}

// counters are what Metrics reads, from any goroutine.
type counters struct {
	bytes, segments, last, writes, written, syncs, dirSyncs atomic.Int64
}

// Metrics returns the counters as they are now. Any goroutine may call it.
func (l *Log) Metrics() Metrics {
	c := &l.metrics
	return Metrics{
		Bytes:    c.bytes.Load(),
		Segments: c.segments.Load(),
		LastSize: c.last.Load(),
		Writes:   c.writes.Load(),
		Written:  c.written.Load(),
		Syncs:    c.syncs.Load(),
		DirSyncs: c.dirSyncs.Load(),
	}
}

// Append writes a batch with one write, and makes it durable with one sync
// unless it is NoSync. An empty batch does nothing. When the segment is full
// a new one is begun with the batch in it, at the cost of a rename and a sync
// of the folder, and of the old segment if it has an unsynced end.
//
// Any error is final, also that of a batch that does not fit the log: every
// later call returns it, and what became of the batch is unknown until the log
// is opened again. It blocks on the disk. The batch stays the caller's.
func (l *Log) Append(b Batch) error {
	if l.err != nil {
		return l.err
	}
	if b.HardState == nil && len(b.Entries) == 0 && b.Snapshot == nil {
		return nil
	}
	if b.HardState != nil && l.planted.Has(mutant.VoteNotPersisted) {
		b.HardState = &raftpb.HardState{Term: b.HardState.Term, Commit: b.HardState.Commit}
	}
	next, err := l.pos.after(&b)
	if err != nil {
		return l.fail(fmt.Errorf("append to raft log: %w", err))
	}
	if l.size >= l.limit {
		err = l.roll(&b)
	} else {
		err = l.append(&b)
	}
	if err != nil {
		return l.fail(fmt.Errorf("append to raft log: %w", err))
	}
	l.pos = next
	if b.Snapshot != nil && b.Snapshot.Received {
		account(l.segments, 0)
	}
	if n := len(b.Entries); n > 0 {
		for i := range b.Entries {
			// Entries go up by one but where one overwrites those before it.
			if i == 0 || b.Entries[i].GetIndex() <= b.Entries[i-1].GetIndex() {
				account(l.segments, b.Entries[i].GetIndex())
			}
		}
		l.segments[len(l.segments)-1].max = b.Entries[n-1].GetIndex()
	}
	return nil
}

func (l *Log) append(b *Batch) error {
	l.enc.reset(0)
	if err := l.enc.batch(b); err != nil {
		return err
	}
	return l.put(!b.NoSync)
}

// put writes the batch in the encoder to the newest segment.
func (l *Log) put(sync bool) error {
	crc := l.enc.finish(place{l.header.number, l.header.crc, l.size, l.synced})
	if err := l.write(l.enc.buf); err != nil {
		return err
	}
	l.grow(int64(len(l.enc.buf)), crc)
	if !sync {
		return nil
	}
	if err := l.sync(); err != nil {
		return err
	}
	l.synced = l.size
	return nil
}

func (l *Log) write(b []byte) error {
	n, err := l.file.Write(b)
	l.metrics.writes.Add(1)
	l.metrics.written.Add(int64(n))
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

func (l *Log) sync() error {
	l.metrics.syncs.Add(1)
	if l.planted.Has(mutant.SyncSkipped) {
		return nil
	}
	return l.file.Sync()
}

// grow notes that a batch was written to the newest segment.
func (l *Log) grow(n int64, crc uint32) {
	l.size += n
	l.chain = extendChain(l.chain, crc)
	l.count()
}

func (l *Log) count() {
	l.segments[len(l.segments)-1].size = l.size
	total := int64(0)
	for i := range l.segments {
		total += l.segments[i].size
	}
	l.metrics.bytes.Store(total)
	l.metrics.last.Store(l.size)
	l.metrics.segments.Store(int64(len(l.segments)))
}

// roll begins a new segment whose first batch is b. All of the old one is
// synced before the new one gets its name: that the new one exists says so.
func (l *Log) roll(b *Batch) error {
	if l.synced < l.size {
		if err := l.sync(); err != nil {
			return err
		}
		l.synced = l.size
	}
	h := segmentHeader{
		identity:  l.header.identity,
		number:    l.header.number + 1,
		prevSize:  l.size,
		prevChain: l.chain,
	}
	chain, err := l.enc.segment(&h, &l.pos, b)
	if err != nil {
		return err
	}
	f, err := placeFile(l.fs, logDir(l.dir), segmentName(h.number), l.enc.buf)
	if err != nil {
		return err
	}
	old := l.file
	l.file, l.header, l.chain = f, h, chain
	l.size, l.synced = int64(len(l.enc.buf)), int64(len(l.enc.buf))
	l.segments = append(l.segments, segment{number: h.number})
	l.metrics.writes.Add(1)
	l.metrics.written.Add(l.size)
	l.metrics.syncs.Add(1)
	l.metrics.dirSyncs.Add(1)
	l.count()
	return old.Close()
}

// Compact removes the oldest segments as long as they hold no entry in force
// above index. All entries above it stay, and the term of the one at it. Which entries are needed is the caller's decision; index is at
// most that of the latest snapshot marker. The newest segment always stays,
// so entries at and below index may still be there when the log is opened
// again. Segments go one by one, oldest first, each made durable before the
// next: a crash leaves a log without a gap.
//
// It blocks on the disk when there is something to remove. An error of the
// disk is final, as Append's; an index above the marker's is not.
func (l *Log) Compact(index uint64) error {
	if l.err != nil {
		return l.err
	}
	if index > l.pos.marker.Index {
		return fmt.Errorf("compact raft log to %d: the latest snapshot is at %d", index, l.pos.marker.Index)
	}
	for len(l.segments) > 1 && l.segments[0].idle(index) {
		path := filepath.Join(logDir(l.dir), segmentName(l.segments[0].number))
		if err := l.fs.Remove(path); err != nil {
			return l.fail(fmt.Errorf("compact raft log: %w", err))
		}
		l.metrics.dirSyncs.Add(1)
		if err := l.fs.SyncDir(logDir(l.dir)); err != nil {
			return l.fail(fmt.Errorf("compact raft log: %w", err))
		}
		l.segments = append(l.segments[:0], l.segments[1:]...)
		l.count()
	}
	return nil
}

// idle reports whether a segment may go when entries up to index are not
// needed. Where the segment's last entry in force is the one at index and those
// after it are void, the segments left do not tell its term, which is that of
// the entry before the first: it stays until index is higher.
func (s *segment) idle(index uint64) bool {
	return s.max < index || s.max == index && !s.cut
}

// Close syncs what is not synced, writes the closing mark, syncs it, and
// closes the file. After a final error it writes nothing, closes the file and
// returns that error. Later calls return ErrClosed.
func (l *Log) Close() error {
	if errors.Is(l.err, ErrClosed) {
		return l.err
	}
	err := l.err
	if err == nil && l.synced < l.size {
		err = l.sync()
		l.synced = l.size
	}
	if err == nil {
		l.enc.reset(0)
		l.enc.close(l.enc.open(kindClosed, 0, 0, 0))
		err = l.put(true)
	}
	l.err = fmt.Errorf("raft log: %w", ErrClosed)
	if err = errors.Join(err, l.file.Close()); err != nil {
		return fmt.Errorf("close raft log: %w", err)
	}
	return nil
}

func (l *Log) fail(err error) error {
	l.err = err
	return err
}
