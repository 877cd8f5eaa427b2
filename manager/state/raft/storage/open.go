package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"holdfast/internal/mutant"
)

// Create makes a log in dir, which has none (ErrLogExists), with its first
// batch. The segment is written under a temporary name, synced, renamed, and
// its folder synced: after a crash there is either the whole of it or none. It
// blocks on the disk. After an error that is not ErrLogExists a log may exist
// or not.
func Create(fsys FS, dir string, id Identity, first Batch) error {
	if err := id.check(); err != nil {
		return err
	}
	first.NoSync = false
	if _, err := (&position{}).after(&first); err != nil {
		return fmt.Errorf("create raft log: %w", err)
	}
	numbers, temps, err := listSegments(fsys, dir)
	if err != nil {
		return err
	}
	if len(numbers) > 0 {
		return fmt.Errorf("%s: %w", logDir(dir), ErrLogExists)
	}
	if err := makeFolders(fsys, dir); err != nil {
		return fmt.Errorf("create raft log: %w", err)
	}
	if err := removeNames(fsys, logDir(dir), temps); err != nil {
		return fmt.Errorf("create raft log: %w", err)
	}
	e := encoder{seq: 1 << runBits}
	h := segmentHeader{identity: id, number: 1}
	if _, err := e.segment(&h, &position{}, &first); err != nil {
		return fmt.Errorf("create raft log: %w", err)
	}
	f, err := placeFile(fsys, logDir(dir), segmentName(1), e.buf)
	if err != nil {
		return fmt.Errorf("create raft log: %w", err)
	}
	return f.Close()
}

// segment encodes a new segment with its first batch, which repeats where the
// log stands (p) and goes on with b. It returns the segment's chain.
func (e *encoder) segment(h *segmentHeader, p *position, b *Batch) (chain uint32, err error) {
	h.firstSeq = e.seq
	e.reset(segmentHeaderSize)
	if err := e.carry(p); err != nil {
		return 0, err
	}
	if err := e.batch(b); err != nil {
		return 0, err
	}
	// The batch's length is known before its checksum, which the header's
	// checksum salts.
	size := len(e.buf) + batchTrailerSize - segmentHeaderSize
	size = (size + batchAlign - 1) / batchAlign * batchAlign
	h.created = int64(segmentHeaderSize + size)
	h.encode(e.buf[:0])
	crc := e.finish(place{segment: h.number, salt: h.crc, offset: segmentHeaderSize})
	return extendChain(h.crc, crc), nil
}

// makeFolders makes dir and the folders in it durable. The parents of dir but
// for the first are the caller's.
func makeFolders(fsys FS, dir string) error {
	for _, sub := range []string{logFolder, snapFolder} {
		if err := fsys.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	if err := fsys.SyncDir(dir); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(dir))
}

// placeFile makes a file with this content durable under its name, all or
// nothing, and returns it open at its end.
func placeFile(fsys FS, folder, name string, content []byte) (File, error) {
	path := filepath.Join(folder, name)
	f, err := fsys.Create(path + tempSuffix)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = fsys.Rename(path+tempSuffix, path)
	}
	if err == nil {
		err = fsys.SyncDir(folder)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func removeNames(fsys FS, folder string, names []string) error {
	for _, name := range names {
		if err := fsys.Remove(filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Open reads and checks the whole log, drops a torn end, and makes the log
// ready to append. What it returns is durable: the end of the log that is not
// known to have been synced is written and synced once more, with a mark that
// a new run begins, since a process that died may have left it in the page
// cache only, and a failed sync leaves pages that no later sync writes.
//
// Errors: ErrNoLog; *DamageError, *VersionError, *InconsistentError, after
// which nothing was changed on disk; those of the disk. It blocks on the disk,
// and needs the memory of the largest segment beside the entries it returns,
// which are the caller's. That State.Identity is the one expected and that
// only one process opens the folder are for the caller to ensure.
func Open(fsys FS, dir string, opts Options) (*Log, *State, error) {
	if opts.SegmentSize == 0 {
		opts.SegmentSize = DefaultSegmentSize
	}
	if opts.SegmentSize < 0 || opts.SegmentSize > MaxSegmentSize {
		return nil, nil, fmt.Errorf("raft log: segment size %d is not within 1 and %d", opts.SegmentSize, MaxSegmentSize)
	}
	ld, err := load(fsys, dir, opts.Planted)
	if err == nil && ld.torn > 0 && opts.Planted.Has(mutant.TornDropsSynced) {
		ld, err = ld.cutMore(fsys, dir, opts.Planted)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := removeNames(fsys, logDir(dir), ld.temps); err != nil {
		return nil, nil, fmt.Errorf("raft log: %w", err)
	}
	if err := fsys.SyncDir(logDir(dir)); err != nil {
		return nil, nil, fmt.Errorf("raft log: %w", err)
	}
	l := &Log{
		fs: fsys, dir: dir, limit: opts.SegmentSize, planted: opts.Planted,
		header: *ld.header, pos: ld.pos, segments: ld.segments,
		size: ld.tail.end, synced: ld.tail.synced, chain: ld.tail.chain,
		enc: encoder{seq: nextRun(ld.tail.next)},
	}
	l.metrics.dirSyncs.Add(1)
	if err := l.begin(ld.torn); err != nil {
		if l.file != nil {
			err = errors.Join(err, l.file.Close())
		}
		return nil, nil, fmt.Errorf("repair raft log: %w", err)
	}
	return l, ld.state, nil
}

// begin opens the newest segment, cuts off its torn end, writes again what is
// not known to be synced, and the mark of a new run after it, and syncs.
//
// A crash at any moment leaves a log that Open reads to the same state. The
// torn end was never synced; the bytes written again are those that are there.
func (l *Log) begin(torn int64) error {
	path := filepath.Join(logDir(l.dir), segmentName(l.header.number))
	f, err := l.fs.OpenAppend(path)
	if err != nil {
		return err
	}
	l.file = f
	if torn > 0 {
		if err := f.Truncate(l.size); err != nil {
			return err
		}
	}
	// Also when there is nothing to cut off now: a run that died may have done
	// it without a sync, and what is written next must not meet old bytes.
	if err := l.sync(); err != nil {
		return err
	}
	from := l.synced
	again := make([]byte, l.size-from)
	if _, err := io.ReadFull(io.NewSectionReader(f, from, l.size-from), again); err != nil {
		return fmt.Errorf("read %s again: %w", path, err)
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return err
	}
	l.enc.reset(0)
	l.enc.close(l.enc.open(kindOpened, 0, 0, 0))
	end := from // until the sync, nothing after it is known to be on disk
	crc := l.enc.finish(place{l.header.number, l.header.crc, l.size, end})
	if err := l.write(append(again, l.enc.buf...)); err != nil {
		return err
	}
	l.grow(int64(len(l.enc.buf)), crc)
	if err := l.sync(); err != nil {
		return err
	}
	l.synced = l.size
	return nil
}
