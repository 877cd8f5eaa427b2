package archtest

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "holdfast"

// layers lists the packages from the top down, a package standing for those below it in the
// folder tree that are not listed themselves. A package may import those of lower layers and
// those listed with it.
func layers() [][]string {
	return [][]string{
		{"test"}, // may import all
		{"cmd"},
		{"manager"},
		{"manager/controlapi"},
		{"manager/objectapi"},
		{"manager/watchapi"},
		{"manager/clusterapi"},
		{"manager/stackapi"},
		{"manager/releasestore"},
		{"manager/kinds"},
		{"manager/objects"},
		{"manager/proxy", "manager/call", "manager/agreement"},
		{"release"},
		{"ca"},
		{"manager/state/raft"},
		{"manager/state/raft/transport", "manager/state/raft/membership", "manager/state/raft/storage"},
		{"manager/state/store"},
		{"manager/state"},
		{"watch"},
		{"client"},
		{"internal"},
		{"api"},
	}
}

// strangers lists pairs of packages, with those below them, that must not import each other,
// whatever the layers say.
func strangers() [][2]string {
	return [][2]string{{"manager/state/raft", "manager/state/store"}}
}

func TestImports(t *testing.T) {
	for _, pkg := range packages(t) {
		from, ok := layerOf(pkg.path)
		if !ok {
			t.Errorf("%s is in no layer; add it to the list", pkg.path)
			continue
		}
		for _, imported := range pkg.imports {
			if to, ok := layerOf(imported); !ok || to < from {
				t.Errorf("%s must not import %s, which is above it", pkg.path, imported)
			}
			for _, pair := range strangers() {
				if under(pkg.path, pair[0]) && under(imported, pair[1]) ||
					under(pkg.path, pair[1]) && under(imported, pair[0]) {
					t.Errorf("%s must not import %s: %s and %s do not know each other",
						pkg.path, imported, pair[0], pair[1])
				}
			}
			if under(pkg.path, "api") && !under(imported, "api") {
				t.Errorf("%s must not import %s: api imports nothing of ours", pkg.path, imported)
			}
		}
	}
}

func TestPackageComments(t *testing.T) {
	for _, pkg := range packages(t) {
		if !pkg.documented {
			t.Errorf("%s has no package comment", pkg.path)
		}
	}
}

func TestLayerOf(t *testing.T) {
	raft, _ := layerOf("manager/state/raft")
	storage, _ := layerOf("manager/state/raft/storage/sub")
	state, _ := layerOf("manager/state")
	if raft >= storage || storage >= state {
		t.Errorf("raft %d, storage %d, state %d", raft, storage, state)
	}
	if _, ok := layerOf("apiary"); ok {
		t.Error("apiary is in a layer")
	}
}

// layerOf returns the layer of a package: that of the longest name that it is under.
func layerOf(pkg string) (layer int, ok bool) {
	longest := -1
	for i, names := range layers() {
		for _, name := range names {
			if under(pkg, name) && len(name) > longest {
				layer, longest = i, len(name)
			}
		}
	}
	return layer, longest >= 0
}

func under(pkg, name string) bool {
	return pkg == name || strings.HasPrefix(pkg, name+"/")
}

// pkg is what the rules need to know of a package. Paths are without the module's. A package
// that is all tests needs a file doc.go.
type pkg struct {
	path       string
	imports    []string // our own packages that its files, but tests, import
	documented bool
}

// packages reads all packages of the module. It parses the files itself, rather than ask the
// go command: the test cache sees which files a test reads, not which its children read.
func packages(t *testing.T) []pkg {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*pkg{}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skip(root, name, d.Name())
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(rel)
		if found[dir] == nil {
			found[dir] = &pkg{path: dir}
		}
		return found[dir].add(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	var out []pkg
	for _, p := range found {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b pkg) int { return strings.Compare(a.path, b.path) })
	return out
}

// skip leaves out what the go command leaves out, too: hidden folders, test data and other
// modules.
func skip(root, dir, base string) error {
	if dir == root {
		return nil
	}
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); !errors.Is(err, fs.ErrNotExist) {
		return filepath.SkipDir
	}
	return nil
}

// add takes note of one file.
func (p *pkg) add(name string) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	p.documented = p.documented || file.Doc != nil
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if own, ok := strings.CutPrefix(imported, module+"/"); ok && !slices.Contains(p.imports, own) {
			p.imports = append(p.imports, own)
		}
	}
	return nil
}
