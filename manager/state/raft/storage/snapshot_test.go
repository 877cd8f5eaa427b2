package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
)

const snapFile = dir + "/snap/snap-0000000000000007-0000000000000003.snap"

// writeSnapshot writes the snapshot 7/3 with two sections.
func writeSnapshot(t testing.TB, m storage.FS, dir string, big int) {
	w, err := storage.CreateSnapshot(m, dir, 7, 3)
	must(t, err)
	must(t, w.Section("members"))
	must(t, w.Record([]byte("one")))
	must(t, w.Record(nil))
	must(t, w.Section("empty"))
	must(t, w.Section("objects"))
	for i := range 5 {
		must(t, w.Record(bytes.Repeat([]byte{byte(i)}, big*i)))
	}
	must(t, w.Commit())
}

func readSnapshot(m storage.FS, dir string) (string, error) {
	r, err := storage.OpenSnapshot(m, dir, 7, 3)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for {
		section, rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return b.String(), r.Close()
		}
		if err != nil {
			return b.String(), errors.Join(err, r.Close())
		}
		fmt.Fprintf(&b, "%s %d %.20q\n", section, len(rec), rec)
	}
}

func TestSnapshot(t *testing.T) {
	for _, big := range []int{10, 100 << 10, 4 << 20} {
		root := t.TempDir()
		writeSnapshot(t, storage.OS(), root, big)
		got, err := readSnapshot(storage.OS(), root)
		must(t, err)
		lines := strings.Split(strings.TrimSpace(got), "\n")
		if len(lines) != 7 || lines[0] != `members 3 "one"` || lines[1] != `members 0 ""` ||
			!strings.HasPrefix(lines[6], fmt.Sprintf("objects %d ", 4*big)) {
			t.Fatal(got)
		}
	}
}

// TestOS runs a log on the real disk.
func TestOS(t *testing.T) {
	fsys, root := storage.OS(), filepath.Join(t.TempDir(), "raft")
	if ok, err := storage.Exists(fsys, root); ok || err != nil {
		t.Fatal(ok, err)
	}
	must(t, storage.Create(fsys, root, ident, first()))
	l, _, err := storage.Open(fsys, root, storage.Options{SegmentSize: 1})
	must(t, err)
	must(t, l.Append(storage.Batch{Entries: ents(2, 9, 1), HardState: hard(1, 1, 9)}))
	writeSnapshot(t, fsys, root, 10)
	must(t, l.Append(storage.Batch{Entries: ents(10, 10, 3), HardState: hard(3, 1, 9)}))
	must(t, l.Append(storage.Batch{Snapshot: received(10, 3), HardState: hard(3, 1, 10)}))
	must(t, l.Compact(10))
	must(t, l.Close())
	names, err := fsys.ReadDir(filepath.Join(root, "log"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	path := filepath.Join(root, "log", names[0])
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Fatal(st, err)
	}
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, b[:len(b)-1], 0o600)) // the closing mark is torn
	l, s, err := storage.Open(fsys, root, storage.Options{})
	must(t, err)
	if span(s) != "11-10 prev 3, term 3 commit 10, snap 10/3" || s.Clean || s.Dropped != 127 {
		t.Fatal(span(s), s.Clean, s.Dropped)
	}
	must(t, l.Close())
	must(t, storage.RemoveSnapshots(fsys, root))
}

