// Command protoc-gen-holdfast is a protoc plugin that writes deep copies for gogo messages:
// for each message a Copy and a CopyInto method, without reflection, in *_copy.pb.go.
//
// It takes the same M options as gogo's own plugins and must see the same files as
// protoc-gen-gogofaster, since it follows the field names and types which that one chooses.
package main

import (
	"sort"

	"github.com/gogo/protobuf/proto"
	"github.com/gogo/protobuf/protoc-gen-gogo/generator"
	plugin "github.com/gogo/protobuf/protoc-gen-gogo/plugin"
	"github.com/gogo/protobuf/vanity"
	"github.com/gogo/protobuf/vanity/command"
)

func main() {
	req := command.Read()
	likeGogofaster(req)

	p := newCopier(req.GetFileToGenerate())
	g := generator.New()
	g.Request = req
	g.CommandLineParameters(req.GetParameter())
	g.WrapTypes()
	g.SetPackageNames()
	g.BuildTypeNameMap()
	// The generator's own output has gogo's header and imports that nothing uses; the
	// copier keeps whole files of its own instead.
	g.GeneratePlugin(p)

	command.Write(&plugin.CodeGeneratorResponse{File: p.response()})
}

// likeGogofaster sets the options that protoc-gen-gogofaster sets and that decide how its
// structs look.
func likeGogofaster(req *plugin.CodeGeneratorRequest) {
	files := vanity.FilterFiles(req.GetProtoFile(), vanity.NotGoogleProtobufDescriptorProto)
	vanity.ForEachFieldInFilesExcludingExtensions(vanity.OnlyProto2(files),
		vanity.TurnOffNullableForNativeTypesWithoutDefaultsOnly)
	vanity.ForEachFile(files, vanity.TurnOffGoUnrecognizedAll)
	vanity.ForEachFile(files, vanity.TurnOffGoUnkeyedAll)
	vanity.ForEachFile(files, vanity.TurnOffGoSizecacheAll)
}

// response returns the files written so far, in the order of their names.
func (p *copier) response() []*plugin.CodeGeneratorResponse_File {
	names := make([]string, 0, len(p.out))
	for name := range p.out {
		names = append(names, name)
	}
	sort.Strings(names)
	files := make([]*plugin.CodeGeneratorResponse_File, 0, len(names))
	for _, name := range names {
		files = append(files, &plugin.CodeGeneratorResponse_File{
			Name:    proto.String(name),
			Content: proto.String(p.out[name]),
		})
	}
	return files
}
