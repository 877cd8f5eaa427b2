package descriptors

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

func TestFileNames(t *testing.T) {
	var want []string
	root := os.DirFS("../..")
	err := fs.WalkDir(root, "api", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".proto") {
			want = append(want, "holdfast/"+name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got := fileNames()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("fileNames is %v, the files are %v", got, want)
	}
}

func TestFind(t *testing.T) {
	f, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []protoreflect.FullName{
		"docker.swarmkit.v1.Service",
		"docker.swarmkit.v1.Control.GetService",
		"holdfast.v1.Raft",
		"google.protobuf.Timestamp",
		"gogoproto.nullable",
	} {
		if _, err := f.FindDescriptorByName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.FindFileByPath("holdfast/api/holdfast/raft.proto"); err != nil {
		t.Error(err)
	}
	if _, err := f.FindFileByPath("raft.proto"); err == nil {
		t.Error("raft.proto found, and it is nobody's name")
	}
	if _, err := f.FindMessageByName("docker.swarmkit.v1.NoSuch"); err == nil {
		t.Error("an unknown message was found")
	}
	if m, err := f.FindMessageByURL("type.googleapis.com/docker.swarmkit.v1.Task"); err != nil ||
		m.Descriptor().Fields().ByName("service_id") == nil {
		t.Errorf("Task by URL: %v, %v", m, err)
	}
}

func TestExtensions(t *testing.T) {
	f, err := New()
	if err != nil {
		t.Fatal(err)
	}
	count, seen := 0, false
	f.RangeExtensionsByMessage("google.protobuf.FieldOptions", func(x protoreflect.ExtensionType) bool {
		count++
		seen = seen || x.TypeDescriptor().FullName() == "gogoproto.customname"
		byNumber, err := f.FindExtensionByNumber("google.protobuf.FieldOptions", x.TypeDescriptor().Number())
		if err != nil || byNumber.TypeDescriptor().FullName() != x.TypeDescriptor().FullName() {
			t.Errorf("extension %d: %v, %v", x.TypeDescriptor().Number(), byNumber, err)
		}
		return true
	})
	if !seen {
		t.Errorf("gogoproto.customname is not among %d extensions", count)
	}
	if _, err := f.FindExtensionByName("gogoproto.customname"); err != nil {
		t.Error(err)
	}
}

// TestNotGlobal holds that nothing is registered for the whole process: a file that another
// library registers under one of our names would be a panic at start.
func TestNotGlobal(t *testing.T) {
	if _, err := New(); err != nil {
		t.Fatal(err)
	}
	for _, name := range fileNames() {
		if _, err := protoregistry.GlobalFiles.FindFileByPath(name); err == nil {
			t.Errorf("%s is in the global registry", name)
		}
	}
}
