package memfs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made is a file that is durable with its name, holding these bytes.
func made(t *testing.T, m *memfs.FS, path, data string) storage.File {
	m.WriteFile(path, []byte(data))
	f, err := m.OpenAppend(path)
	must(t, err)
	_, err = f.Seek(0, io.SeekEnd)
	must(t, err)
	return f
}

func TestFile(t *testing.T) {
	m := memfs.New(1)
	must(t, m.MkdirAll("/a/b", 0o700))
	f, err := m.Create("/a/b/c")
	must(t, err)
	if _, err := m.Create("/a/b/c"); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	_, err = f.Write([]byte("hello"))
	must(t, err)
	must(t, f.Truncate(3))
	_, err = f.Seek(1, io.SeekStart)
	must(t, err)
	b, err := io.ReadAll(f)
	if string(b) != "el" || err != nil {
		t.Fatalf("%q %v", b, err)
	}
	must(t, m.Rename("/a/b/c", "/a/b/d"))
	if names, err := m.ReadDir("/a/b"); len(names) != 1 || names[0] != "d" || err != nil {
		t.Fatal(names, err)
	}
	must(t, m.Remove("/a/b/d"))
	if n, err := f.Size(); n != 3 || err != nil {
		t.Fatal("a removed file that is open", n, err)
	}
	if _, err := m.Open("/a/b/d"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	must(t, f.Close())
	if _, err := f.Write(nil); !errors.Is(err, fs.ErrClosed) {
		t.Fatal(err)
	}
}

// TestCrashKeepsWhatWasSynced: and of the rest any sectors, each whole.
func TestCrashKeepsWhatWasSynced(t *testing.T) {
	seen := map[int]bool{}
	for seed := range uint64(60) {
		m := memfs.New(seed)
		f := made(t, m, "/f", "")
		_, err := f.Write(bytes.Repeat([]byte("s"), 1000))
		must(t, err)
		must(t, f.Sync())
		_, err = f.Write(bytes.Repeat([]byte("u"), 3000))
		must(t, err)
		m.Crash()
		b, err := m.ReadFile("/f")
		must(t, err)
		if len(b) < 1000 || bytes.Count(b[:1000], []byte("s")) != 1000 {
			t.Fatal(seed, "synced bytes are gone")
		}
		seen[bytes.Count(b, []byte("u"))] = true
		for at := 1024; at+512 <= len(b); at += 512 {
			if n := bytes.Count(b[at:at+512], []byte("u")); n != 0 && n != 512 {
				t.Fatal(seed, "a sector in part", at, n)
			}
		}
		if _, err := f.Write([]byte("x")); !errors.Is(err, memfs.ErrCrashed) {
			t.Fatal(err)
		}
	}
	if !seen[0] || !seen[3000] || len(seen) < 5 {
		t.Fatal("crashes are all alike", seen)
	}
}

// TestFailedSync: what it did not write, no later sync writes.
func TestFailedSync(t *testing.T) {
	lost := 0
	for seed := range uint64(40) {
		m := memfs.New(seed)
		f := made(t, m, "/f", "")
		_, err := f.Write([]byte("data"))
		must(t, err)
		m.SetFault(func(op memfs.Op, _ string) error {
			if op == memfs.OpSync {
				return syscall.EIO
			}
			return nil
		})
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		m.SetFault(nil)
		must(t, f.Sync())
		if b, err := m.ReadFile("/f"); string(b) != "data" || err != nil {
			t.Fatal("not readable")
		}
		again := m.Clone(seed)
		m.Crash()
		if b, _ := m.ReadFile("/f"); string(b) != "data" {
			lost++
		}
		again.Crash()
		if b, _ := again.ReadFile("/f"); string(b) != "data" {
			t.Fatal("a clone is not durable")
		}
	}
	if lost == 0 {
		t.Fatal("a sync wrote what one before it lost")
	}
}

// TestNames: without a sync of the folder they may be lost, with it never; a
// rename is all or nothing.
func TestNames(t *testing.T) {
	got := map[string]bool{}
	for seed := range uint64(60) {
		m := memfs.New(seed)
		m.WriteFile("/d/old", []byte("old"))
		m.WriteFile("/d/new", []byte("new"))
		must(t, m.Rename("/d/new", "/d/old"))
		synced := seed%2 == 0
		if synced {
			must(t, m.SyncDir("/d"))
		}
		m.Crash()
		b, err := m.ReadFile("/d/old")
		if err != nil || synced && string(b) != "new" {
			t.Fatal(seed, string(b), err)
		}
		got[string(b)] = true
	}
	if len(got) != 2 {
		t.Fatal(got)
	}
}

func TestCrashAt(t *testing.T) {
	m := memfs.New(1)
	f := made(t, m, "/f", "")
	m.CrashAt(2)
	_, err := f.Write([]byte("a"))
	must(t, err)
	if err := f.Sync(); !errors.Is(err, memfs.ErrCrashed) || !m.Crashed() {
		t.Fatal(err)
	}
	if _, err := m.ReadDir("/"); !errors.Is(err, memfs.ErrCrashed) {
		t.Fatal(err)
	}
	m.Crash()
	if _, err := m.ReadDir("/"); err != nil || m.Effects() != 2 {
		t.Fatal(err, m.Effects())
	}
	m.Restart()
	if _, err := m.Open("/f"); err != nil {
		t.Fatal(err)
	}
}