func TestSnapshotMisuse(t *testing.T) {
	m := newFS(1)
	create := func() *storage.SnapshotWriter {
		must(t, storage.RemoveSnapshots(m, dir))
		w, err := storage.CreateSnapshot(m, dir, 7, 3)
		must(t, err)
		return w
	}
	for name, f := range map[string]func(w *storage.SnapshotWriter) error{
		"record first": func(w *storage.SnapshotWriter) error { return w.Record(nil) },
		"no name":      func(w *storage.SnapshotWriter) error { return w.Section("") },
		"space":        func(w *storage.SnapshotWriter) error { return w.Section("a b") },
		"twice":        func(w *storage.SnapshotWriter) error { return errors.Join(w.Section("a"), w.Section("a")) },
		"too large": func(w *storage.SnapshotWriter) error {
			return errors.Join(w.Section("a"), w.Record(make([]byte, storage.MaxRecordSize+1)))
		},
	} {
		w := create()
		err := f(w)
		if err == nil {
			t.Fatal(name)
		}
		if w.Commit() == nil {
			t.Fatal(name, "committed")
		}
		must(t, w.Abort())
		must(t, w.Abort())
	}
	w := create()
	if _, err := storage.CreateSnapshot(m, dir, 7, 3); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	must(t, w.Section("a"))
	must(t, w.Commit())
	if err := w.Record(nil); !errors.Is(err, storage.ErrClosed) {
		t.Fatal(err)
	}
	r, err := storage.OpenSnapshot(m, dir, 7, 3)
	must(t, err)
	must(t, errors.Join(r.Close(), r.Close()))
	if _, _, err := r.Next(); !errors.Is(err, storage.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := storage.OpenSnapshot(m, dir, 7, 4); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// TestSnapshotDamage: no bit flip, cut, or longer file passes.
func TestSnapshotDamage(t *testing.T) {
	m := newFS(1)
	writeSnapshot(t, m, dir, 10)
	b, err := m.ReadFile(snapFile)
	must(t, err)
	for bit := range len(b) * 8 {
		b[bit/8] ^= 1 << (bit % 8)
		m.WriteFile(snapFile, b)
		b[bit/8] ^= 1 << (bit % 8)
		_, err := readSnapshot(m, dir)
		wantDamage(t, err, snapFile)
	}
	for cut := range len(b) {
		m.WriteFile(snapFile, b[:cut])
		_, err := readSnapshot(m, dir)
		wantDamage(t, err, snapFile)
	}
	m.WriteFile(snapFile, append(b, 0))
	_, err = readSnapshot(m, dir)
	wantDamage(t, err, snapFile)
	m.WriteFile(strings.Replace(snapFile, "7-", "8-", 1), b)
	_, err = storage.OpenSnapshot(m, dir, 8, 3)
	wantDamage(t, err, "")
}

func TestReceiveSnapshot(t *testing.T) {
	from := newFS(1)
	writeSnapshot(t, from, dir, 100<<10)
	in, size, err := storage.OpenSnapshotFile(from, dir, 7, 3)
	must(t, err)
	raw, err := io.ReadAll(in)
	must(t, errors.Join(err, in.Close()))
	if int64(len(raw)) != size {
		t.Fatal(size)
	}
	to := newFS(2)
	r, err := storage.ReceiveSnapshot(to, dir, 7, 3)
	must(t, err)
	for b := raw; len(b) > 0; b = b[min(len(b), 7777):] {
		_, err := r.Write(b[:min(len(b), 7777)])
		must(t, err)
	}
	must(t, r.Commit())
	to.Crash()
	a, err := readSnapshot(from, dir)
	must(t, err)
	b, err := readSnapshot(to, dir)
	must(t, err)
	if a != b {
		t.Fatal("it is another snapshot")
	}
	for name, bad := range map[string][]byte{
		"nothing": nil, "cut": raw[:len(raw)-1], "longer": append(raw[:len(raw):len(raw)], 0),
		"flip": append(append(append([]byte(nil), raw[:200]...), raw[200]^1), raw[201:]...),
	} {
		to := newFS(2)
		r, err := storage.ReceiveSnapshot(to, dir, 7, 3)
		must(t, err)
		_, err = r.Write(bad)
		must(t, err)
		wantDamage(t, r.Commit(), "")
		if names, _ := to.ReadDir(dir + "/snap"); len(names) > 0 {
			t.Fatal(name, names)
		}
	}
	r, err = storage.ReceiveSnapshot(to, dir, 8, 3)
	must(t, err)
	_, err = r.Write(raw)
	must(t, err)
	if err := r.Commit(); err == nil || !strings.Contains(err.Error(), "index 7 of term 3") {
		t.Fatal(err)
	}
}

// TestSnapshotCrash: at every effect of writing a snapshot and its marker, a
// crash leaves the whole or none, and a marker only with its file.
func TestSnapshotCrash(t *testing.T) {
	done := false
	for n := 1; !done; n++ {
		for seed := range uint64(5) {
			m := newFS(seed)
			must(t, storage.Create(m, dir, ident, storage.Batch{HardState: hard(3, 0, 9), Entries: ents(1, 9, 3)}))
			l, _ := open(t, m, 0)
			m.CrashAt(n)
			err := func() error {
				w, err := storage.CreateSnapshot(m, dir, 7, 3)
				if err != nil {
					return err
				}
				err = errors.Join(w.Section("a"), w.Record([]byte("b")))
				if err == nil {
					err = w.Commit()
				}
				if err == nil {
					err = l.Append(storage.Batch{Snapshot: local(7, 3)})
				}
				return err
			}()
			done = err == nil
			m.Crash()
			l, s := open(t, m, 0)
			if !s.Snapshot.IsZero() || done {
				got, err := readSnapshot(m, dir)
				if must(t, err); got != "a 1 \"b\"\n" || s.Snapshot.Index != 7 {
					t.Fatal(got, describe(s))
				}
				_, err = storage.Verify(m, dir)
				must(t, err)
			} else {
				must(t, storage.RemoveSnapshots(m, dir, s.Snapshot))
				if names, _ := m.ReadDir(dir + "/snap"); len(names) > 0 {
					t.Fatal(names)
				}
			}
			must(t, l.Close())
		}
	}
}

func TestRemoveSnapshots(t *testing.T) {
	m := newFS(1)
	must(t, storage.RemoveSnapshots(m, dir)) // no folder
	for i := uint64(1); i <= 5; i++ {
		w, err := storage.CreateSnapshot(m, dir, i, 1)
		must(t, err)
		must(t, w.Commit())
	}
	_, err := storage.CreateSnapshot(m, dir, 6, 1)
	must(t, err)
	_, err = storage.ReceiveSnapshot(m, dir, 6, 1)
	must(t, err)
	m.WriteFile(dir+"/snap/README", nil)
	must(t, storage.RemoveOldSnapshots(m, dir, 3))
	if names, _ := m.ReadDir(dir + "/snap"); len(names) != 6 {
		t.Fatal(names)
	}
	must(t, storage.RemoveSnapshots(m, dir, *local(4, 1)))
	m.Crash()
	names, err := m.ReadDir(dir + "/snap")
	must(t, err)
	if fmt.Sprint(names) != "[README snap-0000000000000004-0000000000000001.snap]" {
		t.Fatal(names)
	}
}

func TestSnapshotDiskFull(t *testing.T) {
	for _, op := range []memfs.Op{memfs.OpWrite, memfs.OpSync, memfs.OpRename, memfs.OpSyncDir} {
		m := newFS(1)
		w, err := storage.CreateSnapshot(m, dir, 7, 3)
		must(t, err)
		m.SetFault(func(o memfs.Op, _ string) error {
			if o == op {
				return syscall.ENOSPC
			}
			return nil
		})
		err = errors.Join(w.Section("a"), w.Commit())
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(op, err)
		}
		m.SetFault(nil)
		must(t, w.Abort())
	}
}
