package compose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLoad: whatever the file, Load ends with a request or with an error of one line; and the
// effective file says the same.
func FuzzLoad(f *testing.F) {
	for _, test := range keyTests {
		f.Add(test.file)
	}
	seeds, err := filepath.Glob(filepath.Join("testdata", "*.golden.json")) // JSON is YAML, too
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range seeds {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(content))
	}
	f.Add("services: {web: {image: &a x, command: *a, secrets: [{target: 5}]}}\n---\nservices: {web: {command: !reset }}")
	f.Add("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]")
	dir := f.TempDir()
	writeFile(f, dir, "data.txt", "canary")
	f.Fuzz(func(t *testing.T, text string) {
		// Not what the machine has: the file may name any path.
		for _, key := range []string{"file", "include", "extends", "path"} {
			if strings.Contains(text, key) {
				t.Skip()
			}
		}
		o := Options{
			Files: []string{"-"}, Stdin: strings.NewReader(text), Dir: dir,
			Env: []string{"A=1", "EMPTY="}, Stack: "s",
		}
		result, err := Load(t.Context(), o)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "canary") {
				t.Errorf("error: %q", err)
			}
			return
		}
		if _, err := result.Request.Marshal(); err != nil {
			t.Error(err)
		}
		for _, w := range result.Warnings {
			if strings.Contains(w, "\n") {
				t.Errorf("warning: %q", w)
			}
		}
		if len(result.Request.Services) > 0 { // else there may be nothing at all in it
			sameAgain(t, o, result)
		}
	})
}
