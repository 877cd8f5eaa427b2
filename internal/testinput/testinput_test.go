package testinput

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPath(t *testing.T) {
	top := t.TempDir()
	inner := filepath.Join(top, "repo", "a", "b")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "repo", "go.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(inner)

	skipped := !t.Run("absent", func(t *testing.T) {
		Path(t, "wire", "table")
		t.Error("not skipped")
	})
	if skipped {
		t.Fatal("a test without its input failed")
	}

	want := filepath.Join(top, "shared", "wire", "table")
	if err := os.MkdirAll(filepath.Dir(want), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(want, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got := Path(t, "wire", "table")
	gotInfo, err := os.Stat(got)
	if err != nil {
		t.Fatal(err)
	}
	if wantInfo, err := os.Stat(want); err != nil || !os.SameFile(gotInfo, wantInfo) {
		t.Errorf("Path is %s, want %s", got, want)
	}
}
