package helm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	helmModule  = "helm.sh/helm/v4"
	helmStorage = helmModule + "/pkg/storage"
)

// bridge is added to the copy of Helm's tests: it makes the driver that takes the place of
// Helm's memory driver.
const bridge = `package storage

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"holdfast/contrib/helm"
	"holdfast/release/driver"
	"holdfast/release/driver/memory"
	"holdfast/release/driver/sql/sqlite"
)

func newHoldfast() *helm.Driver {
	var below driver.Driver = memory.New(time.Now)
	if dir := os.Getenv("HOLDFAST_SQLITE"); dir != "" {
		own, err := os.MkdirTemp(dir, "")
		if err != nil {
			panic(err)
		}
		if below, err = sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(own, "db")}); err != nil {
			panic(err)
		}
	}
	return helm.New(helm.Options{Driver: below, Namespace: "default"})
}
`

// goCommand runs the go command in this module, offline: all that is needed is needed by the
// other tests, too.
func goCommand(t *testing.T, env []string, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), append(env, "GOWORK=off", "GOPROXY=off")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out, err
}

// outcomes runs Helm's storage tests, and returns how each of them ended.
func outcomes(t *testing.T, env []string, args ...string) map[string]string {
	t.Helper()
	out, err := goCommand(t, env, append(append([]string{"test", "-json", "-count=1"}, args...), helmStorage)...)
	if err != nil {
		t.Errorf("%v\n%s", err, out) // and go on to tell which tests failed
	}
	ended := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var event struct{ Action, Test string }
		err := d.Decode(&event)
		if errors.Is(err, io.EOF) {
			return ended
		}
		require.NoError(t, err)
		if event.Test != "" && slices.Contains([]string{"pass", "fail", "skip"}, event.Action) {
			ended[event.Test] = event.Action
		}
	}
}

// copyHelm copies the module from the module cache, and puts our driver in the place of its
// memory driver in the tests of its storage. It returns how often it did.
func copyHelm(t *testing.T, to string) int {
	t.Helper()
	out, err := goCommand(t, nil, "list", "-m", "-f", "{{.Dir}}", helmModule)
	require.NoError(t, err)
	from := strings.TrimSpace(string(out))
	require.NoError(t, filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755) //nolint:gosec // the cache's folders cannot be written
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644) //nolint:gosec // as above
	}))
	const memory = "driver.NewMemory()"
	tests := filepath.Join(to, "pkg/storage/storage_test.go")
	text, err := os.ReadFile(tests)
	require.NoError(t, err)
	replaced := bytes.ReplaceAll(text, []byte(memory), []byte("newHoldfast()"))
	require.NoError(t, os.WriteFile(tests, replaced, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(to, "pkg/storage/holdfast_test.go"), []byte(bridge), 0o600))
	return bytes.Count(text, []byte(memory))
}

// modFile writes a go.mod that is this module's, with the copy in the place of Helm.
func modFile(t *testing.T, dir, helmCopy string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	name := filepath.Join(dir, "go.mod")
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), text, 0o600))
	}
	_, err = goCommand(t, nil, "mod", "edit", "-replace=holdfast="+root, "-replace="+helmModule+"="+helmCopy, name)
	require.NoError(t, err)
	return name
}

// Helm's own tests of its storage pass with this driver in the place of its memory driver: the
// same ones, and none is skipped.
func TestHelmsStorageTests(t *testing.T) {
	want := outcomes(t, nil)
	require.NotEmpty(t, want)
	dir := t.TempDir()
	helmCopy := filepath.Join(dir, "helm")
	require.GreaterOrEqual(t, copyHelm(t, helmCopy), 12, "the tests of this version of Helm make their driver in another way")
	mod := modFile(t, dir, helmCopy)
	for name, env := range map[string][]string{"memory": nil, "sqlite": {"HOLDFAST_SQLITE=" + t.TempDir()}} {
		got := outcomes(t, env, "-modfile="+mod)
		require.Equal(t, want, got, name)
		for test, outcome := range got {
			require.Equal(t, "pass", outcome, "%s: %s", name, test)
		}
		t.Logf("%s: %d of Helm's tests pass", name, len(got))
	}
}
