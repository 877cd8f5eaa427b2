package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// gogoTypes is the Go package that stands for Google's well-known types in messages.
const gogoTypes = "github.com/gogo/protobuf/types"

// plugins returns the plugins to run, each with its parameter.
func plugins() map[string]string {
	var messages, services []string
	for _, name := range []string{"any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers"} {
		m := "Mgoogle/protobuf/" + name + ".proto=" + gogoTypes
		messages = append(messages, m)
		// Only protoc-gen-go-grpc takes, and needs, the package's name after a semicolon.
		services = append(services, m+";types")
	}
	return map[string]string{
		"protoc-gen-gogofaster": strings.Join(messages, ","),
		"protoc-gen-holdfast":   strings.Join(messages, ","),
		"protoc-gen-go-grpc":    strings.Join(services, ","),
	}
}

// generate returns the generated files by their slash-separated path in the repository.
func generate(ctx context.Context, root, dir string, folders map[string][]string) (map[string]string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	// The protos import each other as holdfast/api/…, whatever the checkout's folder is
	// called: a link of that name stands for it.
	parent, err := os.MkdirTemp("", "protogen")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(parent) }() // it holds no more than a link
	if err := os.Symlink(root, filepath.Join(parent, module)); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		names := folders[folder]
		files, err := compile(ctx, parent, names)
		if err != nil {
			return nil, err
		}
		for name, parameter := range plugins() {
			got, err := runPlugin(ctx, filepath.Join(dir, name), parameter, names, files)
			if err != nil {
				return nil, fmt.Errorf("%s for %s: %w", name, folder, err)
			}
			maps.Copy(out, got)
		}
	}
	return out, nil
}

// runPlugin runs one plugin on files, to generate code for names.
func runPlugin(ctx context.Context, path, parameter string, names []string, files []*descriptorpb.FileDescriptorProto,
) (map[string]string, error) {
	in, err := proto.MarshalOptions{Deterministic: true}.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: names,
		Parameter:      proto.String(parameter),
		ProtoFile:      files,
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var resp pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(data, &resp); err != nil {
		return nil, err
	}
	if resp.Error != nil {
		return nil, errors.New(resp.GetError())
	}
	out := map[string]string{}
	for _, file := range resp.GetFile() {
		name, ok := strings.CutPrefix(file.GetName(), module+"/")
		if !ok || file.GetInsertionPoint() != "" {
			return nil, fmt.Errorf("unexpected output %s", file.GetName())
		}
		out[name] = file.GetContent()
	}
	return out, nil
}
