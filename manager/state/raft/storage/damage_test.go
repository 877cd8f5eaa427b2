package storage_test

import (
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
)

// boundary is a length of the newest segment at which the log is whole.
type boundary struct {
	size  int64
	state string
}

// sample makes a log of several batches, markers and segments, and tells where
// in the newest segment its batches end. How it ends: "closed", "open", with a
// commit that was not "synced", or "killed" with a batch of many sectors last.
func sample(t testing.TB, end string) (*memfs.FS, []boundary) {
	m := newFS(1)
	l := created(t, m, 1500)
	var bounds []boundary
	mark := func() {
		_, s, err := storage.Open(m.Clone(1), dir, storage.Options{})
		must(t, err)
		bounds = append(bounds, boundary{l.Metrics().LastSize, describe(s)})
	}
	step := func(b storage.Batch) {
		was := l.Metrics().Segments
		must(t, l.Append(b))
		if l.Metrics().Segments != was {
			bounds = nil
		}
		mark()
	}
	step(storage.Batch{Entries: ents(2, 5, 1)})
	step(storage.Batch{HardState: hard(2, 2, 3), Entries: ents(4, 8, 2)})
	step(storage.Batch{Snapshot: local(3, 1)})
	step(storage.Batch{Entries: ents(9, 12, 2), HardState: hard(2, 2, 8)})
	step(storage.Batch{HardState: hard(2, 2, 9), NoSync: true})
	must(t, l.Close())
	l, _ = open(t, m, 1500)
	step(storage.Batch{Snapshot: received(20, 3), HardState: hard(3, 0, 20)})
	step(storage.Batch{Entries: ents(21, 22, 3)})
	if l.Metrics().Segments < 2 {
		t.Fatal("one segment only")
	}
	switch end {
	case "closed":
		must(t, l.Close())
		mark()
	case "synced":
		step(storage.Batch{HardState: hard(3, 0, 21), NoSync: true})
		step(storage.Batch{HardState: hard(3, 0, 22), NoSync: true})
	case "killed":
		step(storage.Batch{Entries: []*raftpb.Entry{ent(23, 3, strings.Repeat("some data ", 50)), ent(24, 3, strings.Repeat("\x00", 1100))}})
	}
	return m, bounds
}

var ends = []string{"closed", "open", "synced", "killed"}

// TestEveryBitFlip: no flip of a bit anywhere passes for another log.
func TestEveryBitFlip(t *testing.T) {
	for _, end := range ends {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			m, _ := sample(t, end)
			names, err := m.ReadDir(dir + "/log")
			must(t, err)
			flips := 0
			if end != ends[0] {
				names = names[len(names)-1:] // the older ones are the same
			}
			for _, name := range names {
				path := dir + "/log/" + name
				b, err := m.ReadFile(path)
				must(t, err)
				for bit := range len(b) * 8 {
					b[bit/8] ^= 1 << (bit % 8)
					m.WriteFile(path, b)
					b[bit/8] ^= 1 << (bit % 8)
					_, _, err := storage.Open(m, dir, storage.Options{})
					if err == nil {
						t.Fatalf("bit %d of byte %d of %s: not detected", bit%8, bit/8, path)
					}
					wantDamage(t, err, "")
					flips++
				}
				m.WriteFile(path, b)
			}
			t.Logf("%d flips, all detected", flips)
			if _, err := storage.Verify(m, dir); err != nil && !strings.Contains(err.Error(), "open snapshot") {
				t.Fatal(err)
			}
		})
	}
}

// TestEveryTruncation: a log cut anywhere in its newest segment is what it was
// after the last batch that is whole, or is refused where that was synced
// before the file had its name.
func TestEveryTruncation(t *testing.T) {
	for _, end := range ends {
		t.Run(end, func(t *testing.T) {
			m, bounds := sample(t, end)
			names, err := m.ReadDir(dir + "/log")
			must(t, err)
			path := dir + "/log/" + names[len(names)-1]
			b, err := m.ReadFile(path)
			must(t, err)
			if last := bounds[len(bounds)-1].size; last != int64(len(b)) {
				t.Fatalf("the last batch ends at %d of %d", last, len(b))
			}
			for cut := range len(b) + 1 {
				for _, zeros := range []int{0, 3000} { // a preallocated end, never written
					for zeros > 0 && cut < len(b) && b[cut] == 0 {
						cut++ // it is as if these were there
					}
					want := ""
					for _, bound := range bounds {
						if bound.size <= int64(cut) {
							want = bound.state
						}
					}
					m.WriteFile(path, append(b[:cut:cut], make([]byte, zeros)...))
					_, s, err := storage.Open(m, dir, storage.Options{})
					switch {
					case want == "" && zeros == 0:
						wantDamage(t, err, path)
					case want == "":
						if err == nil {
							t.Fatalf("cut at %d of %d, %d zeros: not refused", cut, len(b), zeros)
						}
					case err != nil && zeros > 0:
						// Refused, where the cut is not at a sector: no crash does that.
						wantDamage(t, err, path)
						if cut%512 == 0 {
							t.Fatalf("cut at %d of %d, %d zeros: %v", cut, len(b), zeros, err)
						}
					case err != nil || describe(s) != want:
						t.Fatalf("cut at %d of %d: %v\n%swant\n%s", cut, len(b), err, describe(s), want)
					}
				}
			}
		})
	}
}

