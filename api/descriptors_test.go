package api_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/gogo/protobuf/proto"
	"github.com/gogo/protobuf/protoc-gen-gogo/descriptor"
)

// messageNames returns the full names of all messages of our packages.
func messageNames(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, file := range fileDescriptors(t) {
		var walk func(prefix string, messages []*descriptor.DescriptorProto)
		walk = func(prefix string, messages []*descriptor.DescriptorProto) {
			for _, m := range messages {
				if m.GetOptions().GetMapEntry() {
					continue
				}
				out = append(out, prefix+m.GetName())
				walk(prefix+m.GetName()+".", m.GetNestedType())
			}
		}
		walk(file.GetPackage()+".", file.GetMessageType())
	}
	return out
}

// fileDescriptors returns the descriptors of all our .proto files.
func fileDescriptors(t *testing.T) []*descriptor.FileDescriptorProto {
	t.Helper()
	var out []*descriptor.FileDescriptorProto
	for _, folder := range []string{".", "holdfast"} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".proto") {
				continue
			}
			name := path.Join("holdfast/api", folder, e.Name())
			r, err := gzip.NewReader(bytes.NewReader(proto.FileDescriptor(name)))
			if err != nil {
				t.Fatalf("%s is not registered: %v", name, err)
			}
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			file := new(descriptor.FileDescriptorProto)
			if err := proto.Unmarshal(data, file); err != nil {
				t.Fatal(err)
			}
			out = append(out, file)
		}
	}
	return out
}
