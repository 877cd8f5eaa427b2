// Package testinput finds the files that tests take from beside the repository: tables and
// applications that are not ours to keep in it. A test that wants one that is not there is
// skipped, so that the repository can be tested by itself.
package testinput

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a file or folder in the folder "shared" beside the module's root.
// It skips the test if there is no such folder and fails it if the folder lacks the file.
func Path(t testing.TB, parts ...string) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(filepath.Dir(root), "shared")
	if _, err := os.Stat(shared); err != nil {
		t.Skipf("needs %s from the folder ../shared beside the module, which is not there",
			filepath.Join(parts...))
	}
	path := filepath.Join(append([]string{shared}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// moduleRoot returns the nearest folder with a go.mod, from the working folder upwards. A
// test's working folder is that of its package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", os.ErrNotExist
		}
		dir = parent
	}
}
