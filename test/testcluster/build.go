package testcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	// raceVariable asks for programs with the race detector.
	raceVariable = "HOLDFAST_RACE"
	// soakVariable tells how long tests that look for rare faults go on.
	soakVariable = "HOLDFAST_SOAK"
)

// programs is the folder with the programs that Run has built.
var programs string //nolint:gochecknoglobals // built once for all tests of a binary

// Run builds the programs, runs the tests of m, and removes the programs. It returns the exit
// code for TestMain.
func Run(m *testing.M) int {
	dir, err := build()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcluster:", err)
		return 1
	}
	programs = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "testcluster:", err)
		return 1
	}
	return code
}

// Soak returns how long a test that looks for rare faults shall go on, or 0 for the short
// form of it.
func Soak(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv(soakVariable)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", soakVariable, err)
	}
	return d
}

// build builds the programs into a folder of their own.
func build() (dir string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	if err := lookAt(root); err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "hfbin"); err != nil {
		return "", err
	}
	args := []string{"build", "-buildvcs=false", "-o", dir + string(filepath.Separator)}
	if withRace || os.Getenv(raceVariable) != "" {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/managerd", "./cmd/ctl")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build programs: %w\n%s", err, out), os.RemoveAll(dir))
	}
	return dir, nil
}

// moduleRoot finds the folder of go.mod, from the folder of the test upwards.
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
			return "", errors.New("no go.mod above the test")
		}
		dir = parent
	}
}

// lookAt looks at each source file, so that the go command does not take the result of an
// earlier run for that of other sources: it sees which files a test looks at, not which ones
// the compiler reads that the test starts.
func lookAt(root string) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(name, "_test.go"):
			return nil
		case strings.HasSuffix(name, ".go") || strings.HasPrefix(d.Name(), "go."):
			_, err := os.Stat(name)
			return err
		}
		return nil
	})
}

// program returns the path of a program.
func program(t testing.TB, name string) string {
	t.Helper()
	if programs == "" {
		t.Fatal("testcluster.Run was not called: the package needs a TestMain")
	}
	return filepath.Join(programs, name)
}
