// Package descriptors gives the descriptors of our messages to what is built on the standard
// protobuf library: JSON and gRPC reflection. The messages are gogo's, which keeps their
// descriptors in a registry of its own, compressed and under other names for its imports.
package descriptors

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	gogo "github.com/gogo/protobuf/proto"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	// All that the descriptors refer to must be registered, with gogo or with protobuf.
	_ "github.com/gogo/protobuf/gogoproto"
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"

	_ "holdfast/api"
	_ "holdfast/api/holdfast"
)

// fileNames returns the names of our .proto files. A test holds it against the folders.
func fileNames() []string {
	return []string{
		"holdfast/api/control.proto",
		"holdfast/api/health.proto",
		"holdfast/api/objects.proto",
		"holdfast/api/raft.proto",
		"holdfast/api/specs.proto",
		"holdfast/api/types.proto",
		"holdfast/api/watch.proto",
		"holdfast/api/holdfast/cluster.proto",
		"holdfast/api/holdfast/entry.proto",
		"holdfast/api/holdfast/objects.proto",
		"holdfast/api/holdfast/raft.proto",
		"holdfast/api/holdfast/stacks.proto",
		"holdfast/api/holdfast/watch.proto",
	}
}

// Files holds the descriptors of our .proto files and of all that they import. What it has
// not, it looks up among the descriptors of the standard protobuf library. It does not change
// once made, and any goroutine may use it.
type Files struct {
	files *protoregistry.Files
	types *dynamicpb.Types
}

// New reads the descriptors of our messages.
func New() (*Files, error) {
	f := &Files{files: new(protoregistry.Files)}
	for _, name := range fileNames() {
		if err := f.add(name); err != nil {
			return nil, fmt.Errorf("descriptors: %s: %w", name, err)
		}
	}
	f.types = dynamicpb.NewTypes(f.files)
	return f, nil
}

// add adds a file, after those that it imports.
func (f *Files) add(name string) error {
	if _, err := f.files.FindFileByPath(name); err == nil {
		return nil
	}
	if strings.HasPrefix(name, "google/protobuf/") {
		file, err := protoregistry.GlobalFiles.FindFileByPath(name)
		if err != nil {
			return err
		}
		return f.files.RegisterFile(file)
	}
	fd, err := load(name)
	if err != nil {
		return err
	}
	for _, imported := range fd.GetDependency() {
		if err := f.add(imported); err != nil {
			return err
		}
	}
	file, err := protodesc.NewFile(fd, f.files)
	if err != nil {
		return err
	}
	return f.files.RegisterFile(file)
}

// load reads one file from gogo's registry.
func load(name string) (*descriptorpb.FileDescriptorProto, error) {
	const options = "gogoproto/gogo.proto"
	registered := name
	if name == options {
		registered = "gogo.proto"
	}
	zipped := gogo.FileDescriptor(registered)
	if zipped == nil {
		return nil, errors.New("not in gogo's registry")
	}
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	fd := new(descriptorpb.FileDescriptorProto)
	if err := proto.Unmarshal(data, fd); err != nil {
		return nil, err
	}
	if name == options {
		fd.Name = proto.String(options)
		fd.Dependency = []string{"google/protobuf/descriptor.proto"}
	}
	return fd, nil
}

// FindFileByPath implements protodesc.Resolver.
func (f *Files) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if file, err := f.files.FindFileByPath(path); err == nil {
		return file, nil
	}
	return protoregistry.GlobalFiles.FindFileByPath(path)
}

// FindDescriptorByName implements protodesc.Resolver.
func (f *Files) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if d, err := f.files.FindDescriptorByName(name); err == nil {
		return d, nil
	}
	return protoregistry.GlobalFiles.FindDescriptorByName(name)
}

// FindMessageByName implements protoregistry.MessageTypeResolver; messages of the type that
// it returns are dynamic ones.
func (f *Files) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	return f.types.FindMessageByName(name)
}

// FindMessageByURL implements protoregistry.MessageTypeResolver.
func (f *Files) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	return f.types.FindMessageByURL(url)
}

// FindExtensionByName implements protoregistry.ExtensionTypeResolver.
func (f *Files) FindExtensionByName(name protoreflect.FullName) (protoreflect.ExtensionType, error) {
	return f.types.FindExtensionByName(name)
}

// FindExtensionByNumber implements protoregistry.ExtensionTypeResolver.
func (f *Files) FindExtensionByNumber(message protoreflect.FullName, number protoreflect.FieldNumber,
) (protoreflect.ExtensionType, error) {
	return f.types.FindExtensionByNumber(message, number)
}

// RangeExtensionsByMessage calls yield for each extension of a message, until it returns
// false. Only gogo's options are extensions here.
func (f *Files) RangeExtensionsByMessage(message protoreflect.FullName, yield func(protoreflect.ExtensionType) bool) {
	f.files.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		extensions := file.Extensions()
		for i := range extensions.Len() {
			x := extensions.Get(i)
			if x.ContainingMessage().FullName() == message && !yield(dynamicpb.NewExtensionType(x)) {
				return false
			}
		}
		return true
	})
}
