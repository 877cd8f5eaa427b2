// Command protogen generates the Go code of the API. It compiles the .proto files itself, so
// that no protoc needs to be installed, and runs the code generator plugins on the result.
//
//	protogen -root REPO -plugins DIR          writes the generated files
//	protogen -root REPO -plugins DIR -check   fails if they are not what would be written
//
// DIR holds protoc-gen-gogofaster, protoc-gen-holdfast and protoc-gen-go-grpc. The output
// depends on nothing but the .proto files, the plugins and this program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "root folder of the repository")
	plugins := flag.String("plugins", "", "folder that holds the plugins")
	check := flag.Bool("check", false, "compare with the files that are there, write nothing")
	flag.Parse()
	if err := run(context.Background(), *root, *plugins, *check); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, plugins string, check bool) error {
	if plugins == "" {
		return errors.New("-plugins is needed")
	}
	plugins, err := filepath.Abs(plugins)
	if err != nil {
		return err
	}
	folders, err := findProtos(root)
	if err != nil {
		return err
	}
	files, err := generate(ctx, root, plugins, folders)
	if err != nil {
		return err
	}
	present, err := findGenerated(root)
	if err != nil {
		return err
	}
	if check {
		return compare(root, files, present)
	}
	return write(root, files, present)
}