// TestZeroSectors: sectors of zeros in the last batch are its torn end; in any
// other they are damage.
func TestZeroSectors(t *testing.T) {
	m, bounds := sample(t, "killed")
	names, err := m.ReadDir(dir + "/log")
	must(t, err)
	path := dir + "/log/" + names[len(names)-1]
	b, err := m.ReadFile(path)
	must(t, err)
	start := bounds[len(bounds)-2].size
	want := bounds[len(bounds)-2].state
	zeroed := func(from, to int64) (*storage.State, error) {
		c := append([]byte(nil), b...)
		clear(c[from:to])
		m.WriteFile(path, c)
		_, s, err := storage.Open(m, dir, storage.Options{})
		return s, err
	}
	for from := int64(0); from < int64(len(b)); from += 512 {
		for to := from + 512; to < int64(len(b))+512; to += 512 {
			if from < start {
				// Below what the last batch's header says is synced.
				_, err := zeroed(from, min(to, start))
				wantDamage(t, err, path)
			}
			if to > start {
				s, err := zeroed(max(from, start), min(to, int64(len(b))))
				if err != nil || describe(s) != want || s.Dropped != int64(len(b))-start {
					t.Fatalf("zeros from %d to %d, batch at %d: %v", from, to, start, err)
				}
			}
		}
	}
}

// TestFlipsBesideATornEnd: where the last batch is torn, a flip in it changes
// nothing or is refused, and one before it is refused.
func TestFlipsBesideATornEnd(t *testing.T) {
	m, bounds := sample(t, "killed")
	names, err := m.ReadDir(dir + "/log")
	must(t, err)
	path := dir + "/log/" + names[len(names)-1]
	whole, err := m.ReadFile(path)
	must(t, err)
	start, want := bounds[len(bounds)-2].size, bounds[len(bounds)-2].state
	for torn := start / 512; torn*512 < int64(len(whole)); torn++ {
		b := append([]byte(nil), whole...)
		clear(b[max(torn*512, start):min((torn+1)*512, int64(len(b)))])
		for i := range b {
			bit := byte(1) << ((i + int(torn)) % 8)
			b[i] ^= bit
			m.WriteFile(path, b)
			b[i] ^= bit
			_, s, err := storage.Open(m, dir, storage.Options{})
			switch {
			case err != nil:
				wantDamage(t, err, path)
			case int64(i) < start:
				t.Fatalf("a flip at %d is taken for the torn end at %d", i, start)
			case describe(s) != want:
				t.Fatalf("flip at %d, torn at %d: another state", i, torn*512)
			}
		}
	}
}

// TestAfterClosingMark: only the mark of a run that did not get further can be
// torn after a closing mark.
func TestAfterClosingMark(t *testing.T) {
	m := newFS(1)
	l := created(t, m, 0)
	must(t, l.Close())
	at := l.Metrics().LastSize
	l, _ = open(t, m, 0)
	opened := l.Metrics().LastSize
	must(t, l.Append(storage.Batch{Entries: ents(2, 2, 1)}))
	b, err := m.ReadFile(segmentPath(1))
	must(t, err)
	if opened != at+128 {
		t.Fatal(at, opened)
	}
	clear(b[at:opened])
	m.WriteFile(segmentPath(1), b)
	_, err = storage.Verify(m, dir)
	wantDamage(t, err, segmentPath(1))
	m.WriteFile(segmentPath(1), b[:opened])
	s, err := storage.Verify(m, dir)
	if err != nil || s.Dropped != 128 || s.Clean {
		t.Fatal(err, s)
	}
}

// TestNamesTheRecord: an error says which record of which file it is.
func TestNamesTheRecord(t *testing.T) {
	m := newFS(1)
	l := created(t, m, 0)
	must(t, l.Append(storage.Batch{Entries: []*raftpb.Entry{ent(2, 1, "two"), ent(3, 1, "needle"), ent(4, 1, "four")}}))
	must(t, l.Close())
	b, err := m.ReadFile(segmentPath(1))
	must(t, err)
	at := strings.Index(string(b), "needle")
	b[at] ^= 4
	m.WriteFile(segmentPath(1), b)
	_, err = storage.Verify(m, dir)
	wantDamage(t, err, segmentPath(1))
	for _, want := range []string{segmentPath(1), "record 1 of the batch", "checksum"} {
		if !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, want %s", err, want)
		}
	}
	var off int
	if _, err := fmt.Sscanf(err.Error()[strings.Index(err.Error(), "offset"):], "offset %d", &off); err != nil || off > at || off < at-64 {
		t.Fatalf("offset %d, damage at %d", off, at)
	}
}

func TestVersions(t *testing.T) {
	m := newFS(1)
	must(t, created(t, m, 0).Close())
	b, err := m.ReadFile(segmentPath(1))
	must(t, err)
	for _, at := range []int{8, 12} { // version, sealing
		c := append([]byte(nil), b...)
		c[at] = 9
		storage.FixSegmentHeader(c)
		m.WriteFile(segmentPath(1), c)
		if _, err := storage.Verify(m, dir); err == nil || !strings.Contains(err.Error(), "9, which this version does not read") {
			t.Fatal(err)
		}
	}
}
