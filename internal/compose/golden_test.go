package compose

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/apijson"
	"holdfast/internal/descriptors"
	"holdfast/internal/testinput"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// realInputs are applications as their authors published them.
var realInputs = []struct {
	name  string
	files []string // below inputs
	env   []string
	extra map[string]string // files that stand beside the first one
}{
	{name: "voting-app", files: []string{"voting-app.yml"}},
	{name: "shop-app", files: []string{"shop-app.yml"}},
	{
		name:  "ghost",
		files: []string{"ghost.yml"},
		extra: map[string]string{"secret-ghost-db": "not a real password\n"},
	},
	{
		name:  "traefik-public",
		files: []string{"traefik-public.yml"},
		env:   []string{"USERS=admin:$apr1$abc", "DOMAIN=traefik.example.org"},
	},
	{name: "traefik-public-unset", files: []string{"traefik-public.yml"}},
	{name: "todo-list-v5", files: []string{"todo-list/v5.yml"}},
	{name: "numbers", files: numbers()},
	{name: "numbers-prod-healthcheck", files: numbers("prod-healthcheck.yml")},
	{name: "numbers-prod-update-config", files: numbers("prod-update-config.yml")},
	{name: "numbers-prod-rollback-config", files: numbers("prod-rollback-config.yml")},
	{name: "numbers-v2", files: numbers("v2.yml")},
	{name: "numbers-v3", files: numbers("v3.yml")},
	{name: "numbers-v5-bad", files: numbers("v5-bad.yml")},
	{name: "numbers-v5", files: numbers("v5.yml")},
	{
		name: "numbers-all",
		files: numbers("prod-healthcheck.yml", "prod-update-config.yml", "prod-rollback-config.yml",
			"v5-bad.yml", "v5.yml"),
	},
}

func numbers(more ...string) []string {
	files := []string{"numbers/docker-compose.yml", "numbers/prod.yml"}
	for _, f := range more {
		files = append(files, "numbers/"+f)
	}
	return files
}

func TestRealInputs(t *testing.T) {
	for _, in := range realInputs {
		t.Run(in.name, func(t *testing.T) {
			dir := t.TempDir()
			o := Options{Dir: dir, Env: in.env, Stack: "app"}
			for _, f := range in.files {
				content, err := os.ReadFile(testinput.Path(t, "inputs", filepath.FromSlash(f)))
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, dir, filepath.Base(f), string(content))
				o.Files = append(o.Files, filepath.Base(f))
			}
			for name, content := range in.extra {
				writeFile(t, dir, name, content)
			}
			result, err := Load(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			// The files' own folder is another one each time.
			compose := strings.ReplaceAll(result.Request.Compose, dir, "FOLDER")
			goldenFile(t, in.name+".golden.yml", []byte(compose))
			goldenFile(t, in.name+".golden.json", render(t, result))
			sameAgain(t, o, result)
		})
	}
}

// goldenFile holds what was made against a golden file.
func goldenFile(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); -update rewrites it\n%s", path, diff)
	}
}

// messages describes our messages, once for all tests.
var messages = sync.OnceValues(descriptors.New)

// render writes a result for people to read, but for its Compose file.
func render(t *testing.T, result *Result) []byte {
	t.Helper()
	files, err := messages()
	if err != nil {
		t.Fatal(err)
	}
	shown := *result.Request
	shown.Compose = ""
	request, err := apijson.New(files).Marshal(&shown)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(map[string]any{
		"request": json.RawMessage(request), "warnings": result.Warnings,
	}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func writeFile(t testing.TB, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
