package manager

import (
	"os"
	"path/filepath"
	"testing"

	"holdfast/internal/errkind"
)

// A path of something else is never taken for a socket that nobody serves, and removed.
func TestControlSocketReplacesOnlySockets(t *testing.T) {
	dir, err := os.MkdirTemp("", "hf") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	file, link, folder := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "folder")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link, folder} {
		if l, err := listenControl(path); !errkind.Is(err, errkind.Invalid) {
			t.Errorf("%s: got %v, %v", path, l, err)
		}
	}
	if data, err := os.ReadFile(link); err != nil || string(data) != "precious" {
		t.Errorf("the file holds %q, %v", data, err)
	}

	path := filepath.Join(dir, "s")
	first, err := listenControl(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listenControl(path); !errkind.Is(err, errkind.Invalid) {
		t.Errorf("a socket that is served: %v", err)
	}
	if err := first.(socket).UnixListener.Close(); err != nil { // as a kill would
		t.Fatal(err)
	}
	second, err := listenControl(path)
	if err != nil {
		t.Fatalf("a socket that nobody serves: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}
