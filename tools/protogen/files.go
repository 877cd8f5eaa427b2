package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// find lists the files under the repository's api folder that end in suffix, by their
// slash-separated path in the repository, sorted.
func find(root, suffix string) ([]string, error) {
	var out []string
	err := fs.WalkDir(os.DirFS(root), "api", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(name, suffix) {
			out = append(out, name)
		}
		return err
	})
	return out, err
}

// findProtos returns the import names of the .proto files, by folder.
func findProtos(root string) (map[string][]string, error) {
	names, err := find(root, ".proto")
	if err != nil {
		return nil, err
	}
	folders := map[string][]string{}
	for _, name := range names {
		folders[path.Dir(name)] = append(folders[path.Dir(name)], module+"/"+name)
	}
	if len(folders) == 0 {
		return nil, errors.New("no .proto files under api")
	}
	return folders, nil
}

func findGenerated(root string) ([]string, error) { return find(root, ".pb.go") }

// compare fails if what is present differs from what was generated.
func compare(root string, files map[string]string, present []string) error {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			wrong = append(wrong, name+" is missing")
		case err != nil:
			return err
		case string(got) != files[name]:
			wrong = append(wrong, name+" is out of date")
		}
	}
	for _, name := range present {
		if _, ok := files[name]; !ok {
			wrong = append(wrong, name+" has no source")
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("generated code is not current; run make generate\n\t%s", strings.Join(wrong, "\n\t"))
	}
	return nil
}

// write writes the generated files and removes those that no source gives any more.
func write(root string, files map[string]string, present []string) error {
	for name, content := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if got, err := os.ReadFile(file); err == nil && string(got) == content {
			continue // an unchanged file keeps its time
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return err
		}
	}
	for _, name := range present {
		if _, ok := files[name]; ok {
			continue
		}
		if err := os.Remove(filepath.Join(root, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return nil
}
