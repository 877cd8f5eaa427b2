package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	_ "github.com/gogo/protobuf/gogoproto" // registers the descriptor that gogoDescriptor reads
	gogo "github.com/gogo/protobuf/proto"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// module is the first part of the repository's import paths; the folder api in it is the
// only one that holds protos.
const module = "holdfast"

// gogoProto is the name by which protos import gogo's options.
const gogoProto = "gogoproto/gogo.proto"

// compile parses and links the named files and returns them with all that they import, each
// file after its imports.
func compile(ctx context.Context, parent string, names []string) ([]*descriptorpb.FileDescriptorProto, error) {
	options, err := gogoDescriptor()
	if err != nil {
		return nil, err
	}
	resolver := protocompile.CompositeResolver{
		protocompile.ResolverFunc(func(name string) (protocompile.SearchResult, error) {
			if name != gogoProto {
				return protocompile.SearchResult{}, fmt.Errorf("%s not found", name)
			}
			return protocompile.SearchResult{Proto: options}, nil
		}),
		&protocompile.SourceResolver{ImportPaths: []string{parent}},
	}
	c := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(resolver),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := c.Compile(ctx, names...)
	if err != nil {
		return nil, err
	}
	var out []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	for _, file := range files {
		out = collect(file, seen, out)
	}
	return out, nil
}

// collect appends file to out, after what it imports.
func collect(file protoreflect.FileDescriptor, seen map[string]bool, out []*descriptorpb.FileDescriptorProto,
) []*descriptorpb.FileDescriptorProto {
	if seen[file.Path()] {
		return out
	}
	seen[file.Path()] = true
	imports := file.Imports()
	for i := range imports.Len() {
		out = collect(imports.Get(i).FileDescriptor, seen, out)
	}
	if result, ok := file.(linker.Result); ok {
		return append(out, result.FileDescriptorProto())
	}
	return append(out, protodesc.ToFileDescriptorProto(file))
}

// gogoDescriptor returns the file of gogo's options. It is linked into this program, under
// another name than the one by which it is imported.
func gogoDescriptor() (*descriptorpb.FileDescriptorProto, error) {
	zipped := gogo.FileDescriptor("gogo.proto")
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, fmt.Errorf("gogo.proto: %w", err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("gogo.proto: %w", err)
	}
	fd := new(descriptorpb.FileDescriptorProto)
	if err := proto.Unmarshal(data, fd); err != nil {
		return nil, fmt.Errorf("gogo.proto: %w", err)
	}
	fd.Name = proto.String(gogoProto)
	fd.Dependency = []string{"google/protobuf/descriptor.proto"}
	return fd, nil
}
